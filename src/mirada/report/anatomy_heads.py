"""Figures of heads: how far and how widely each looks, and what share of its attention special tokens have.

Shape letters: H heads, T heads of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from mirada.explain.anatomy import Anatomy, Heads
from mirada.explain.anatomy.divergence import LARGEST
from mirada.report.style import Drawing, Theme, draw

LANDMARKS = {
    "extra": "tokens without a place",
    "self": "oneself",
    "first": "the first token",
    "previous": "the token before",
    "next": "the token after",
}
SPREAD = 0.18  # of a layer's heads, so that equal ones do not hide each other
WIDE, NARROW = 9.6, 4.7


def distance_drawing(anatomy: Anatomy) -> Drawing | None:
    shown = [layer for layer in anatomy.heads if "distance" not in layer.missing]
    if not shown:
        return None

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        _dots(axes, theme, shown, [h.distance_H for h in shown], [h.uniform_distance for h in shown])
        axes.set_title("How far heads look")
        axes.set_ylabel(f"mean distance ({anatomy.unit})")
        axes.set_ylim(0, _room([*(h.distance_H for h in shown), [h.uniform_distance for h in shown]]))
        _legend(figure, axes)

    told = "; ".join(
        f"layer {h.label} {_range(h.distance_H)} {anatomy.unit}, uniform {h.uniform_distance:.3g}" for h in shown
    )
    return draw("anatomy-distance", f"Mean attention distance of each head: {told}.", paint, *_size(shown))


def entropy_drawing(anatomy: Anatomy) -> Drawing | None:
    shown = [layer for layer in anatomy.heads if "entropy" not in layer.missing]
    if not shown:
        return None

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        _dots(axes, theme, shown, [h.entropy_H for h in shown], [h.uniform_entropy for h in shown])
        axes.set_title("How widely heads look")
        axes.set_ylabel("mean entropy (nats)")
        axes.set_ylim(0, _room([[h.uniform_entropy for h in shown]]))
        _legend(figure, axes)

    told = "; ".join(f"layer {h.label} {_range(h.entropy_H)} nats, uniform {h.uniform_entropy:.3g}" for h in shown)
    return draw("anatomy-entropy", f"Mean entropy of each head: {told}.", paint, *_size(shown))


def landmark_drawing(anatomy: Anatomy) -> Drawing | None:
    names = [name for name in LANDMARKS if any(name in layer.to_H for layer in anatomy.heads)]
    if not names:
        return None

    def paint(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for name, axes in zip(names, panels, strict=True):
            shown = [layer for layer in anatomy.heads if name in layer.to_H]
            _dots(axes, theme, shown, [h.to_H[name] for h in shown], [h.uniform_to[name] for h in shown])
            axes.set_title(f"to {LANDMARKS[name]}", fontsize=9.5)
        panels[0].set_ylabel("share of attention")
        panels[0].set_ylim(0, _room([values_H for layer in anatomy.heads for values_H in layer.to_H.values()]))
        _legend(figure, panels[0])

    told = "; ".join(
        f"to {LANDMARKS[name]} {_range(np.concatenate([h.to_H[name] for h in anatomy.heads if name in h.to_H]))}"
        for name in names
    )
    width = max(NARROW, min(WIDE, 3.2 * len(names)))
    return draw("anatomy-landmarks", f"Shares of attention, from head to head: {told}.", paint, width, 3.2)


def divergence_drawing(anatomy: Anatomy) -> Drawing | None:
    """All heads against all others."""
    apart_TT, ends = anatomy.divergence_TT, np.cumsum([layer.num_heads for layer in anatomy.heads])
    if len(apart_TT) < 2 or np.isnan(apart_TT).all():
        return None

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        axes = figure.subplots()
        image = axes.imshow(known(apart_TT), cmap=heat_colours(theme), vmin=0, vmax=LARGEST, interpolation="nearest")
        centres = ends - np.array([layer.num_heads for layer in anatomy.heads]) / 2 - 0.5
        names = [layer.label for layer in anatomy.heads]
        axes.set_xticks(centres, names, rotation=rotation_of(names))
        axes.set_yticks(centres, names)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        for end in ends[:-1]:
            axes.axhline(end - 0.5, color=theme.paper, linewidth=0.8)
            axes.axvline(end - 0.5, color=theme.paper, linewidth=0.8)
        axes.set_title("How differently heads look")
        axes.set_xlabel("heads, by layer")
        axes.set_ylabel("heads, by layer")
        bar = figure.colorbar(image, ax=axes, fraction=0.045, pad=0.02)
        bar.set_label("divergence (nats), at most 0.693")
        bar.outline.set_visible(False)

    told = "; ".join(
        f"layer {h.label} {value:.3f}"
        for h, value in zip(anatomy.heads, within_layers(anatomy), strict=True)
        if value == value
    )
    told = told or "no layer has two heads"
    return draw("anatomy-divergence", f"Divergence between heads; mean within layers: {told}.", paint, NARROW, 4.0)


def within_layers(anatomy: Anatomy) -> list[float]:
    """Mean divergence between the different heads of each layer; NaN where there is one head."""
    found, start = [], 0
    for layer in anatomy.heads:
        block = anatomy.divergence_TT[start : start + layer.num_heads, start : start + layer.num_heads]
        pairs = block[np.triu_indices(layer.num_heads, 1)]
        found.append(float(pairs.mean()) if len(pairs) else np.nan)
        start += layer.num_heads
    return found


def _dots(
    axes: Axes, theme: Theme, shown: Sequence[Heads], values: Sequence[np.ndarray], even: Sequence[float]
) -> None:
    """A dot for every head, sorted from left to right within its layer, and a bar at what uniform attention has."""
    for number, values_H in enumerate(values):
        place_H = number + np.linspace(-SPREAD, SPREAD, len(values_H)) * (len(values_H) > 1)
        axes.plot(place_H, np.sort(values_H), "o", color=theme.model, alpha=0.8, markeredgewidth=0, label="a head")
        axes.plot(
            [number - 0.36, number + 0.36],
            [even[number]] * 2,
            color=theme.baseline,
            linewidth=1.6,
            label="uniform attention",
        )
    names = [layer.label for layer in shown]
    axes.set_xticks(range(len(shown)), names, rotation=rotation_of(names))
    axes.set_xlim(-0.6, len(shown) - 0.4)
    axes.set_xlabel("layer")
    axes.grid(visible=False, axis="x")


def _legend(figure: Figure, axes: Axes) -> None:
    handles, words = axes.get_legend_handles_labels()
    figure.legend(handles[:2], words[:2], loc="outside lower center", ncols=2)


def rotation_of(names: Sequence[str]) -> int:
    return 90 if max(map(len, names)) > 5 else 0


def known(matrix: np.ndarray) -> np.ma.MaskedArray:
    """Without what is not comparable."""
    return np.ma.masked_invalid(matrix)


def heat_colours(theme: Theme) -> Colormap:
    return theme.heat_map.with_extremes(bad=theme.line)


def _room(values: Sequence[Sequence[float] | np.ndarray]) -> float:
    return 1.08 * max(float(np.nanmax(each)) for each in values) or 1.0


def _range(values_H: np.ndarray) -> str:
    found = values_H[np.isfinite(values_H)]
    if len(found) == 0:
        return "undefined"
    return f"{found.min():.3g}" if len(found) == 1 else f"{found.min():.3g} to {found.max():.3g}"


def _size(shown: Sequence[Heads]) -> tuple[float, float]:
    return (NARROW if len(shown) <= 14 else WIDE), 3.2
