"""Our dropout is torch's, drawn four numbers at a time."""

import pytest
import torch
from torch import nn

from mirada.nn.dropout import LEVELS, Dropout


@pytest.mark.parametrize("p", [0.1, 0.37, 0.5, 0.9])
def test_as_many_are_left_out_and_the_mean_stays(p):
    kept = Dropout(p)(torch.ones(997, 1009))
    share = round(p * LEVELS) / LEVELS
    assert (kept == 0).double().mean().item() == pytest.approx(share, abs=5 * (p * (1 - p) / kept.numel()) ** 0.5)
    assert kept[kept != 0].unique().tolist() == pytest.approx([1 / (1 - share)], rel=1e-6)
    assert kept.mean().item() == pytest.approx(1, abs=0.02)


def test_neighbours_are_left_out_independently():
    """Four numbers of a draw, and numbers of neighbouring draws, know nothing of each other."""
    gone = (Dropout(0.5)(torch.ones(1_000_000)) == 0).double()
    for distance in range(1, 9):
        together = (gone[:-distance] * gone[distance:]).mean().item()
        assert together == pytest.approx(0.25, abs=0.003)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5, 7), (0, 4)])
def test_gradient_is_that_of_what_was_kept(shape):
    x = torch.rand(shape, dtype=torch.float64).add(1).requires_grad_()
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert x.grad is not None and torch.equal(x.grad, y.detach() / x.detach()) and y.shape == x.shape


def test_seed_decides_and_turns_move_on():
    x, dropout = torch.ones(53), Dropout(0.3)
    torch.manual_seed(5)
    one, other = dropout(x), dropout(x)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), one) and not torch.equal(one, other)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_ends_are_torchs(p):
    x = torch.rand(11)
    assert torch.equal(Dropout(p)(x), nn.Dropout(p)(x))


def test_nothing_is_left_out_when_it_does_not_train():
    x = torch.rand(3, 11)
    assert Dropout(0.5).eval()(x) is x


def test_half_precision_stays_so():
    assert Dropout(0.25)(torch.ones(64, dtype=torch.bfloat16)).dtype == torch.bfloat16
