"""The weights of any layer and head, from any kernel: `with record(model) as maps: model(x)`.

    observe        the kernel runs as always and the weights are computed beside it: the output is the same to the bit
    differentiate  the weights are computed on the way to the output, so that gradients with respect to them exist

Shape letters: B batch, H heads, N queries, M keys, E edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from mirada.core import kernels
from mirada.core.attention import Attend, stand_ins
from mirada.core.kernels import edge_list, reference
from mirada.core.kernels.call import Call
from mirada.core.neighbours import Edges
from mirada.core.places import Places
from mirada.errors import MiradaError

Mode = Literal["observe", "differentiate"]

MAX_CHUNK = 2**24  # weights held at once beside what is kept


@dataclass(frozen=True)
class Recorded:
    """The weights of one layer in one run, and where those who look and those who are seen stand."""

    name: str
    weights: Tensor  # (B, H, N, M), or (B, H, E) along `edge_2E`
    queries: Places
    keys: Places
    edge_2E: Tensor | None = None


class Maps:
    """Recorded weights by layer name or number: (B, H, N, M), or (B, H, E) where the neighbourhood is a list of edges.

    `maps[name]` is the layer's only map; `maps.every(name)` gives one per time the layer ran; `maps.in_order` has all
    with their places, as they ran.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.in_order: list[Recorded] = []
        self._calls: dict[str, list[Tensor]] = {name: [] for name in names}

    def add(self, name: str, weights: Tensor, call: Call) -> None:
        self._calls[name].append(weights)
        edge_2E = call.neighbours.edge_2E if isinstance(call.neighbours, Edges) and weights.ndim == 3 else None
        self.in_order.append(Recorded(name, weights, call.query_places, call.key_places, edge_2E))

    def every(self, layer: str | int) -> list[Tensor]:
        name = self._name(layer)
        if not self._calls[name]:
            raise MiradaError(
                f"layer {name!r} did not run while it was recorded: run the model inside `with record(…)`"
            )
        return self._calls[name]

    def __getitem__(self, layer: str | int) -> Tensor:
        maps = self.every(layer)
        if len(maps) > 1:
            raise MiradaError(f"layer {self._name(layer)!r} ran {len(maps)} times: ask for maps.every(…)[i]")
        return maps[0]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def _name(self, layer: str | int) -> str:
        if isinstance(layer, int) and -len(self.names) <= layer < len(self.names):
            return self.names[layer]
        if layer in self._calls:
            return str(layer)
        raise MiradaError(f"no recorded layer is called {layer!r}: there are {', '.join(self.names)}")


def attention_layers(model: nn.Module) -> list[str]:
    """Names of the attention layers of a model, in the order in which they are registered."""
    return [name for name, module in model.named_modules() if isinstance(module, Attend)]


@contextmanager
def record(
    model: nn.Module,
    layers: Sequence[str | int] | None = None,
    *,
    mode: Mode = "observe",
    heads: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
) -> Iterator[Maps]:
    """Record the attention weights of `layers` (all, if None) while the model runs in this thread or task.

    `heads` and `queries` keep only some heads and rows, in mode "observe": memory is then that of what is kept.
    """
    if mode not in ("observe", "differentiate"):
        raise MiradaError(f"mode={mode!r}: recording knows 'observe' and 'differentiate'")
    if mode == "differentiate" and not (heads is None and queries is None):
        raise MiradaError(
            "mode='differentiate' records whole maps, as they lie on the way to the output: leave heads and queries out"
        )
    chosen = _choose(model, layers)
    maps = Maps(tuple(chosen))
    recorders: dict[nn.Module, Callable[[Call], Tensor]] = {
        attend: _Recorder(name, maps, mode, heads, queries) for name, attend in chosen.items()
    }
    with stand_ins.of({**stand_ins.get(), **recorders}):
        yield maps


