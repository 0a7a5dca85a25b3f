"""A text as a figure: tokens in the colour of their relevance, and a matrix of weights with tokens as labels.

Shape letters: N tokens that look, M tokens that are looked at.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps, rcParams
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure, SubFigure

from mirada.report.explained_items import ExplainedText, Layer, Map, TokenMap
from mirada.report.style import Theme
from mirada.report.wording import percent, shortened

WIDTH = 9.6  # inches
LINE_LETTERS = 112  # that fit into a line of tokens
LINE, CELL = 0.25, 0.2  # inches of a line, and of a cell
MAX_TOKENS, MAX_LABELS = 400, 40  # of the text, and on a side of the matrix
MAX_ANSWERS = 5
HEAT, SIGNED = "magma", "RdBu_r"


def heat_of(values: np.ndarray) -> tuple[Colormap, tuple[float, float]]:
    """Colours and limits: from the least to the most, or the same on both sides of zero where some are negative."""
    low, high = float(values.min()), float(values.max())
    if low < 0:
        most = max(-low, high)
        return colormaps[SIGNED], (-most, most)
    return colormaps[HEAT], (low, high) if high > low else (0.0, high or 1.0)


def on_paper(colours: Colormap) -> Colormap:
    """Little is the colour of paper, and not of ink."""
    return colours.reversed() if colours.name == HEAT else colours


def measured(map: Map | TokenMap) -> list[str]:
    """Whether the answer depends on what a map points at."""
    strip = map.faithfulness
    if strip is None:
        return ["faithfulness not measured"]
    return [
        f"deletion AUC {strip.deletion_auc:.3f}, random order {strip.random_deletion_auc:.3f}",
        f"insertion AUC {strip.insertion_auc:.3f}, random order {strip.random_insertion_auc:.3f}",
        f"baseline: {strip.baseline}",
    ]


def paint_text(figure: Figure, item: ExplainedText, theme: Theme) -> None:
    lines = [wrapped([token for token, _ in shown_tokens(item, map)]) for map in item.relevance]
    layer = shown_layer(item.layers)
    heights = [LINE * (placed[-1][0] + 1) + 0.95 for placed in lines]
    if layer:
        heights.append(CELL * min(MAX_LABELS, len(item.labels_of(layer)[0])) + 1.5)
    figure.set_size_inches(WIDTH, sum(heights) + 0.75)
    # Parts of their own, so that the labels of the matrix do not narrow the lines of tokens.
    parts = figure.subfigures(max(1, len(heights)), 1, squeeze=False, height_ratios=heights or [1])[:, 0]
    for part, map, placed in zip(parts, item.relevance, lines, strict=False):
        _paint_tokens(part, item, map, placed)
    if layer:
        _paint_matrix(parts[-1], item, layer, theme)
    answers = [f"{shortened(name, 24)} {percent(share)}" for name, share in item.answers[:MAX_ANSWERS]]
    if answers:
        figure.supxlabel(f"answers: {', '.join(answers)}", x=0.01, ha="left", fontsize=9, color=theme.ink)


def shown_tokens(item: ExplainedText, map: TokenMap) -> list[tuple[str, float | None]]:
    """Tokens and their relevance; those of a translation behind an arrow."""
    shown: list[tuple[str, float | None]] = list(zip(item.input_tokens, map.relevance_N.tolist(), strict=True))
    if map.of_target_N is not None:
        shown += [("→", None), *zip(item.tokens, map.of_target_N.tolist(), strict=True)]
    return shown[:MAX_TOKENS]


def wrapped(tokens: Sequence[str]) -> list[tuple[int, float, str]]:
    """(line, place in letters, what is written) of each token."""
    placed, line, at = [], 0, 0.0
    for token in tokens:
        written = shortened(token, 40) or "␣"
        width = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in written) + 1.2
        if at and at + width > LINE_LETTERS:
            line, at = line + 1, 0.0
        placed.append((line, at, written))
        at += width
    return placed


def shown_layer(layers: Sequence[Layer]) -> Layer | None:
    """The last that looks at a source, where there is one, else the last."""
    return next((layer for layer in reversed(layers) if layer.kind == "cross"), layers[-1] if layers else None)


def _paint_tokens(part: SubFigure, item: ExplainedText, map: TokenMap, lines: list[tuple[int, float, str]]) -> None:
    axes = part.subplots()
    values = [value for _, value in shown_tokens(item, map)]
    colours, limits = heat_of(np.array([value for value in values if value is not None]))
    colours = on_paper(colours)
    norm = Normalize(*limits)
    family = ["DejaVu Sans Mono", *rcParams["font.family"]]
    axes.set_xlim(-0.5, LINE_LETTERS)
    axes.set_ylim(lines[-1][0] + 0.6, -0.6)
    axes.set_axis_off()
    for (line, at, written), value in zip(lines, values, strict=True):
        colour = (1.0, 1.0, 1.0, 1.0) if value is None else colours(norm(value))
        ink = "#14181f" if np.dot(colour[:3], (0.299, 0.587, 0.114)) > 0.55 else "#ffffff"
        box = {"boxstyle": "square,pad=0.12", "facecolor": colour, "edgecolor": "none"}
        axes.text(at, line, written, family=family, fontsize=9, va="center", color=ink, bbox=box, clip_on=True)
    num_all = len(item.input_tokens) + (0 if map.of_target_N is None else 1 + len(item.tokens))
    note = f" (first {len(values)} of {num_all} tokens)" if len(values) < num_all else ""
    axes.set_title(f"{shortened(map.title, 50)}{note}")
    said = f"{map.is_not}\n{'; '.join(measured(map))}"
    axes.text(0, -0.02, said, transform=axes.transAxes, va="top", fontsize=8)
    bar = part.colorbar(ScalarMappable(norm, colours), ax=axes, location="right", fraction=0.015, pad=0.01)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5)


def _paint_matrix(part: SubFigure, item: ExplainedText, layer: Layer, theme: Theme) -> None:
    rows, columns = (labels[:MAX_LABELS] for labels in item.labels_of(layer))
    share = min(0.95, (CELL * len(columns) + 1.6) / WIDTH)
    axes = part.add_subplot(part.add_gridspec(1, 2, width_ratios=[share, 1 - share])[0])
    weights_NM = layer.weights_HNM.mean(0)
    shown_NM = weights_NM[: len(rows), : len(columns)]
    colours = on_paper(heat_of(shown_NM)[0])
    limit = float(np.abs(shown_NM).max()) or 1.0
    image = axes.imshow(shown_NM, cmap=colours, vmin=-limit if shown_NM.min() < 0 else 0, vmax=limit, aspect="equal")
    axes.set_xticks(range(len(columns)), [shortened(token, 12) or "␣" for token in columns], rotation=90, fontsize=7.5)
    axes.set_yticks(range(len(rows)), [shortened(token, 12) or "␣" for token in rows], fontsize=7.5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelcolor=theme.ink, pad=2)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    is_cropped = shown_NM.shape != weights_NM.shape
    cropped = f"; first {len(rows)} × {len(columns)} of {' × '.join(map(str, weights_NM.shape))}" if is_cropped else ""
    looks = "target (rows) looks at source" if layer.kind == "cross" else "who looks (rows) at whom"
    part.suptitle(
        f"{shortened(layer.name, 40)}, mean of {len(layer.weights_HNM)} heads: {looks}{cropped}",
        x=0.01,
        ha="left",
        fontsize=9.5,
    )
    bar = part.colorbar(image, ax=axes, fraction=0.03, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5)
