"""A model run on many inputs, a few at a time: images together, texts one by one, so that nothing is padded.

Shape letters: B batch, C channels, N tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.explain.looks import Look, Tokens
from mirada.explain.trace import looks_of

Inputs = Tensor | Sequence[Tensor | tuple[Tensor, ...]]
MAX_WEIGHTS = 2**24  # numbers of all maps of a run; measures need some copies of them
IMAGES_AT_ONCE = 64


@dataclass(frozen=True)
class Asked:
    """Inputs, each as what the model is called with; images as one tensor, (B, C, …)."""

    images_BC: Tensor | None
    texts: tuple[tuple[Tensor, ...], ...] = ()

    @classmethod
    def of(cls, inputs: Inputs, pad: int | None = None) -> Asked:
        """Images are a tensor of real numbers; texts are token numbers (B, N), a list of single ones, or of pairs."""
        if isinstance(inputs, Tensor) and inputs.is_floating_point():
            if inputs.ndim < 4 or len(inputs) == 0:
                raise MiradaError(
                    f"images of shape {tuple(inputs.shape)} were given: give (B, C, height, width), B ≥ 1"
                )
            return cls(inputs)
        rows = [row[row != pad] if pad is not None else row for row in inputs] if isinstance(inputs, Tensor) else inputs
        texts = [_parts(row) for row in rows]
        kept = tuple(parts for parts in texts if all(part.numel() for part in parts))
        if not kept:
            raise MiradaError("no inputs were given: give images, or texts with tokens in them")
        return cls(None, kept)

    def __len__(self) -> int:
        return len(self.texts) if self.images_BC is None else len(self.images_BC)

    def first(self, count: int) -> Asked:
        return Asked(None if self.images_BC is None else self.images_BC[:count], self.texts[:count])

    @property
    def extent(self) -> tuple[int, ...] | None:
        """Pixels on each axis of an image; None of a text."""
        return None if self.images_BC is None else tuple(self.images_BC.shape[2:])

    @property
    def longest(self) -> int | None:
        """Tokens of the longest text."""
        return max((part.shape[-1] for parts in self.texts for part in parts), default=None)

    def runs(self, at_once: int = IMAGES_AT_ONCE) -> Iterator[tuple[Tensor, ...]]:
        if self.images_BC is None:
            yield from self.texts
        else:
            yield from ((piece,) for piece in self.images_BC.split(at_once))


def looks_of_all(model: nn.Module, asked: Asked) -> Iterator[list[Look]]:
    """The looks of every layer, run by run; as many images at once as fit."""
    grid = None
    at_once = 1
    if asked.images_BC is not None:
        place = getattr(model, "grid", None)
        grid = tuple(place(asked.images_BC[:1])) if place is not None else None
        size = sum(look.weights_BHNM.numel() for look in looks_of(model, asked.images_BC[:1]))
        at_once = max(1, min(IMAGES_AT_ONCE, MAX_WEIGHTS // size))
    for run in asked.runs(at_once):
        yield [placed(look, grid) for look in joined(looks_of(model, *run))]


def joined(looks: Sequence[Look]) -> list[Look]:
    """One look per layer: a recurrent decoder looks once for every token, others may take a batch in pieces."""
    by_name: dict[str, list[Look]] = {}
    for look in looks:
        by_name.setdefault(look.name, []).append(look)
    return [found[0] if len(found) == 1 else _one(found) for found in by_name.values()]


def placed(look: Look, grid: tuple[int, ...] | None) -> Look:
    """With as many tokens in a line as the model's grid has cells, they lie on that grid, in raster order."""

    def on_grid(tokens: Tokens) -> Tokens:
        if grid is None or len(tokens.size) != 1 or tokens.size[0] != torch.Size(grid).numel() or tokens.size[0] == 1:
            return tokens
        return Tokens(grid, tokens.num_extra)

    weights_BHNM = look.weights_BHNM.float().cpu()  # measures add up in double precision, which not every device has
    return replace(look, weights_BHNM=weights_BHNM, queries=on_grid(look.queries), keys=on_grid(look.keys))


def _one(looks: Sequence[Look]) -> Look:
    is_stepwise = looks[0].kind == "cross" and all(len(look.queries) == 1 for look in looks)
    weights_BHNM = torch.cat([look.weights_BHNM for look in looks], dim=2 if is_stepwise else 0)
    return replace(
        looks[0], weights_BHNM=weights_BHNM, queries=Tokens((len(looks),)) if is_stepwise else looks[0].queries
    )


def _parts(row: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What the model is called with for one text: each part (1, N)."""
    parts = row if isinstance(row, tuple) else (row,)
    return tuple(part[None] if part.ndim == 1 else part for part in parts)
