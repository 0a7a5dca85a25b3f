"""What is kept by size serves every later call: after predictions, on traces, with other parts."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from mirada.core import Attention, BiasTable, Concatenated, Windows, plane
from mirada.core.kernels import block_grid, reference
from mirada.core.remembered import remembered
from tests.core.crossproduct import make_call


def made_sizes():
    made = []

    @remembered
    def zeros(device, *size):
        made.append(size)
        return torch.zeros(size, device=device)

    return made, zeros


def test_made_once_for_each_size():
    made, zeros = made_sizes()
    like = torch.ones(2)
    assert zeros(like, 3, 5) is zeros(like, 3, 5)
    assert zeros(like, 5, 3).shape == (5, 3)
    assert made == [(3, 5), (5, 3)]


def test_kept_in_a_prediction_it_serves_training():
    _, zeros = made_sizes()
    like = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        assert not zeros(like, 3).is_inference()
    (like * zeros(like, 3)).sum().backward()
    assert like.grad is not None


def test_tensors_of_a_trace_are_not_kept():
    made, zeros = made_sizes()
    with FakeTensorMode():
        zeros(torch.ones(2), 3)
    assert type(zeros(torch.ones(2), 3)) is torch.Tensor
    assert len(made) == 2


def layer() -> Attention:
    torch.manual_seed(3)
    return Attention(Concatenated(6, 2), neighbours=Windows((3, 2), (1, 1)), position=BiasTable((3, 2), 2))


def test_windows_after_a_prediction_on_the_same_grid_have_gradients():
    x = torch.randn(2, 35, 6, requires_grad=True)
    with torch.inference_mode():
        expected = layer()(x, places=plane(5, 7))
    out = layer()(x, places=plane(5, 7))
    out.sum().backward()
    torch.testing.assert_close(out, expected.clone())
    assert x.grad is not None and x.grad.any()


def test_every_window_has_the_table_of_one():
    """A bias per offset is looked up for one window; the reference looks it up for every pair on the plane."""
    for table in ("bias table", "given bias", "decomposed"):
        call = make_call("scaled dot", "shifted windows", table, "none", "padding")
        torch.testing.assert_close(block_grid.run(call), reference.run(call))
