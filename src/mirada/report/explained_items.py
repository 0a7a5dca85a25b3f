"""What an explanation shows of one input: the answers, relevance by several methods, and the weights of every layer.

Shape letters: H heads (of pictures: height), N queries, M keys, R rows and C columns of patches, W width, K steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from mirada.errors import MiradaError

Lattice = tuple[tuple[int, ...], int]  # sizes of a lattice of tokens, and how many extra tokens stand before it
# Tokens of the input that look at each other; tokens of a translation that look at each other, and at their source.
Kind = Literal["self", "target", "cross"]
Answers = list[tuple[str, float]]  # class and probability, the most probable first
CLEAR_GAIN = 0.01  # of an area: one point of probability, on average over the steps


@dataclass(frozen=True, eq=False)
class Layer:
    """The attention weights of one layer on one input."""

    name: str
    weights_HNM: np.ndarray
    queries: Lattice
    keys: Lattice
    kind: Kind = "self"
    asker: str = ""  # who looks, where that is one row only

    def __post_init__(self) -> None:
        if self.weights_HNM.ndim != 3 or not self.weights_HNM.size:
            raise MiradaError(f"layer {self.name!r} has weights of shape {self.weights_HNM.shape}: expected (H, N, M)")
        for what, lattice, count in zip(("queries", "keys"), self.lattices, self.weights_HNM.shape[1:], strict=True):
            if num_tokens(lattice) != count:
                raise MiradaError(
                    f"layer {self.name!r} has weights for {count} {what}, and a lattice {lattice[0]} of them after "
                    f"{lattice[1]} extra ones, which are {num_tokens(lattice)}: give the lattice of its {what}"
                )
        if self.kind not in get_args(Kind):
            raise MiradaError(f"layer {self.name!r}: kind={self.kind!r} must be one of {', '.join(get_args(Kind))}")
        require_finite(f"the weights of layer {self.name!r}", self.weights_HNM)

    @property
    def lattices(self) -> tuple[Lattice, Lattice]:
        return self.queries, self.keys


@dataclass(frozen=True, eq=False)
class Strip:
    """Probability of the target while tokens are deleted or inserted, the most relevant first, and in random order.

    `fractions` are shares of the tokens. Equally relevant tokens go in raster order.
    """

    fractions: np.ndarray
    deletion: np.ndarray
    insertion: np.ndarray
    random_deletion: np.ndarray
    random_insertion: np.ndarray
    deletion_auc: float
    insertion_auc: float
    random_deletion_auc: float
    random_insertion_auc: float
    baseline: str
    baseline_HWC: np.ndarray | None = None  # the picture that shows where patches are deleted

    def __post_init__(self) -> None:
        shapes = {name: np.shape(curve) for name, curve in self.curves.items()}
        if len(set(shapes.values())) != 1 or np.ndim(self.fractions) != 1 or len(self.fractions) < 2:
            told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise MiradaError(f"curves of faithfulness of different shapes ({told}): give a number for every fraction")
        for name, curve in self.curves.items():
            require_finite(f"the curve {name} of faithfulness", curve)

    @property
    def curves(self) -> dict[str, np.ndarray]:
        names = ("fractions", "deletion", "insertion", "random_deletion", "random_insertion")
        return {name: getattr(self, name) for name in names}

    @property
    def beats(self) -> tuple[str, ...]:
        """Where the map is better than a random order, by a point or more."""
        gains = {
            "deletion": self.random_deletion_auc - self.deletion_auc,
            "insertion": self.insertion_auc - self.random_insertion_auc,
        }
        return tuple(name for name, gain in gains.items() if gain > CLEAR_GAIN)

    @property
    def verdict(self) -> str:
        if not self.beats:
            return "No better than a random order: do not rely on this map."
        if len(self.beats) == 1:
            return f"Better than a random order at {self.beats[0]} only."
        return "Better than a random order, at deletion and at insertion."


@dataclass(frozen=True, eq=False)
class Map:
    """How much each patch mattered, by one method."""

    method: str
    title: str
    is_not: str  # one sentence: what this picture does not show
    relevance_RC: np.ndarray
    cost: str = ""
    faithfulness: Strip | None = None

    def __post_init__(self) -> None:
        if self.relevance_RC.ndim != 2 or not self.relevance_RC.size:
            raise MiradaError(f"relevance by {self.method} is of shape {self.relevance_RC.shape}: expected (R, C)")
        require_finite(f"relevance by {self.method}", self.relevance_RC)


@dataclass(frozen=True, eq=False)
class TokenMap:
    """How much each token mattered, by one method: of the source where there is one, else of the text."""

    method: str
    title: str
    is_not: str
    relevance_N: np.ndarray
    cost: str = ""
    faithfulness: Strip | None = None
    of_target_N: np.ndarray | None = None  # of a translation's own tokens

    def __post_init__(self) -> None:
        for values in (self.relevance_N, *([] if self.of_target_N is None else [self.of_target_N])):
            if values.ndim != 1:
                raise MiradaError(f"relevance by {self.method} is of shape {values.shape}: expected one per token")
            require_finite(f"relevance by {self.method}", values)


@dataclass(frozen=True, eq=False)
class ExplainedImage:
    name: str
    picture_HWC: np.ndarray  # uint8
    answers: Answers
    target: str
    maps: list[Map]
    layers: list[Layer]
    patch: tuple[float, float]  # height and width of a token in pixels; the grid may reach beyond the picture

    def __post_init__(self) -> None:
        if self.picture_HWC.ndim != 3 or self.picture_HWC.dtype != np.uint8:
            found = f"{self.picture_HWC.dtype} of shape {self.picture_HWC.shape}"
            raise MiradaError(f"the picture of {self.name} is {found}: expected uint8 (height, width, channels)")
        if not self.maps and not self.layers:
            raise MiradaError(f"{self.name} has neither relevance nor attention: give one of them to show")
        require_finite(f"an answer for {self.name}", np.array([share for _, share in self.answers]))

    @property
    def placed_layers(self) -> list[Layer]:
        """The layers, with tokens that are told as a line (those that a pooling looks at, say) on the grid of as many
        tokens that came before."""
        grids: dict[int, Lattice] = {map.relevance_RC.size: (map.relevance_RC.shape, 0) for map in self.maps}
        placed = []
        for layer in self.layers:
            grids |= {num_tokens(lattice): lattice for lattice in layer.lattices if len(lattice[0]) == 2}
            queries, keys = (
                lattice if len(lattice[0]) == 2 else grids.get(num_tokens(lattice), lattice)
                for lattice in layer.lattices
            )
            placed.append(replace(layer, queries=queries, keys=keys))
        return placed

    @property
    def extent(self) -> tuple[float, float]:
        """Height and width in pixels that the patches cover, padding included."""
        grids = [map.relevance_RC.shape for map in self.maps]
        grids += [lattice[0] for layer in self.layers for lattice in reversed(layer.lattices) if len(lattice[0]) == 2]
        least = [-(-side // size) for side, size in zip(self.picture_HWC.shape, self.patch, strict=False)]
        rows, columns = min(grids, key=lambda g: abs(g[0] - least[0]) + abs(g[1] - least[1]), default=least)
        return rows * self.patch[0], columns * self.patch[1]

    def cell(self, grid: Sequence[int]) -> tuple[float, float]:
        """Height and width in pixels of a cell of a grid, which may be coarser or finer than that of the patches."""
        height, width = (
            _side(length, size, num) for length, size, num in zip(self.extent, self.patch, grid, strict=True)
        )
        return height, width


@dataclass(frozen=True, eq=False)
class ExplainedText:
    """`tokens` are those of the text or, where there are `source_tokens`, those of its translation."""

    name: str
    tokens: list[str]
    source_tokens: list[str] | None
    answers: Answers
    target: str
    relevance: list[TokenMap]
    layers: list[Layer]

    def __post_init__(self) -> None:
        if not self.input_tokens or (not self.relevance and not self.layers):
            raise MiradaError(f"{self.name} has no tokens, or neither relevance nor attention: give both to show")
        for map in self.relevance:
            self._require(f"relevance by {map.method}", len(map.relevance_N), self.input_tokens)
            if map.of_target_N is not None:
                self._require(f"relevance of the target by {map.method}", len(map.of_target_N), self.tokens)
        for layer in self.layers:
            for count, labels in zip(layer.weights_HNM.shape[1:], self.labels_of(layer), strict=True):
                self._require(f"layer {layer.name!r}", count, labels)
        require_finite(f"an answer for {self.name}", np.array([share for _, share in self.answers]))

    @property
    def input_tokens(self) -> list[str]:
        return self.tokens if self.source_tokens is None else self.source_tokens

    def labels_of(self, layer: Layer) -> tuple[list[str], list[str]]:
        """Who looks and who is looked at, extra tokens first. A single query, that of a pooling say, is no token."""
        queries = [*extra_names(layer.queries[1]), *(self.input_tokens if layer.kind == "self" else self.tokens)]
        keys = [*extra_names(layer.keys[1]), *(self.tokens if layer.kind == "target" else self.input_tokens)]
        is_pooling = layer.weights_HNM.shape[1] == 1 != len(queries)
        return ([layer.asker or "query"] if is_pooling else queries), keys

    def _require(self, what: str, count: int, tokens: list[str]) -> None:
        if count != len(tokens):
            raise MiradaError(f"{self.name}: {what} is of {count} tokens, expected {len(tokens)}; give one per token")


Item = ExplainedImage | ExplainedText


def rows_only(item: Item) -> Item:
    """Without most of the weights: of each layer and head, the row of the first extra token (the class token), or the
    mean over all rows where there is none. A page is then smaller by the number of tokens."""
    return replace(item, layers=[_one_row(layer) for layer in item.layers])


def num_tokens(lattice: Lattice) -> int:
    size, num_extra = lattice
    return num_extra + math.prod(size)


def extra_names(count: int) -> list[str]:
    """The class token, then registers or whatever else there is."""
    return [f"extra {number}" if number else "class token" for number in range(count)]


def require_finite(what: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise MiradaError(f"{what} is not a number: expected finite ones, so look for where the model gave up")


def _one_row(layer: Layer) -> Layer:
    if layer.weights_HNM.shape[1] == 1:
        return layer
    has_class_token = layer.queries[1] > 0
    row_HNM = layer.weights_HNM[:, :1] if has_class_token else layer.weights_HNM.mean(1, keepdims=True)
    asker = "class token" if has_class_token else "all tokens (mean)"
    return replace(layer, weights_HNM=row_HNM, queries=((0,), 1), asker=asker)


def _side(length: float, patch: float, num: int) -> float:
    """The patch doubled or halved until `num` of them cover the length; else equal shares of it."""
    side = patch
    while length / side < num - 0.5:
        side /= 2
    while length // side > num:
        side *= 2
    return side if length // side <= num <= math.ceil(length / side) else length / num
