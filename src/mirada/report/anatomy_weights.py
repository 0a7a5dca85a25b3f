"""Figures of layers and of what they hold: similarity matrices, first filters, learned positions.

Shape letters: K tiles, C channels, h and w pixels, N places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mirada.explain.anatomy import Alignment, Anatomy, Filters, Positions
from mirada.report.anatomy_heads import NARROW, WIDE, heat_colours, known, rotation_of
from mirada.report.style import Drawing, Theme, draw, draw_photographs
from mirada.report.wording import p_value

NUM_TILES, TILES_IN_ROW = 28, 7
GAP_SHARE = 24  # pixels of a tile in the mosaic, to 2 of a gap
MOST_WRITTEN = 12  # rows up to which the numbers stand in the cells
MOST_PLACES = 14 * 14  # up to which every place has its tile


def similarity_drawing(anatomy: Anatomy) -> Drawing | None:
    names = [layer.label for layer in anatomy.heads]
    if not np.isfinite(anatomy.similarity_LL[np.triu_indices(len(names), 1)]).any():
        return None  # no two layers look at the same tokens
    return _matrix(
        "anatomy-similarity", "How alike the maps of layers are", "cosine", anatomy.similarity_LL, names, names
    )


def alignment_drawing(alignment: Alignment | None, other: str | None = None) -> Drawing | None:
    if alignment is None or len(alignment.layers) < 2:
        return None
    rows, columns = (_short(names) for names in (alignment.layers, alignment.others))
    if other is None:
        return _matrix("anatomy-cka", "How alike what layers know is", "CKA", alignment.cka_FF, rows, columns)
    title = "What layers of both models know"
    return _matrix("anatomy-cka-against", title, "CKA", alignment.cka_FF, rows, columns, ("this model", "the other"))


def filter_drawing(filters: Filters) -> Drawing:
    """Principal components of patches, or the strongest filters of a first convolution; and the variance curve."""
    tiles_KChw = filters.components_KChw if filters.are_patches else filters.filters_DChw
    shown = tiles_KChw[:NUM_TILES]
    num_rows = -(-len(shown) // TILES_IN_ROW)

    def paint(figure: Figure, theme: Theme) -> None:
        left, right = figure.subfigures(1, 2, width_ratios=(1.35, 1))  # type: ignore[misc]  # two of them
        axes = left.subplots()
        axes.imshow(mosaic([coloured(tile_Chw) for tile_Chw in shown]), interpolation="nearest")
        axes.set_axis_off()
        axes.set_title("Principal components of patches" if filters.are_patches else "Filters, the strongest first")
        axes = right.subplots()
        counted = np.arange(1, len(filters.variance_K) + 1)
        axes.plot(counted, 100 * filters.variance_K.cumsum(), color=theme.model)
        axes.set_title("Variance explained")
        axes.set_xlabel("principal components")
        axes.set_ylabel("%")
        axes.set_ylim(0, 103)

    few = ", ".join(f"{k} explain {100 * filters.variance_K[:k].sum():.0f} %" for k in _milestones(filters.variance_K))
    alt = f"{len(shown)} filters of {filters.name}; components: {few}; low frequencies {p_value(filters.p_low_first)}."
    return draw_photographs("anatomy-filters", alt, paint, WIDE, 0.62 * num_rows + 1.1)


def position_drawing(positions: Positions) -> Drawing:
    """A tile per place: how alike its vector is to that of every other place."""
    size = positions.size
    is_tiled = len(size) == 2 and np.prod(size) <= MOST_PLACES
    picture = tiled(positions) if is_tiled else positions.cosine_NN
    # Every place is like itself; the colours are for the others.
    others = positions.cosine_NN[np.triu_indices(len(positions.cosine_NN), 1)]
    low, high = float(others.min()), float(others.max())

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        axes = figure.subplots()
        image = axes.imshow(known(picture), cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.set_title("How alike positions are")
        if is_tiled:
            step = np.array(size) + 1
            axes.set_xticks(np.arange(size[1]) * step[1] + (size[1] - 1) / 2, _counted(size[1]))
            axes.set_yticks(np.arange(size[0]) * step[0] + (size[0] - 1) / 2, _counted(size[0]))
            axes.set_xlabel("column of the patch")
            axes.set_ylabel("row of the patch")
        else:
            axes.set_xlabel("place")
            axes.set_ylabel("place")
        axes.tick_params(length=0)
        bar = figure.colorbar(image, ax=axes, fraction=0.045, pad=0.02, extend="max")
        bar.set_label("cosine")
        bar.outline.set_visible(False)

    alt = (
        f"Cosines between position vectors on {' × '.join(map(str, size))} places: {positions.related} "
        f"{positions.mean_related:.3f}, others {positions.mean_others:.3f}, permutation test {p_value(positions.p)}."
    )
    return draw("anatomy-positions", alt, paint, NARROW, 4.2)


def mosaic(tiles: Sequence[np.ndarray]) -> np.ndarray:
    """Tiles (h, w, 3) in rows, white between them; each pixel is several, so that gaps are narrower than a pixel."""
    height, width = tiles[0].shape[:2]
    factor = max(1, GAP_SHARE // min(height, width))
    gap, num_rows = 2, -(-len(tiles) // TILES_IN_ROW)
    step_y, step_x = height * factor + gap, width * factor + gap
    picture = np.ones((num_rows * step_y - gap, TILES_IN_ROW * step_x - gap, 3))
    for number, tile in enumerate(tiles):
        top, left = number // TILES_IN_ROW * step_y, number % TILES_IN_ROW * step_x
        large = tile.repeat(factor, axis=0).repeat(factor, axis=1)
        picture[top : top + height * factor, left : left + width * factor] = large
    return picture


def tiled(positions: Positions) -> np.ndarray:
    """The tile of a place lies where the place lies, NaN between tiles."""
    height, width = positions.size
    picture = np.full((height * (height + 1) - 1, width * (width + 1) - 1), np.nan)
    tiles = positions.cosine_NN.reshape(height, width, height, width)
    for row in range(height):
        for column in range(width):
            top, left = row * (height + 1), column * (width + 1)
            picture[top : top + height, left : left + width] = tiles[row, column]
    return picture


def coloured(tile_Chw: np.ndarray) -> np.ndarray:
    """(h, w, 3) in 0..1, grey for zero; of many channels the first three, of one or two the first."""
    bands = tile_Chw[:3] if len(tile_Chw) >= 3 else np.repeat(tile_Chw[:1], 3, axis=0)
    return 0.5 + 0.5 * (bands / max(float(np.abs(bands).max()), 1e-12)).transpose(1, 2, 0)


def _matrix(
    name: str,
    title: str,
    measure: str,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    sides: tuple[str, str] = ("", ""),
) -> Drawing:
    low = min(0.0, float(np.nanmin(values)))

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        axes = figure.subplots()
        image = axes.imshow(known(values), cmap=heat_colours(theme), vmin=low, vmax=1, interpolation="nearest")
        axes.set_xticks(range(len(columns)), columns, rotation=rotation_of(columns))
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.set_title(title)
        axes.set_ylabel(f"layer of {sides[0]}" if sides[0] else "layer")
        axes.set_xlabel(f"layer of {sides[1]}" if sides[1] else "layer")
        if max(len(rows), len(columns)) <= MOST_WRITTEN:
            _write_numbers(axes, theme, values, low)
        bar = figure.colorbar(image, ax=axes, fraction=0.045, pad=0.02)
        bar.set_label(measure)
        bar.outline.set_visible(False)

    others = values[np.triu_indices(len(values), 1)] if sides == ("", "") else values.flatten()
    found = others[np.isfinite(others)]
    told = f"from {found.min():.2f} to {found.max():.2f}, mean {found.mean():.2f}" if len(found) else "not comparable"
    return draw(name, f"{title}: {measure} between different layers {told}.", paint, NARROW, 4.0)


def _write_numbers(axes, theme: Theme, values: np.ndarray, low: float) -> None:
    size = min(8.0, 62.0 / max(values.shape))
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            is_dark = (value - low) / (1 - low) > 0.5
            axes.text(
                column,
                row,
                f"{value:.2f}".replace("-", "−"),
                ha="center",
                va="center",
                fontsize=size,
                color=theme.paper if is_dark else theme.ink,
            )


def _short(names: Sequence[str]) -> list[str]:
    """Numbers; of a translator, and of a model of different parts, what the parts are called in front."""
    parts = [name.partition(".")[0] for name in names]
    if len(set(parts)) == 1:
        return _counted(len(names))
    return [f"{part} {parts[: number + 1].count(part)}" for number, part in enumerate(parts)]


def _counted(number: int) -> list[str]:
    return [str(each) for each in range(1, number + 1)]


def _milestones(variance_K: np.ndarray) -> list[int]:
    return [count for count in (1, 5, 10, NUM_TILES) if count <= len(variance_K)]
