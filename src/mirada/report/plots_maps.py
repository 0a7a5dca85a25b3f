"""Plots on a plain map: longitude and latitude as axes, stretched so that the middle of it has its true shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from mirada.report.style import Drawing, Theme, draw

MARGIN = 0.04  # of what is spanned
LEAST_DEGREES = 0.01
LARGEST_DOT, SMALLEST_DOT = 26.0, 3.0  # points²
SHADES = 25  # so few that the palette of a figure has room for its other colours
MOST_OF_RESIDUALS = 95  # percentile of their size that has the strongest colour


@dataclass(frozen=True)
class Frame:
    """What part of the globe is drawn. Longitudes are those nearest to its middle, so no map is cut at 180°."""

    west: float
    east: float
    south: float
    north: float

    @classmethod
    def around(cls, lonlat_N2: np.ndarray) -> Frame:
        lat_N, radians_N = lonlat_N2[:, 1], np.radians(lonlat_N2[:, 0])
        middle = float(np.degrees(np.arctan2(np.sin(radians_N).mean(), np.cos(radians_N).mean())))
        lon_N = nearest_turn(lonlat_N2[:, 0], middle)
        reach = max(MARGIN * np.ptp(lon_N), MARGIN * np.ptp(lat_N), LEAST_DEGREES)
        return cls(lon_N.min() - reach, lon_N.max() + reach, lat_N.min() - reach, lat_N.max() + reach)

    @property
    def stretch(self) -> float:
        """How much longer a degree of latitude is than one of longitude, in the middle."""
        return 1 / max(float(np.cos(np.radians((self.south + self.north) / 2))), 0.2)

    def height(self, width: float, most: float) -> float:
        """Inches of a map that is so wide, at most `most`."""
        return float(np.clip(width * self.stretch * (self.north - self.south) / (self.east - self.west), 1.6, most))

    def place(self, lonlat_N2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return nearest_turn(lonlat_N2[:, 0], (self.west + self.east) / 2), lonlat_N2[:, 1]

    def paint(self, axes: Axes, theme: Theme, ticks: int = 5) -> None:
        """The graticule."""
        axes.set(xlim=(self.west, self.east), ylim=(self.south, self.north), aspect=self.stretch)
        for axis, (positive, negative) in ((axes.xaxis, "EW"), (axes.yaxis, "NS")):
            axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 3, 5, 10]))
            axis.set_major_formatter(_degrees(positive, negative))
        axes.tick_params(length=0, labelsize=8)
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color(theme.line)


def nearest_turn(lon_N: np.ndarray, middle: float) -> np.ndarray:
    """The same longitudes, none further than half a turn from the middle."""
    return middle + (np.asarray(lon_N, dtype=np.float64) - middle + 180) % 360 - 180


def dot_size(num: int) -> float:
    return float(np.clip(9000 / max(num, 1), SMALLEST_DOT, LARGEST_DOT))


def two_sided(theme: Theme) -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("two sided", (theme.model, theme.line, theme.baseline), SHADES)


def visible_heat(theme: Theme) -> ListedColormap:
    """The colours of heat, without those that nobody sees on this paper."""
    return ListedColormap(theme.heat_map(np.linspace(0.25, 1, SHADES)))


def residual_map(lonlat_N2: np.ndarray, residual_N: np.ndarray, target_name: str) -> Drawing:
    """Where too little and where too much is predicted; the largest residuals lie on top."""
    frame, order = Frame.around(lonlat_N2), np.argsort(np.abs(residual_N), kind="stable")
    most = max(float(np.percentile(np.abs(residual_N), MOST_OF_RESIDUALS)), 1e-9)

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        axes = figure.subplots()
        lon_N, lat_N = frame.place(lonlat_N2[order])
        dots = axes.scatter(
            lon_N,
            lat_N,
            s=dot_size(len(order)),
            c=residual_N[order],
            cmap=two_sided(theme),
            vmin=-most,
            vmax=most,
            linewidths=0.3,
            edgecolors=theme.third,
        )
        frame.paint(axes, theme)
        bar = figure.colorbar(dots, ax=axes, fraction=0.04, pad=0.03, extend="both")
        bar.set_label("measured − predicted")
        bar.outline.set_visible(False)

    alt = f"Map of {len(order):,} held-out plots by measured − predicted {target_name}, mean {residual_N.mean():.3g}."
    return draw("residual-map", alt, paint, 4.9, frame.height(3.9, 5.6) + 0.4)


def split_map(lonlat_of_side: dict[str, np.ndarray]) -> Drawing:
    """Which plots were learned from, chosen by and tested on."""
    frame = Frame.around(np.concatenate(list(lonlat_of_side.values())))
    num = sum(map(len, lonlat_of_side.values()))

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        colours = (theme.third, theme.baseline, theme.model)
        for (side, lonlat_N2), colour in zip(lonlat_of_side.items(), colours, strict=True):
            axes.scatter(*frame.place(lonlat_N2), s=dot_size(num), color=colour, linewidths=0, alpha=0.85, label=side)
        frame.paint(axes, theme)
        figure.legend(loc="outside upper left", ncols=3, markerscale=1.6, handletextpad=0.2)

    counts = ", ".join(f"{len(lonlat)} for {side}" for side, lonlat in lonlat_of_side.items())
    return draw("split", f"Map of the plots: {counts}.", paint, 4.7, frame.height(4.0, 5.6) + 0.6)


def _degrees(positive: str, negative: str) -> FuncFormatter:
    def text(value: float, _: int) -> str:
        value = (value + 180) % 360 - 180 if positive == "E" else value
        sign = "" if abs(value) in (0, 180) else positive if value > 0 else negative
        return f"{abs(value):g}° {sign}".rstrip()

    return FuncFormatter(text)
