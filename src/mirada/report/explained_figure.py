"""Explanations as figures for a paper or a slide: relevance on the picture or on the tokens, each with its scale.

Shape letters: R rows and C columns of patches, H height, W width.
"""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from mirada.errors import MiradaError
from mirada.report import style
from mirada.report.explained_items import ExplainedImage, ExplainedText, Item, Map
from mirada.report.explained_tokens import heat_of, measured, paint_text
from mirada.report.held_out import displayable
from mirada.report.wording import percent, shortened
from mirada.train.files import write_atomically

MAX_COLUMNS = 4
PANEL = 2.9  # inches
OPACITY = 0.6
MAX_ANSWERS = 5
LETTERS = 42  # of a line below a panel


def explained_figure(item: Item) -> Figure:
    """The input and what mattered in it by every method; of a text, the weights of its last layer too."""
    with mpl.rc_context(style._settings(style.LIGHT)):
        figure = Figure(dpi=style.DPI, layout="constrained")
        FigureCanvasAgg(figure)
        if isinstance(item, ExplainedText):
            paint_text(figure, item, style.LIGHT)
        else:
            _paint_image(figure, item)
        heading = f"{shortened(item.name, 60)}: what mattered for: {shortened(item.target, 50)}"
        figure.suptitle(heading, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def save_png(item: Item, path: str | Path) -> Path:
    return _save(item, Path(path), "png")


def save_svg(item: Item, path: str | Path) -> Path:
    """Vectors, for a paper; letters stay letters."""
    return _save(item, Path(path), "svg")


def said_of(map: Map) -> str:
    """What stands below a picture: what it is not, what it cost, and whether the answer depends on it."""
    return "\n".join(
        [*textwrap.wrap(map.is_not, LETTERS), *measured(map), *([f"cost: {map.cost}"] if map.cost else [])]
    )


def _save(item: Item, path: Path, kind: str) -> Path:
    figure = explained_figure(item)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": item.name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")  # drawn as a box
        write_atomically(
            path,
            lambda partial: figure.savefig(partial, format=kind, metadata={"Date": None} if kind == "svg" else None),
        )
    return path


def _paint_image(figure: Figure, item: ExplainedImage) -> None:
    maps = item.maps or [_last_attention(item)]
    columns = min(MAX_COLUMNS, 1 + len(maps))
    rows = -(-(1 + len(maps)) // columns)
    height, width = item.picture_HWC.shape[:2]
    panel_height = PANEL * min(2.0, max(0.5, height / width))
    figure.set_size_inches(columns * PANEL + 0.3, rows * (panel_height + 1.7) + 0.5)
    figure.set_layout_engine("constrained", h_pad=0.07)
    # Pictures in one row and what stands below them in the next, so that all pictures are of one size.
    grid = figure.add_gridspec(2 * rows, columns, height_ratios=[panel_height, 0.1] * rows)
    panels = [
        [figure.add_subplot(grid[2 * (number // columns) + below, number % columns]) for below in (0, 1)]
        for number in range(1 + len(maps))
    ]
    picture = displayable(item.picture_HWC)
    first, under = panels[0]
    _plain(first)
    first.imshow(picture, interpolation="nearest")
    first.set_title("input")
    answers = [f"{shortened(name, 26)}  {percent(share)}" for name, share in item.answers[:MAX_ANSWERS]]
    under.set_axis_off()
    under.text(0, 1, "\n".join(answers), va="top", fontsize=8.5)
    for (axes, below), map in zip(panels[1:], maps, strict=True):
        _paint_map(figure, axes, below, item, map, picture)


def _paint_map(figure: Figure, axes: Axes, below: Axes, item: ExplainedImage, map: Map, picture: np.ndarray) -> None:
    _plain(axes)
    height, width = picture.shape[:2]
    grey = np.asarray(Image.fromarray(picture).convert("L"))
    axes.imshow(grey, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0), interpolation="nearest")
    (rows, columns), (cell_height, cell_width) = map.relevance_RC.shape, item.cell(map.relevance_RC.shape)
    colours, limits = heat_of(map.relevance_RC)
    axes.imshow(
        map.relevance_RC,
        cmap=colours,
        vmin=limits[0],
        vmax=limits[1],
        alpha=OPACITY,
        extent=(0, columns * cell_width, rows * cell_height, 0),
        interpolation="nearest",
    )
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_title(shortened(map.title, 34))
    bar = figure.colorbar(ScalarMappable(Normalize(*limits), colours), cax=below, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5)
    bar.locator = MaxNLocator(4)
    bar.set_label(said_of(map), fontsize=7.5, color=style.LIGHT.ink)


def _last_attention(item: ExplainedImage) -> Map:
    """Where the last layer with a grid looks, for an input without relevance."""
    layer = next((layer for layer in reversed(item.placed_layers) if len(layer.keys[0]) == 2), None)
    if layer is None:
        raise MiradaError(
            f"{item.name} has neither relevance nor a layer whose tokens lie on the picture: nothing to draw"
        )
    size, num_extra = layer.keys
    mean_NM = layer.weights_HNM.mean(0)
    row_M = mean_NM[0] if layer.queries[1] else mean_NM.mean(0)
    alone = layer.asker or "the query of this layer"
    who = alone if len(mean_NM) == 1 else "the class token" if layer.queries[1] else "all tokens"
    title = f"attention of {who}"
    is_not = f"Weights of {layer.name}, mean of the heads. They are not evidence of what caused the answer."
    return Map("attention", title, is_not, row_M[num_extra:].reshape(size))


def _plain(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
