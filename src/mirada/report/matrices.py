"""Attention as a matrix: a row for every token that looks, a column for every token that it looks at.

Shape letters: H heads, N tokens that look, M tokens that are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from mirada.core import attention_layers, record
from mirada.errors import MiradaError
from mirada.report.style import Drawing, Theme, draw, plain_labels
from mirada.report.wording import shortened

MAX_TOKENS = 24  # on either side, so that they can be read
MAX_HEADS = 8
CELL, LETTER = 0.24, 0.085  # inches of a cell at most, and of a letter
PAGE, HALF_PAGE = 9.6, 4.7  # inches


@torch.inference_mode()
def last_layer(model: nn.Module, tokens: Sequence[int], system: str) -> Tensor:
    """(H, N, N) of the last attention layer on one text."""
    if not attention_layers(model):
        raise MiradaError(f"{system} has no attention layers, so there is nothing to show")
    with record(model, layers=[-1]) as maps:
        model(torch.tensor([list(tokens)]))
    (layer,) = maps.names
    return maps[layer][0]


def matrix(
    name: str, title: str, weights_NM: np.ndarray, rows: Sequence[str], columns: Sequence[str], width: float = HALF_PAGE
) -> Drawing:
    """One matrix; its strongest colour is its largest weight."""
    side = min(CELL, (width - 1.0) / len(columns))
    height = side * len(rows) + _room(columns) + 0.75
    width = min(width, max(side * len(columns) + _room(rows) + 0.3, LETTER * len(shortened(title, 60)) + 0.2))

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        axes = figure.subplots()
        _paint(axes, theme, weights_NM, float(weights_NM.max()), rows, columns, min(8.5, 58 * side))
        figure.suptitle(shortened(title, 60), x=0.01, ha="left", fontsize=9.5, fontweight="bold").set_parse_math(False)

    return draw(name, _alt(title, weights_NM, rows, columns), paint, width, height)


def head_grid(name: str, title: str, weights_HNM: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Drawing:
    """The heads of one layer on one sentence, in one scale of colours."""
    shown_HNM = weights_HNM[:MAX_HEADS]
    num_columns = min(len(shown_HNM), 2 if len(shown_HNM) <= 4 else 4)
    num_rows = -(-len(shown_HNM) // num_columns)
    side = min(CELL, (PAGE / num_columns - (1.0 if num_columns <= 2 else 0.4)) / len(columns))
    height = num_rows * (side * len(rows) + 0.5 + _room(columns)) + 0.2
    width = min(PAGE, num_columns * (side * len(columns) + 0.15) + _room(rows) + 0.9)

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        grid = figure.subplots(num_rows, num_columns, squeeze=False)
        for number, axes in enumerate(grid.flat):
            if number >= len(shown_HNM):
                axes.set_axis_off()
                continue
            image = _paint(axes, theme, shown_HNM[number], float(shown_HNM.max()), rows, columns, min(8, 58 * side))
            axes.set_xlabel(f"head {number + 1}")
            if number % num_columns:
                axes.set_yticklabels([])
        bar = figure.colorbar(image, ax=list(grid.flat), fraction=0.02, pad=0.01)
        bar.outline.set_visible(False)

    sharpest = [f"head {h + 1} {weights.max():.2f}" for h, weights in enumerate(shown_HNM)]
    alt = f"{title}, {len(shown_HNM)} heads; largest weights: {', '.join(sharpest)}."
    return draw(name, alt, paint, width, height)


def _paint(
    axes: Axes,
    theme: Theme,
    weights_NM: np.ndarray,
    most: float,
    rows: Sequence[str],
    columns: Sequence[str],
    size: float,
):
    image = axes.imshow(weights_NM, cmap=theme.heat_map, vmin=0, vmax=most, interpolation="nearest", aspect="equal")
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(columns)), _short(columns), rotation=90 if max(map(len, columns)) > 1 else 0, fontsize=size
    )
    axes.set_yticks(range(len(rows)), _short(rows), fontsize=size)
    plain_labels([*axes.get_xticklabels(), *axes.get_yticklabels()])
    axes.tick_params(length=0, labelcolor=theme.ink, pad=2)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return image


def _room(tokens: Sequence[str]) -> float:
    """Inches that the longest of these needs."""
    return LETTER * max(map(len, _short(tokens)))


def _short(tokens: Sequence[str]) -> list[str]:
    return [shortened(token, 12) or "␣" for token in tokens]


def _alt(title: str, weights_NM: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Where each token looks most, in words."""
    looks = ", ".join(
        f"{row} → {columns[int(weights.argmax())]}" for row, weights in zip(rows, weights_NM, strict=True)
    )
    return f"{title}. Each looks most at: {looks}."
