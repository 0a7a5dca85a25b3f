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
    "#ffffff", "#1c2430", "#5b6675", "#e3e7ed", "#0072b2", "#d55e00", "#8a93a0", ("#f4f7fb", "#5aa3d0", "#08366b")
)
DARK = Theme(
    "#1a1f27", "#e6eaf0", "#9aa6b5", "#333b47", "#56b4e9", "#f0a03c", "#7d8896", ("#222934", "#2f7fb5", "#cfe8fb")
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


def draw(name: str, alt: str, paint: Paint, width: float = 5.4, height: float = 3.4) -> Drawing:
    """`paint` is called once per theme, on an empty figure of that many inches."""
    light, dark = (_with_palette(_png(paint, theme, width, height)) for theme in (LIGHT, DARK))
    return Drawing(name, alt, light, dark, round(96 * width), round(96 * height))


def draw_photographs(name: str, alt: str, paint: Paint, width: float, height: float) -> Drawing:
    """A figure of photographs: on white in every theme, in all colours."""
    png = _png(paint, LIGHT, width, height)
    return Drawing(name, alt, png, png, round(96 * width), round(96 * height))


def data_uri(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def plain_labels(texts: Iterable) -> None:
    """Names of people's classes are not mathematics, whatever dollar signs are in them."""
    for text in texts:
        text.set_parse_math(False)


def _png(paint: Paint, theme: Theme, width: float, height: float) -> bytes:
    # rc_context restores the settings of the process; figures keep what they were made with.
    with mpl.rc_context(_settings(theme)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")  # drawn as a box
        figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure, theme)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=DPI)
    return stream.getvalue()


def _with_palette(png: bytes) -> bytes:
    """Three times smaller, and charts have few colours."""
    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


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
