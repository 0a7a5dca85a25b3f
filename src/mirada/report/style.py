"""One look for all figures, on light and on dark pages. Colours are told apart with any kind of colour vision (Okabe
and Ito 2008). Drawn on plain Figure objects: no state that outlives a call.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from PIL import Image

DPI = 180
# The first that has a glyph draws it, so class names in other scripts are readable where a font for them is installed.
FONTS = ("DejaVu Sans", "Noto Sans CJK JP", "Noto Sans", "Arial Unicode MS", "Microsoft YaHei", "PingFang SC")


@dataclass(frozen=True)
class Theme:
    """Colours of a page; `paper` is the card on which figures lie, as in style.css."""

    paper: str
    ink: str
    faint: str
    line: str
    model: str
    baseline: str
    third: str
    heat: tuple[str, str, str]

    @property
    def heat_map(self) -> LinearSegmentedColormap:
        return LinearSegmentedColormap.from_list("heat", self.heat)


LIGHT = Theme(
    paper="#ffffff",
    ink="#1c2430",
    faint="#5b6675",
    line="#e3e7ed",
    model="#0072b2",
    baseline="#d55e00",
    third="#8a93a0",
    heat=("#f4f7fb", "#5aa3d0", "#08366b"),
)
DARK = Theme(
    paper="#1a1f27",
    ink="#e6eaf0",
    faint="#9aa6b5",
    line="#333b47",
    model="#56b4e9",
    baseline="#f0a03c",
    third="#7d8896",
    heat=("#222934", "#2f7fb5", "#cfe8fb"),
)

Paint = Callable[[Figure, Theme], None]


@dataclass(frozen=True)
class Drawing:
    """A figure of the report, in both themes. `alt` says what can be read from it."""

    name: str
    alt: str
    light: bytes
    dark: bytes
    width: int
    height: int

    @property
    def light_uri(self) -> str:
        return data_uri(self.light, "png")

    @property
    def dark_uri(self) -> str:
        return data_uri(self.dark, "png")


def draw(name: str, alt: str, paint: Paint, width: float = 4.9, height: float = 3.2) -> Drawing:
    """`paint` is called once per theme, on an empty figure of that many inches."""
    # A palette makes the files three times smaller, and charts have few colours.
    light, dark = (
        _png(_painted(paint, theme, width, height).quantize(128, dither=Image.Dither.NONE)) for theme in (LIGHT, DARK)
    )
    return Drawing(name, alt, light, dark, round(96 * width), round(96 * height))


def draw_photographs(name: str, alt: str, paint: Paint, width: float, height: float) -> Drawing:
    """A figure of photographs: on white in every theme, in all colours."""
    png = _png(_painted(paint, LIGHT, width, height))
    return Drawing(name, alt, png, png, round(96 * width), round(96 * height))


def data_uri(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def plain_labels(texts: Iterable) -> None:
    """Names of people's classes are not mathematics, whatever dollar signs are in them."""
    for text in texts:
        text.set_parse_math(False)


def _painted(paint: Paint, theme: Theme, width: float, height: float) -> Image.Image:
    # rc_context restores the settings of the process; figures keep what they were made with.
    with mpl.rc_context(_settings(theme)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")  # drawn as a box
        figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        paint(figure, theme)
        canvas.draw()  # savefig would draw twice
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _settings(theme: Theme) -> dict:
    installed = {font.name for font in fontManager.ttflist}
    return {
        "font.family": [name for name in FONTS if name in installed] or ["sans-serif"],
        "font.size": 9.5,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 9,
        "axes.labelsize": 9.5,
        "axes.facecolor": theme.paper,
        "figure.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "text.color": theme.ink,
        "axes.titlecolor": theme.ink,
        "axes.labelcolor": theme.faint,
        "axes.edgecolor": theme.line,
        "xtick.color": theme.line,
        "ytick.color": theme.line,
        "xtick.labelcolor": theme.faint,
        "ytick.labelcolor": theme.faint,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": theme.line,
        "grid.linewidth": 0.7,
        "lines.linewidth": 2.0,
        "lines.markersize": 4.5,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "text.parse_math": False,
    }