def _choose(model: nn.Module, layers: Sequence[str | int] | None) -> dict[str, Attend]:
    modules = dict(model.named_modules())
    names = attention_layers(model)
    if not names:
        raise MiradaError(f"{type(model).__name__} has no attention layer to record")
    chosen = {}
    for layer in names if layers is None else layers:
        name = names[layer] if isinstance(layer, int) and -len(names) <= layer < len(names) else layer
        if name not in names:
            raise MiradaError(f"{type(model).__name__} has no attention layer {layer!r}: there are {', '.join(names)}")
        attend = modules[str(name)]
        assert isinstance(attend, Attend)
        if attend in stand_ins.get():
            raise MiradaError(f"attention layer {name!r} is being recorded already")
        chosen[str(name)] = attend
    return chosen


class _Recorder:
    """Stands in for the kernel of one layer."""

    def __init__(
        self, name: str, maps: Maps, mode: Mode, heads: Sequence[int] | None, queries: Sequence[int] | None
    ) -> None:
        self.name, self.maps, self.mode = name, maps, mode
        self.heads, self.queries = heads, queries

    def __call__(self, call: Call) -> Tensor:
        on_edges = edge_list.refuses(call) is None
        form = edge_list if on_edges else reference
        if self.mode == "differentiate":
            weights = form.weights(call)
            if not weights.requires_grad and torch.is_grad_enabled():
                weights.requires_grad_()  # of a model whose parameters are frozen
            self.maps.add(self.name, weights, call)
            return form.combine(call, weights)
        self._check(call, on_edges)
        kernel = kernels.choose(call)
        if kernel.run is form.run:
            weights = form.weights(call)
            self.maps.add(self.name, self._keep(weights.detach()), call)
            return form.combine(call, weights)
        out = kernel.run(call)
        with torch.no_grad():
            self.maps.add(self.name, self._keep(form.weights(call)) if on_edges else self._rows(call), call)
        return out

    def _check(self, call: Call, on_edges: bool) -> None:
        if self.queries is not None and on_edges:
            raise MiradaError(f"layer {self.name!r} has one weight per edge, not rows of queries: leave queries out")
        for what, chosen, count in (
            ("head", self.heads, call.q_BHNK.shape[1]),
            ("query", self.queries, call.q_BHNK.shape[2]),
        ):
            if chosen is not None and not len(chosen):
                raise MiradaError(f"layer {self.name!r}: no {what} was chosen; None means all of them")
            missing = [number for number in chosen or () if not -count <= number < count]
            if missing:
                raise MiradaError(f"layer {self.name!r} has no {what} {missing[0]}: there are {count}, from 0")

    def _keep(self, weights: Tensor) -> Tensor:
        if self.heads is not None:
            weights = weights[:, list(self.heads)]
        return weights if self.queries is None else weights[:, :, list(self.queries)]

    def _rows(self, call: Call) -> Tensor:
        """The wanted rows, a chunk of queries at a time: heads nobody asked for never stand in memory together."""
        num_queries, num_keys = call.q_BHNK.shape[-2], call.k_BHMK.shape[-2]
        wanted = range(num_queries) if self.queries is None else [q % num_queries for q in self.queries]
        order = sorted(set(wanted))
        step = max(1, MAX_CHUNK // (call.q_BHNK.shape[0] * call.q_BHNK.shape[1] * num_keys))
        heads = slice(None) if self.heads is None else list(self.heads)
        rows = torch.cat(
            [_some_rows(call, order[at : at + step])[:, heads] for at in range(0, len(order), step)], dim=2
        )
        if self.queries is None:
            return rows
        return rows[:, :, [order.index(query) for query in wanted]]


def _some_rows(call: Call, rows: list[int]) -> Tensor:
    places = call.query_places
    placed = [row - places.num_extra for row in rows if row >= places.num_extra]
    some = Places(
        places.index_N[..., rows], places.coords_NA[..., placed, :], places.size, num_extra=len(rows) - len(placed)
    )
    # A plain line of keys must stay the line it was, whatever rows are looked at.
    return reference.weights(replace(call, q_BHNK=call.q_BHNK[..., rows, :], queries=some, keys=call.key_places))
