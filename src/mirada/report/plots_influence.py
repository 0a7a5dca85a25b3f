"""What the model uses: how much worse it gets without each layer, and what location does by itself."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mirada.data.geo.blocks import block_km
from mirada.data.geo.sphere import KM_PER_DEGREE, nearest_km
from mirada.report.contents import Contents
from mirada.report.plots_maps import Frame, dot_size, visible_heat
from mirada.report.plots_opened import Opened
from mirada.report.plots_validation import Validation
from mirada.report.style import Drawing, Theme, draw, plain_labels
from mirada.report.wording import shortened
from mirada.tasks.location_effect import effect_of_layers, effect_of_location, grid_around

MOST_LAYERS = 25  # drawn
MOST_ROWS = 100  # whose layers are moved around
# Places of the map of location, before those far from all plots are left out, and plots that are moved to each.
POINTS, CHIPS = (600, 16), (240, 8)
LOCATION = "location"


def importance_figure(validation: Validation) -> Drawing | None:
    """By how much the squared error grows when a layer is shuffled among plots, the largest first."""
    importance: dict[str, float] = validation.summary.get("importance") or {}
    ranked = sorted(importance.items(), key=lambda entry: -entry[1])[:MOST_LAYERS]
    if not ranked:
        return None

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        colours = [theme.baseline if name == LOCATION else theme.model for name, _ in ranked]
        axes.barh(range(len(ranked)), [value for _, value in ranked], 0.7, color=colours)
        axes.set_yticks(range(len(ranked)), [shortened(name) for name, _ in ranked])
        plain_labels(axes.get_yticklabels())
        axes.tick_params(axis="y", labelcolor=theme.ink, length=0)
        axes.set_ylim(len(ranked) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("growth of the mean squared error")
        axes.set_title("Without this layer")

    told = ", ".join(f"{name} {value:.3g}" for name, value in ranked[:5])
    alt = f"Growth of the mean squared error when a layer is shuffled; the largest: {told}."
    return draw("importance", alt, paint, 4.7, 1.1 + 0.27 * len(ranked))


def location_effect(run: Contents, opened: Opened) -> dict:
    """The mean prediction of training plots moved to each place, drawn where there are plots."""
    lonlat_N2 = opened.plots.lonlat_N2
    frame = Frame.around(lonlat_N2)
    most_places, samples = POINTS if opened.plots.chips is None else CHIPS
    lonlat_G2, size, cell = _places(frame, lonlat_N2, most_places)
    reach_km = max(block_km(run.data["block"]) / 2, KM_PER_DEGREE * float(np.hypot(*cell)) / 2)
    near_G = nearest_km(lonlat_G2, lonlat_N2) <= reach_km
    layers = opened.layers
    effect_G = np.full(len(lonlat_G2), np.nan)
    effect_G[near_G] = effect_of_location(
        opened.predict, layers[opened.split.train], lonlat_G2[near_G], samples=samples
    )
    layers_N = effect_of_layers(opened.predict, layers[opened.split.test[:MOST_ROWS]], samples=samples)
    sentence = (
        f"Moved from place to place, the same plots are predicted from {np.nanmin(effect_G):.4g} to "
        f"{np.nanmax(effect_G):.4g} on average (standard deviation {np.nanstd(effect_G):.3g}): that is location by "
        f"itself. Held-out plots at the same places differ by {layers_N.std():.3g} (standard deviation): that is "
        "everything else by itself."
    )
    drawing = _effect_map(frame, lonlat_G2, size, effect_G, lonlat_N2, opened.plots.target_name)
    return {"drawing": drawing, "sentence": sentence}


def _places(frame: Frame, lonlat_N2: np.ndarray, most: int) -> tuple[np.ndarray, tuple[int, int], tuple[float, float]]:
    """A grid over what the plots span, its (height, width), and a cell in degrees of a great circle."""
    spanned_N2 = np.stack(frame.place(lonlat_N2), axis=1)
    lon, lat = np.maximum(np.ptp(spanned_N2, axis=0), 1e-6)
    ratio = lat * frame.stretch / lon
    height = int(np.clip(round((most * ratio) ** 0.5), 4, most // 4))
    size = height, most // height
    cell = lat / (size[0] - 1), lon / frame.stretch / (size[1] - 1)
    return grid_around(spanned_N2, size), size, cell


def _effect_map(
    frame: Frame,
    lonlat_G2: np.ndarray,
    size: tuple[int, int],
    effect_G: np.ndarray,
    lonlat_N2: np.ndarray,
    target_name: str,
) -> Drawing:
    lon_HW, lat_HW, effect_HW = (values.reshape(size) for values in (*lonlat_G2.T, effect_G))

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        axes = figure.subplots()
        cells = axes.pcolormesh(lon_HW[0], lat_HW[:, 0], effect_HW, cmap=visible_heat(theme), shading="nearest")
        axes.scatter(
            *frame.place(lonlat_N2),
            s=0.35 * dot_size(len(lonlat_N2)),
            color=theme.baseline,
            linewidths=0,
            alpha=0.8,
        )
        frame.paint(axes, theme)
        bar = figure.colorbar(cells, ax=axes, fraction=0.04, pad=0.03)
        bar.set_label(f"mean predicted {shortened(target_name, 24)}")
        bar.outline.set_visible(False)
        axes.set_title("Location by itself")

    alt = (
        f"Map of the mean predicted {target_name} of the same plots moved to each place, {np.nanmin(effect_G):.3g} to "
    )
    return draw("location", f"{alt}{np.nanmax(effect_G):.3g}.", paint, 4.9, frame.height(3.7, 5.6) + 0.7)
