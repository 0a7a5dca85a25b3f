"""Every kernel equals the reference, output and gradient, on the whole cross product of the parts it serves."""

from __future__ import annotations

import pytest
import torch

from mirada.core.kernels import TABLE, choose, reference
from mirada.core.kernels.call import Call
from tests.core.crossproduct import FAST_KERNELS, combinations, leaves, make_call

TOLERANCE = {torch.float64: dict(atol=1e-10, rtol=1e-8), torch.float32: dict(atol=3e-5, rtol=1e-4)}


def gradients(call: Call, out: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(3)
    into = leaves(call)
    grads = torch.autograd.grad(out, into, torch.randn_like(out), allow_unused=True)
    return [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(into, grads, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("kernel", FAST_KERNELS, ids=lambda kernel: kernel.name)
def test_kernel_equals_reference_over_the_cross_product(kernel, dtype):
    served = 0
    for names in combinations():
        call = make_call(*names, dtype=dtype)
        if kernel.refuses(call) is not None:
            continue
        served += 1
        expected, out = reference.run(call), kernel.run(call)
        torch.testing.assert_close(out, expected, **TOLERANCE[dtype], msg=lambda m, n=names: f"{n}: {m}")
        for got, want in zip(gradients(call, out), gradients(call, expected), strict=True):
            torch.testing.assert_close(got, want, **TOLERANCE[dtype], msg=lambda m, n=names: f"gradient, {n}: {m}")
    assert served >= 14


def test_every_combination_has_a_kernel_and_refusals_have_a_reason():
    for names in combinations():
        call = make_call(*names)
        assert choose(call).refuses(call) is None
        for kernel in TABLE:
            reason = kernel.refuses(call)
            assert reason is None or len(reason) > 10
