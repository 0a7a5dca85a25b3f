"""How the tutorial's pictures look: maps of weights, and neighbourhoods drawn as graphs."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc
from PIL import Image
from torch import Tensor

FOLDER = Path(__file__).resolve().parent

PURPLE, BLUE, GREEN, ACCENT, FAINT = "#440154", "#31688e", "#2a9d68", "#e4572e", "#b9c3cc"

plt.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "white",
        "figure.constrained_layout.use": True,
        "savefig.dpi": 110,
        "lines.linewidth": 2,
    }
)


def show(figure: Figure, name: str, alt: str) -> None:
    """Save a picture; the alt text says in words what it shows."""
    assert alt
    drawn = BytesIO()
    figure.savefig(drawn)
    # 128 colours look the same and halve the file.
    Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)
    plt.close(figure)


def heatmap(
    ax: Axes,
    matrix: Tensor,
    rows: list[str] | None = None,
    columns: list[str] | None = None,
    *,
    title: str = "",
    cmap: str = "viridis",
    digits: int | None = None,
    vmin: float | None = 0.0,
    vmax: float | None = None,
) -> None:
    """A matrix as colours; `digits` also writes the numbers."""
    image = ax.imshow(matrix.detach().numpy(), cmap=cmap, vmin=vmin, vmax=vmax)
    ax.set_title(title)
    ax.set_xticks(range(len(columns or ())), columns or (), rotation=90)
    ax.set_yticks(range(len(rows or ())), rows or ())
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if digits is not None:
        for i, row in enumerate(matrix.tolist()):
            for j, value in enumerate(row):
                colour = "black" if image.norm(value) > 0.6 else "white"
                ax.text(j, i, f"{value:.{digits}f}", ha="center", va="center", color=colour, fontsize=8)


def mask_matrix(ax: Axes, allowed: Tensor, focus: int, title: str) -> None:
    """Row i: who is looking, column j: who is seen; the row of `focus` stands out."""
    picture = allowed.to(torch.float32) * 0.45
    picture[focus] = allowed[focus].to(torch.float32)
    colours = plt.matplotlib.colors.LinearSegmentedColormap.from_list("mask", ["#f1f3f5", BLUE, ACCENT])
    ax.imshow(picture.numpy(), cmap=colours, vmin=0, vmax=1)
    ax.set_title(title)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(FAINT)


def line_graph(ax: Axes, allowed: Tensor, focus: int) -> None:
    """Tokens on a line; an arc above looks back, an arc below looks ahead."""
    length = len(allowed)
    for i, j in allowed.nonzero().tolist():
        middle, width = (i + j) / 2, abs(i - j)
        colour, thick, over = (ACCENT, 1.8, 2) if i == focus else (FAINT, 0.7, 1)
        half = (0, 180) if j < i else (180, 360)
        ax.add_patch(
            Arc((middle, 0), width, width, theta1=half[0], theta2=half[1], color=colour, lw=thick, zorder=over)
        )
    nodes = [ACCENT if i == focus else BLUE for i in range(length)]
    ax.scatter(range(length), [0] * length, s=26, c=nodes, zorder=3)
    _bare(ax, (-0.8, length - 0.2), (-length * 0.52, length * 0.52))


def plane_graph(ax: Axes, allowed: Tensor, place_N2: Tensor, focus: int) -> None:
    """Tokens at (row, column) places; lines join those that look at each other."""
    place = place_N2.double()
    for i, j in allowed.nonzero().tolist():
        colour, thick, over = (ACCENT, 1.8, 2) if i == focus else (FAINT, 0.9, 1)
        ax.plot(place[[i, j], 1], place[[i, j], 0], color=colour, lw=thick, zorder=over)
    nodes = [ACCENT if i == focus else BLUE for i in range(len(place))]
    ax.scatter(place[:, 1], place[:, 0], s=26, c=nodes, zorder=3)
    (top, left), (bottom, right) = place.min(0).values.tolist(), place.max(0).values.tolist()
    _bare(ax, (left - 0.6, right + 0.6), (bottom + 0.6, top - 0.6))


def _bare(ax: Axes, xlim: tuple[float, float], ylim: tuple[float, float]) -> None:
    ax.set(xticks=[], yticks=[], xlim=xlim, ylim=ylim, aspect="equal")
    ax.spines[:].set_visible(False)
