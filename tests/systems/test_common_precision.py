"""Every registered system of images, masks, text and plots learns where products are bfloat16, too."""

import pytest
import torch

from mirada.systems import card, cards
from tests.systems import common_checks, common_plot_checks, common_text_checks
from tests.systems.test_common import averaged

LEARNS = {
    "image": (common_checks.maker, common_checks.learns_with_every_parameter),
    "masks": (lambda card: averaged(common_checks.maker(card)), common_checks.learns_with_every_parameter),
    "pairs": (common_text_checks.pair_maker, common_text_checks.pair_learns_with_every_parameter),
    "text": (common_text_checks.pair_maker, common_text_checks.text_learns_with_every_parameter),
    "plots": (common_plot_checks.plot_maker, common_plot_checks.learns_with_every_parameter),
}


@pytest.mark.parametrize("name", [name for name, card in cards().items() if card.inputs in LEARNS])
def test_learns_in_bfloat16(name):
    make, check = LEARNS[card(name).inputs]
    if check.__name__ not in card(name).cannot:
        with torch.autocast("cpu", torch.bfloat16):
            check(make(card(name)))
