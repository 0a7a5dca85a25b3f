"""Classes of every pixel of an image that is larger than the model sees at once. Shape letters: C classes, H, W.

    P(x) = Σ_t w_t(x) P_t(x),   Σ_t w_t = 1

P_t is what the model says inside window t: a tile of maps/tiles.py with surroundings. Weights fall off linearly where
tiles meet, or at once where the model sees all that matters inside its window. Rows that no later tile touches are
decided at once, so memory grows with the width of an image and not with its height.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import nn

from mirada.verbs.maps.tiles import DEFAULT_TILE, Tile, tiles_of

Range = tuple[int, int]
Read = Callable[[Range, Range], np.ndarray]  # rows and columns → uint8 (h, w, channels)
Say = Callable[[np.ndarray], np.ndarray]  # that → probabilities (C, h, w), float32


@dataclass(frozen=True)
class Plan:
    """Tiles of so many pixels, with `halo` around them, of which `blend` are shared with the neighbours.

    is_moved: windows at the rim are moved inside, so that all have one size; otherwise they end where the image ends.
    """

    tile: int
    halo: int
    blend: int
    is_moved: bool


def plan_for(model: nn.Module, image_size: tuple[int, int]) -> Plan:
    """Convolutions see `reach` pixels around: with these as a halo, tiles are exact. Attention sees the whole window,
    so its windows are squares of the shorter side that it was trained at, and neighbours share a quarter of it.
    """
    reach, stride = getattr(model, "reach", None), getattr(model, "stride", 1)
    if isinstance(reach, int):
        return Plan(DEFAULT_TILE, -(-reach // stride) * stride, 0, is_moved=False)
    side = min(image_size)
    halo = max(1, side // 8)
    return Plan(max(1, side - 2 * halo), halo, halo, is_moved=True)


def classes_in_tiles(
    read: Read, size: tuple[int, int], say: Say, plan: Plan, progress: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """uint8 (H, W): the likeliest class of every pixel."""
    height, width = size
    tiles = tiles_of(size, plan.tile)
    found = np.empty(size, np.uint8)
    begun: np.ndarray | None = None  # what the row of tiles above says of the rows it shares with this one
    for (top, bottom), row in groupby(tiles, key=lambda tile: tile.rows):
        first, last = max(0, top - plan.blend), min(height, bottom + plan.blend)
        sums: np.ndarray | None = None
        for tile in row:
            probabilities, rows, cols = _weighed(read, say, tile, size, plan)
            if sums is None:
                sums = np.zeros((len(probabilities), last - first, width), np.float32)
                if begun is not None:
                    sums[:, : begun.shape[1]] += begun
            sums[:, rows[0] - first : rows[1] - first, cols[0] : cols[1]] += probabilities
            if progress is not None:
                progress(tile.number + 1, len(tiles))
        assert sums is not None
        done = height if bottom >= height else bottom - plan.blend
        found[first:done] = sums[:, : done - first].argmax(0)
        begun = sums[:, done - first :]
    return found


def _weighed(read: Read, say: Say, tile: Tile, size: tuple[int, int], plan: Plan) -> tuple[np.ndarray, Range, Range]:
    """What the window of a tile says where its weight is above zero."""
    grown = tile.grown(plan.halo)
    windows = [_window(span, side, plan) for span, side in zip(grown, size, strict=True)]
    kept, weights = [], []
    for core, window, side in zip((tile.rows, tile.cols), windows, size, strict=True):
        span = max(window[0], core[0] - plan.blend), min(window[1], core[1] + plan.blend, side)
        kept.append(span)
        weights.append(_ramp(core, span, side, plan.blend))
    said = say(read(windows[0], windows[1]))
    (top, bottom), (left, right) = kept
    said = said[:, top - windows[0][0] : bottom - windows[0][0], left - windows[1][0] : right - windows[1][0]]
    return said * (weights[0][:, None] * weights[1]), kept[0], kept[1]


def _window(span: Range, side: int, plan: Plan) -> Range:
    start, stop = max(0, span[0]), min(side, span[1])
    if not plan.is_moved:
        return start, stop
    length = min(side, plan.tile + 2 * plan.halo)
    start = min(max(0, span[0]), side - length)
    return start, start + length


def _ramp(core: Range, span: Range, side: int, blend: int) -> np.ndarray:
    """1 inside, falling to 0 across an edge that has a neighbour."""
    middle = np.arange(*span) + 0.5
    weight = np.ones(len(middle), np.float32)
    if blend and core[0] > 0:
        weight *= np.clip((middle - core[0] + blend) / (2 * blend), 0, 1).astype(np.float32)
    if blend and core[1] < side:
        weight *= np.clip((core[1] + blend - middle) / (2 * blend), 0, 1).astype(np.float32)
    return weight


def enlarged_classes(logits_ChW: torch.Tensor, size: tuple[int, int], strip: int = 256) -> np.ndarray:
    """uint8 (H, W): the likeliest class after bilinear interpolation, in strips of rows."""
    height, width = size
    rows_h = logits_ChW.shape[1]
    found = np.empty(size, np.uint8)
    for top in range(0, height, strip):
        stop = min(height, top + strip)
        at = ((torch.arange(top, stop) + 0.5) * (rows_h / height) - 0.5).clamp(0, rows_h - 1)
        below = at.floor().long()
        share = (at - below)[None, :, None]
        lines = logits_ChW[:, below] * (1 - share) + logits_ChW[:, (below + 1).clamp(max=rows_h - 1)] * share
        wide = nn.functional.interpolate(lines[None], size=(stop - top, width), mode="bilinear", align_corners=False)
        found[top:stop] = wide[0].argmax(0).to(torch.uint8).numpy()
    return found
