"""The common checks on every registered system that reads one sentence and writes another."""

import pytest

from mirada.systems import card, cards
from tests.systems.common_text_checks import PAIR_CHECKS, pair_maker

PAIR_SYSTEMS = [name for name, card in cards().items() if card.inputs == "pairs"]


def test_there_are_such_systems():
    assert {"seq2seq", "transformer"} <= set(PAIR_SYSTEMS)


@pytest.mark.parametrize("check", PAIR_CHECKS)
@pytest.mark.parametrize("name", PAIR_SYSTEMS)
def test_common_check(name, check):
    assert check not in card(name).cannot
    PAIR_CHECKS[check](pair_maker(card(name)))
