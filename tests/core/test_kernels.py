"""Every kernel equals the reference, output and gradient, on the whole cross product of the parts it serves."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch

from mirada.core import Edges, Fixed, GivenBias, Mask, Strided, causal, full, line, window
from mirada.core.kernels import TABLE, block_local, choose, forced, reference, run
from mirada.core.kernels.call import Call
from mirada.core.neighbours import Band
from mirada.errors import MiradaError
from tests.core.crossproduct import FAST_KERNELS, B, H, K, N, combinations, leaves, make_call

TOLERANCE = {torch.float64: {"atol": 1e-10, "rtol": 1e-8}, torch.float32: {"atol": 3e-5, "rtol": 1e-4}}
LEAST_SERVED = {"features": 2}  # one score, where all look at all


def gradients(call: Call, out: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(3)
    into = leaves(call)
    # randn, not randn_like: the noise must not depend on the strides of the output.
    grads = torch.autograd.grad(out, into, torch.randn(out.shape, dtype=out.dtype), allow_unused=True)
    return [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(into, grads, strict=True)]


@pytest.mark.parametrize(
    "dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.long)], ids=["float64", "float32"]
)
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
    assert served >= LEAST_SERVED.get(kernel.name, 14)


def test_every_combination_has_a_kernel_and_refusals_have_a_reason():
    for names in combinations():
        call = make_call(*names)
        assert choose(call).refuses(call) is None
        for kernel in TABLE:
            reason = kernel.refuses(call)
            assert reason is None or len(reason) > 10


# One neighbourhood that each kernel serves (name of the kernel, neighbourhood).
SERVED = [
    ("edge list", "edges"),
    ("block local", "window"),
    ("block sparse", "strided"),
    ("block sparse", "fixed"),
    ("block grid", "grid"),
    ("block grid", "shifted windows"),
    ("fused", "mask"),
    ("reference", "mask"),
]
each_kernel = pytest.mark.parametrize(("kernel", "neighbours"), SERVED)


def simple_call(neighbours: str, score: str = "scaled dot", dtype=torch.float64) -> Call:
    return make_call(score, neighbours, "none", "none", "no padding", dtype)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("score", ["scaled dot", "additive"])
@each_kernel
def test_rows_without_neighbours_are_zero_and_so_are_their_gradients(kernel, neighbours, score, dropout):
    if (kernel, score) == ("fused", "additive"):
        score = "bilinear"
    valid = torch.ones(B, N, dtype=torch.bool)
    valid[1] = False
    call = replace(simple_call(neighbours, score, torch.float32), valid_BM=valid, dropout=dropout)
    with forced(kernel):
        out = run(call)
    assert torch.equal(out[1], torch.zeros_like(out[1]))
    assert out[0].abs().sum() > 0
    # A gradient this large overflows if a division by an empty row's total is on its way.
    for grad in torch.autograd.grad(out, leaves(call), torch.full_like(out, 1e3), allow_unused=True):
        assert grad.isfinite().all()
    for grad in torch.autograd.grad(run_on(kernel, call)[1].sum(), leaves(call)[:3]):
        assert torch.equal(grad, torch.zeros_like(grad))


def run_on(kernel: str, call: Call) -> torch.Tensor:
    with forced(kernel):
        return run(call)


@pytest.mark.parametrize("kernel", ["fused", "reference"])
@pytest.mark.parametrize("position", ["none", "given bias"])
def test_an_empty_row_of_a_mask_is_zero(kernel, position):
    allowed = torch.rand(N, N) < 0.5
    allowed[13] = False
    call = replace(make_call("dot", "mask", position, "none", "no padding"), neighbours=Mask(allowed))
    out = run_on(kernel, call)
    assert torch.equal(out[:, :, 13], torch.zeros_like(out[:, :, 13]))
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(out.sum(), leaves(call)))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float16, 1e-2), (torch.bfloat16, 6e-2), (torch.float32, 1e-5), (torch.float64, 0)]
)
@each_kernel
def test_dtype_follows_the_input(kernel, neighbours, dtype, tolerance):
    exact = simple_call(neighbours)
    expected = reference.run(exact)
    out = run_on(kernel, replace(exact, **{x: getattr(exact, x).to(dtype) for x in ("q_BHNK", "k_BHMK", "v_BHMV")}))
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), expected, atol=tolerance + 1e-10, rtol=tolerance)


@each_kernel
def test_dropout_drops_weights_and_keeps_their_mean(kernel, neighbours):
    """With v = 1 the output is the matrix of weights after dropout, whatever the kernel."""
    dropout = 0.3
    one_hot = torch.eye(N, dtype=torch.float64).expand(B, H, N, N)
    call = replace(simple_call(neighbours), v_BHMV=one_hot)
    weights = reference.weights(call)
    dropped = [run_on(kernel, replace(call, dropout=dropout)) for _ in range(40)]
    edge = weights > 1e-6
    for got in dropped[:3]:
        kept = edge & (got > 0)
        torch.testing.assert_close(got[kept], weights[kept] / (1 - dropout), atol=1e-9, rtol=1e-6)
        assert torch.equal(got[weights == 0], torch.zeros_like(got[weights == 0]))
    share = torch.stack([(got[edge] == 0).double().mean() for got in dropped]).mean()
    assert abs(share - dropout) < 4 * (dropout * (1 - dropout) / (40 * edge.sum())) ** 0.5
    torch.testing.assert_close(torch.stack(dropped).sum(-1).mean(), weights.sum(-1).mean(), atol=0.01, rtol=0)


@each_kernel
def test_without_dropout_every_run_is_the_same(kernel, neighbours):
    call = simple_call(neighbours)
    assert torch.equal(run_on(kernel, call), run_on(kernel, call))


def test_the_kernel_follows_from_the_parts():
    chosen = {neighbours: choose(simple_call(neighbours)).name for _, neighbours in SERVED}
    assert chosen == {neighbours: kernel for kernel, neighbours in SERVED} | {"mask": "fused"}
    assert choose(make_call("scaled dot", "full", "none", "re-attention", "no padding")).name == "reference"
    assert choose(make_call("dot", "causal", "Shaw, keys and values", "none", "no padding")).name == "reference"
    assert choose(make_call("additive", "causal", "none", "none", "no padding")).name == "reference"


def test_a_wide_band_is_not_cut_into_blocks():
    call = replace(simple_call("window"), neighbours=window(N))
    assert choose(call).name == "fused"
    torch.testing.assert_close(run_on("block local", call), reference.run(call))


def test_forced_kernel_that_cannot_serve_raises_with_the_reason():
    with (
        forced("fused"),
        pytest.raises(MiradaError, match="does not serve this call: Additive is not a dot"),
    ):
        run(simple_call("full", "additive"))
    with forced("block local"), pytest.raises(MiradaError, match="not a band of finite width"):
        run(simple_call("causal"))
    with pytest.raises(MiradaError, match="no kernel is called 'flash': there are edge list"), forced("flash"):
        pass
    assert choose(simple_call("full")).name == "fused"  # nothing stays forced after an error


def test_falling_back_to_the_reference_is_logged_at_debug_level(caplog):
    with caplog.at_level(logging.DEBUG, logger="mirada.core.kernels"):
        run(simple_call("full"))
        assert not caplog.records
        run(simple_call("full", "additive"))
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert "reference kernel" in record.message
    assert "fused: Additive is not a dot product" in record.message


@pytest.mark.parametrize("neighbours", [Fixed(6, 2), Strided(5), window(3), causal()], ids=str)
@pytest.mark.parametrize("position", ["none", "given bias"])
def test_tokens_that_do_not_start_at_the_first(neighbours, position):
    """Rules on the index itself need the index: a later piece of a sequence is not its beginning."""
    length, start = 23, 5
    later = line(length, start=start)
    call = make_call("scaled dot", "full", position, "none", "no padding")
    rows = slice(0, length)
    call = replace(
        call,
        q_BHNK=call.q_BHNK[:, :, rows], k_BHMK=call.k_BHMK[:, :, rows], v_BHMV=call.v_BHMV[:, :, rows],
        neighbours=neighbours, queries=later, keys=later,
    )  # fmt: skip
    torch.testing.assert_close(run(call), reference.run(call))


def test_edges_of_some_nodes_only():
    """One row of a graph, as decoding step by step asks for, is that row of the whole."""
    whole = simple_call("edges")
    row = line(1, start=13)
    some = replace(whole, q_BHNK=whole.q_BHNK[:, :, 13:14], queries=row, keys=whole.keys)
    torch.testing.assert_close(run(some), run(whole)[:, :, 13:14])
    assert isinstance(some.neighbours, Edges) and choose(some).name != "edge list"


def test_a_bias_of_minus_infinity_hides_like_a_mask():
    allowed = torch.rand(N, N) < 0.7
    allowed.fill_diagonal_(True)
    hidden = GivenBias(torch.zeros(N, N, dtype=torch.float64).masked_fill(~allowed, -torch.inf))
    call = simple_call("full")
    expected = reference.run(replace(call, neighbours=Mask(allowed)))
    for kernel in ("fused", "reference"):
        out = run_on(kernel, replace(call, neighbours=full(), position=hidden))
        torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(("kernel", "neighbours", "score"), [
    ("fused", "full", "dot"), ("reference", "full", "dot"), ("reference", "full", "additive"),
    ("block local", "window", "dot"), ("block local", "window", "additive"), ("block sparse", "strided", "dot"),
])  # fmt: skip
def test_a_row_that_a_bias_hides_completely_is_zero(kernel, neighbours, score):
    bias = torch.randn(N, N, dtype=torch.float64)
    bias[13] = -torch.inf
    call = replace(simple_call(neighbours, score), position=GivenBias(bias))
    out = run_on(kernel, call)
    assert torch.equal(out[:, :, 13], torch.zeros_like(out[:, :, 13]))
    assert out.isfinite().all()
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(out.sum(), leaves(call)))


def test_scale_is_that_of_the_width_of_queries_and_keys():
    """The fused kernel and the reference agree on the scale when values are wider than keys."""
    call = simple_call("full")
    expected = (call.q_BHNK @ call.k_BHMK.mT / K**0.5).softmax(-1) @ call.v_BHMV
    torch.testing.assert_close(run_on("fused", call), expected)
    torch.testing.assert_close(run_on("reference", call), expected)


@pytest.mark.parametrize(("before", "after"), [(3, 5), (17, 0), (0, 23), (31, 2), (40, 40)])
def test_gradients_of_bands_whose_blocks_and_reaches_do_not_divide(before, after):
    call = replace(simple_call("window"), neighbours=Band(before, after))
    expected, out = reference.run(call), block_local.run(call)
    torch.testing.assert_close(out, expected)
    for got, want in zip(gradients(call, out), gradients(call, expected), strict=True):
        torch.testing.assert_close(got, want)


def test_a_band_can_be_differentiated_twice():
    x = torch.randn(1, 1, 5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: block_local._overlapping(x, 3, 2), (x,))


def test_a_band_serves_torch_func_too():
    call = simple_call("window")

    def summed(q, k, v):
        return block_local.run(replace(call, q_BHNK=q, k_BHMK=k, v_BHMV=v)).square().sum()

    inputs = call.q_BHNK, call.k_BHMK, call.v_BHMV
    by_autograd = torch.autograd.grad(summed(*inputs), inputs)
    by_func = torch.func.grad(summed, argnums=(0, 1, 2))(*(tensor.detach() for tensor in inputs))
    for got, want in zip(by_func, by_autograd, strict=True):
        torch.testing.assert_close(got, want)
