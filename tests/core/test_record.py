"""Recording: the weights of any layer, head and kernel, in both modes, without changing what is computed."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from threading import Barrier

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mirada.core import (
    Additive,
    Attend,
    Attention,
    BiasTable,
    Concatenated,
    Edges,
    Grid,
    ReAttention,
    Rotary,
    Shaw,
    Strided,
    Windows,
    attention_layers,
    causal,
    full,
    plane,
    record,
    window,
)  # fmt: skip
from mirada.core.attention import stand_ins
from mirada.core.kernels import choose, reference
from mirada.errors import MiradaError
from tests.core.crossproduct import MIXES, NEIGHBOURS, POSITIONS, make_call

recording = import_module("mirada.core.record")  # the package has the function of that name

B, H, N, K, D = 2, 3, 35, 4, 12


class Stack(nn.Module):
    """Three layers, each on another kernel: fused, block local, reference."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = Attention(Concatenated(D, H), neighbours=causal(), position=Rotary(K), dropout=dropout)
        self.second = Attention(Concatenated(D, H), neighbours=window(2), dropout=dropout)
        self.third = Attention(ReAttention(D, H), position=Shaw(K, 3, K), dropout=dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in (self.first, self.second, self.third):
            x = x + layer(x)
        return x


NAMES = ["first.attend", "second.attend", "third.attend"]


def attend_of(call) -> tuple[Attend, dict]:
    attend = Attend(call.score, call.neighbours, call.position, call.mix)
    return attend, {"valid_BM": call.valid_BM, "queries": call.queries, "keys": call.keys}


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_recorded_weights_equal_the_reference_and_the_output_is_untouched(neighbours):
    """Over all positions and mixings of a neighbourhood, in both modes."""
    for score in ("scaled dot", "bilinear", "additive"):
        for position in POSITIONS:
            for mix in MIXES:
                call = make_call(score, neighbours, position, mix, "padding")
                attend, where = attend_of(call)
                tensors = call.q_BHNK, call.k_BHMK, call.v_BHMV
                plain = attend(*tensors, **where)
                expected = reference.weights(call)
                for mode in ("observe", "differentiate"):
                    with record(attend, mode=mode) as maps:
                        out = attend(*tensors, **where)
                    weights = maps[0]
                    if weights.ndim == 3:
                        assert isinstance(call.neighbours, Edges)
                        weights = call.neighbours.dense(weights)
                    torch.testing.assert_close(weights, expected)
                    if mode == "observe":
                        assert torch.equal(out, plain)
                        assert not weights.requires_grad
                    else:
                        torch.testing.assert_close(out, plain, atol=1e-5, rtol=1e-5)


def test_observing_changes_no_bit_in_training_with_dropout_and_batch_statistics():
    model = Stack(dropout=0.4)
    twin = copy.deepcopy(model)
    x = torch.randn(B, N, D)
    torch.manual_seed(5)
    expected = model(x)
    torch.manual_seed(5)
    with record(twin) as maps:
        out = twin(x)
    assert torch.equal(out, expected)
    assert len(maps) == 3 and [maps[name].shape for name in maps] == [(B, H, N, N)] * 3
    norms = [stack.third.attend.mix.norm for stack in (model, twin)]
    assert norms[0].num_batches_tracked == norms[1].num_batches_tracked == 1
    assert torch.equal(norms[0].running_mean, norms[1].running_mean)
    assert torch.equal(norms[0].running_var, norms[1].running_var)
    grads = [torch.autograd.grad(y.sum(), list(m.parameters())) for m, y in ((model, expected), (twin, out))]
    assert all(torch.equal(one, other) for one, other in zip(*grads, strict=True))


SOME_EDGES = Edges(torch.randint(0, N, (2, 60)), N, N)


@pytest.mark.parametrize("neighbours", [causal(), window(3), Strided(4), SOME_EDGES], ids=type)
def test_gradients_with_respect_to_the_weights_equal_brute_force(neighbours):
    layer = Attention(Concatenated(D, H), neighbours=neighbours).double()
    x = torch.randn(B, N, D, dtype=torch.float64)
    with record(layer, mode="differentiate") as maps:
        out = layer(x)
    target = torch.randn(out.shape, dtype=out.dtype)
    (grad,) = torch.autograd.grad((out * target).sum(), maps[0], retain_graph=True)

    weights = maps[0].detach().requires_grad_()
    values = layer.heads.values(x)
    dense = neighbours.dense(weights) if isinstance(neighbours, Edges) else weights
    (expected,) = torch.autograd.grad((layer.heads.join(dense @ values) * target).sum(), weights)
    torch.testing.assert_close(grad, expected)
    assert torch.autograd.grad((out * target).sum(), layer.heads.to_q.weight)[0].abs().sum() > 0


def test_every_layer_on_the_way_has_a_gradient():
    model = Stack().eval()
    with record(model, mode="differentiate") as maps:
        out = model(torch.randn(B, N, D))
    grads = torch.autograd.grad(out.square().sum(), [maps[name] for name in maps])
    assert all(grad.abs().sum() > 0 for grad in grads)


def test_layers_are_chosen_by_name_or_number():
    model = Stack()
    assert attention_layers(model) == NAMES
    x = torch.randn(B, N, D)
    for layers, names in (([1], NAMES[1:2]), ([-1, "first.attend"], [NAMES[2], NAMES[0]]), (None, NAMES)):
        with record(model, layers) as maps:
            model(x)
        assert list(maps) == names == list(maps.names)
        assert maps[0] is maps[names[0]]
        assert maps[-1] is maps[names[-1]]


CLASS_TOKEN = [
    (full(), None),
    (Grid(1), BiasTable((5, 7), H)),
    (Windows((3, 2), (1, 1)), None),
    (Grid(2), Shaw(K, 2)),
]


@pytest.mark.parametrize(("neighbours", "position"), CLASS_TOKEN, ids=str)
@pytest.mark.parametrize("num_extra", [0, 2])
@pytest.mark.parametrize("max_chunk", [1, 500, 2**24])
def test_some_heads_and_rows_equal_slices_of_the_whole(neighbours, position, num_extra, max_chunk, monkeypatch):
    monkeypatch.setattr(recording, "MAX_CHUNK", max_chunk)
    layer = Attention(Concatenated(D, H), neighbours=neighbours, position=position).double()
    x, places = torch.randn(B, N + num_extra, D, dtype=torch.float64), plane(5, 7, num_extra)
    valid = torch.rand(B, N + num_extra) < 0.8
    plain = layer(x, places=places, valid_BM=valid)

    def recorded(**selection) -> torch.Tensor:
        with record(layer, **selection) as maps:
            assert torch.equal(layer(x, places=places, valid_BM=valid), plain)
        return maps[0]

    whole = recorded()
    assert torch.equal(recorded(heads=[2, 0]), whole[:, [2, 0]])
    for rows in ([0], [-1, 5, 0, 5], range(1, 4)):
        torch.testing.assert_close(recorded(queries=rows), whole[:, :, list(rows)])
    torch.testing.assert_close(recorded(heads=[1], queries=[3, 1]), whole[:, [1]][:, :, [3, 1]])


def test_some_heads_and_rows_where_the_reference_computes():
    layer = Attention(Concatenated(D, H), score=Additive(K, K, 7, H))
    x = torch.randn(B, N, D)
    with record(layer) as whole, pytest.raises(MiradaError, match="is being recorded already"), record(layer):
        pass
    with record(layer) as whole:
        layer(x)
    with record(layer, heads=[1], queries=[4, -2]) as some:
        layer(x)
    assert torch.equal(some[0], whole[0][:, [1]][:, :, [4, -2]])


class LargestTensor(TorchDispatchMode):
    """Number of elements of the largest tensor that any operation gives."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        numels = [tensor.untyped_storage().nbytes() // tensor.element_size() for tensor in tensors]
        self.numel = max([self.numel, *numels])
        return out


def test_recording_one_row_never_holds_the_whole_map():
    length = 2048
    layer = Attention(Concatenated(D, H))
    x = torch.randn(1, length, D)
    with torch.no_grad(), record(layer, queries=[0]) as maps, LargestTensor() as largest:
        layer(x)
    assert maps[0].shape == (1, H, 1, length)
    assert largest.numel < length * length // 4
    with torch.no_grad(), record(layer, heads=[0]) as maps, LargestTensor() as largest:
        layer(x[:, :512])
    assert maps[0].untyped_storage().nbytes() == 4 * 512 * 512  # not a view of all heads


def test_only_the_chosen_layer_costs_memory():
    model = nn.ModuleList([Attention(Concatenated(D, H)) for _ in range(3)])
    with record(model, [1]) as maps:
        for layer in model:
            layer(torch.randn(1, N, D))
    assert len(maps) == 1
    assert maps[0].shape == (1, H, N, N)


def test_edges_have_one_weight_each():
    edges = Edges(torch.randint(0, N, (2, 60)), N, N)
    layer = Attention(Concatenated(D, H), neighbours=edges)
    x = torch.randn(B, N, D)
    with record(layer) as maps:
        layer(x)
    assert maps[0].shape == (B, H, edges.edge_2E.shape[1])
    with record(layer, heads=[2]) as some:
        layer(x)
    assert torch.equal(some[0], maps[0][:, [2]])
    with record(layer, queries=[0]), pytest.raises(MiradaError, match="one weight per edge"):
        layer(x)


def test_what_is_not_there_raises():
    model, x = Stack(), torch.randn(B, N, D)
    with pytest.raises(MiradaError, match=r"Stack has no attention layer 'fourth': there are first.attend, second"):
        record(model, ["fourth"]).__enter__()
    with pytest.raises(MiradaError, match="no attention layer 3"):
        record(model, [3]).__enter__()
    with pytest.raises(MiradaError, match="Linear has no attention layer to record"):
        record(nn.Linear(2, 3)).__enter__()
    with pytest.raises(MiradaError, match="'observe' and 'differentiate'"):
        record(model, mode="watch").__enter__()
    with pytest.raises(MiradaError, match="leave heads and queries out"):
        record(model, mode="differentiate", heads=[0]).__enter__()
    with record(model, ["first.attend"]) as maps:
        with pytest.raises(MiradaError, match=r"'first.attend' did not run"):
            maps[0]
        with pytest.raises(MiradaError, match=r"no recorded layer is called 'second.attend'"):
            maps["second.attend"]
        model(x)
        model(x)
    with pytest.raises(MiradaError, match="ran 2 times"):
        maps[0]
    assert len(maps.every(0)) == 2
    assert torch.equal(*maps.every("first.attend"))
    with record(model, heads=[H]), pytest.raises(MiradaError, match=f"no head {H}: there are {H}"):
        model(x)
    with record(model, heads=[]), pytest.raises(MiradaError, match="no head was chosen"):
        model(x)
    with record(model, queries=[0, N]), pytest.raises(MiradaError, match=f"no query {N}: there are {N}"):
        model(x)


def test_an_error_inside_leaves_the_model_as_it_was():
    model = Stack()
    with pytest.raises(ValueError, match="mine"), record(model):
        raise ValueError("mine")
    with record(model) as maps:  # and it can be recorded again
        model(torch.randn(B, N, D))
    model(torch.randn(B, N, D))
    assert len(maps.every(0)) == 1
    assert not stand_ins.get()


def test_threads_record_one_model_at_once_and_see_only_their_own():
    """As a server does: one request asks for maps while others run the same model, with maps or without."""
    model = Stack().eval()
    inputs = [torch.randn(B, N, D) for _ in range(4)]
    everyone_is_recording = Barrier(len(inputs) + 1)

    def recorded(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        with torch.no_grad(), record(model) as maps:
            everyone_is_recording.wait(timeout=30)
            out = model(x)
            everyone_is_recording.wait(timeout=30)
        return out, [maps[name] for name in maps]

    def plain(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            everyone_is_recording.wait(timeout=30)
            out = model(x)
            everyone_is_recording.wait(timeout=30)
        return out

    with ThreadPoolExecutor(len(inputs) + 1) as pool:
        unrecorded = pool.submit(plain, inputs[0])
        results = list(pool.map(recorded, inputs))
    assert torch.equal(unrecorded.result(), results[0][0])
    for x, (out, weights) in zip(inputs, results, strict=True):
        with torch.no_grad(), record(model) as alone:
            assert torch.equal(model(x), out)
        assert all(torch.equal(alone[i], got) for i, got in enumerate(weights))


def test_a_layer_is_recorded_once_at_a_time_and_others_meanwhile():
    model = Stack()
    with record(model, [0]) as outer, record(model, [1]) as inner:
        with pytest.raises(MiradaError, match=r"'first.attend' is being recorded already"):
            record(model).__enter__()
        model(torch.randn(B, N, D))
    assert outer[0].shape == inner[0].shape == (B, H, N, N)


def test_a_call_on_the_edge_list_is_recorded_on_it():
    call = make_call("scaled dot", "edges", "none", "none", "no padding")
    assert choose(call).name == "edge list"
    with_bias = replace(call, position=BiasTable((N,), H).double())
    attend, where = attend_of(with_bias)
    with record(attend) as maps:
        attend(call.q_BHNK, call.k_BHMK, call.v_BHMV, **where)
    assert maps[0].shape == (2, 3, N, N)  # a position on the logits needs the whole matrix
