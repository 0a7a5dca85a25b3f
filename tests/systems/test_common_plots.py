"""The common checks on every registered system of plots."""

import pytest

from mirada.systems import card, cards
from tests.systems.common_plot_checks import PLOT_CHECKS, plot_maker

PLOT_SYSTEMS = [name for name, card in cards().items() if card.inputs == "plots"]


def test_there_are_such_systems():
    assert {"spatioformer", "spatioformer_paper"} <= set(PLOT_SYSTEMS)


@pytest.mark.parametrize("check", PLOT_CHECKS)
@pytest.mark.parametrize("name", PLOT_SYSTEMS)
def test_common_check(name, check):
    if check not in card(name).cannot:
        PLOT_CHECKS[check](plot_maker(card(name)))
        return
    # Declared as impossible: if it passes after all, the declaration is stale.
    with pytest.raises(Exception):  # noqa: B017
        PLOT_CHECKS[check](plot_maker(card(name)))
