"""The common checks on every registered system that reads one text."""

import pytest

from mirada.systems import card, cards
from tests.systems.common_text_checks import TEXT_CHECKS, pair_maker

TEXT_SYSTEMS = [name for name, card in cards().items() if card.inputs == "text"]


def test_there_are_such_systems():
    assert {"bert", "gpt", "word2vec"} <= set(TEXT_SYSTEMS)


@pytest.mark.parametrize("check", TEXT_CHECKS)
@pytest.mark.parametrize("name", TEXT_SYSTEMS)
def test_common_check(name, check):
    if check not in card(name).cannot:
        TEXT_CHECKS[check](pair_maker(card(name)))
        return
    # Declared as impossible: if it passes after all, the declaration is stale.
    with pytest.raises(Exception):  # noqa: B017
        TEXT_CHECKS[check](pair_maker(card(name)))
