"""Which plots a prediction rests on: attention of some held-out plots over the plots that the model keeps.

    α_NP = mean over members and heads of the weights of place N on known plot P

Shape letters: M members, H heads, N places that ask, P plots that are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from mirada.core import record
from mirada.data.geo.sphere import distance_km
from mirada.data.geo.splits import kept_rows, known_rows
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.plots_maps import Frame, dot_size, visible_heat
from mirada.report.plots_opened import Opened
from mirada.report.style import Drawing, Theme, draw, plain_labels
from mirada.report.wording import percent, shortened
from mirada.systems import Spatioformer

NUM_ASKED = 3
STRONGEST_DOT = 150.0  # points²


@dataclass(frozen=True)
class Looks:
    """Where some held-out plots look."""

    asked: np.ndarray  # rows
    seen: np.ndarray  # rows
    weight_NP: np.ndarray
    predicted_N: np.ndarray


def attention_section(run: Contents, opened: Opened) -> dict:
    """Raises a MiradaError that says why there is nothing to show."""
    looks = looks_of(run, opened)
    rows = [_told(opened, looks, n) for n in range(len(looks.asked))]
    return {"drawing": attention_maps(opened, looks), "rows": rows, "num_seen": f"{len(looks.seen):,}"}


@torch.inference_mode()
def looks_of(run: Contents, opened: Opened) -> Looks:
    model, seen = opened.model, plots_seen(run, opened)
    asked = rows_that_ask(opened.plots.targets_N, opened.split.test)
    layers_NLHW = opened.scale.apply(opened.layers_NLHW[torch.from_numpy(asked)])
    with record(model, layers=["attend"]) as maps:
        outputs = model(layers_NLHW)
    weight_NP = maps["attend"].mean((0, 1)).numpy()
    return Looks(asked, seen, weight_NP, opened.task.values(outputs).numpy())


def plots_seen(run: Contents, opened: Opened) -> np.ndarray:
    """Rows of the plots that the model keeps to look at, in its order."""
    model = opened.model
    if not isinstance(model, Spatioformer):
        raise MiradaError(f"{run.system} looks at the pixels around a place, not at other plots.")
    seen = kept_rows(known_rows(opened.split), len(model.known_P))
    known_P = (model.known_P * opened.task.std + opened.task.mean).numpy()
    if len(seen) != len(known_P) or not np.allclose(known_P, opened.plots.targets_N[seen], atol=1e-3 * opened.task.std):
        raise MiradaError("the plots that the model keeps are not those of this run.")
    return seen


def rows_that_ask(targets_N: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """The middle one of the lowest, the middle and the highest third of the held-out plots by what was measured."""
    order = held_out[np.argsort(targets_N[held_out], kind="stable")]
    thirds = [part for part in np.array_split(order, NUM_ASKED) if len(part)]
    return np.array([part[len(part) // 2] for part in thirds])


def attention_maps(opened: Opened, looks: Looks) -> Drawing:
    """The larger a plot, the more it is looked at; its colour is what was measured there."""
    plots, num = opened.plots, len(looks.asked)
    frame = Frame.around(plots.lonlat_N2[np.concatenate([looks.seen, looks.asked])])
    values_P = plots.targets_N[looks.seen]
    low, high = np.percentile(values_P, [2, 98])
    width = 2.9

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")
        panels = figure.subplots(1, num, sharey=True, squeeze=False)[0]
        lon_P, lat_P = frame.place(plots.lonlat_N2[looks.seen])
        for n, axes in enumerate(panels):
            weight_P = looks.weight_NP[n]
            order = np.argsort(weight_P, kind="stable")
            axes.scatter(lon_P, lat_P, s=0.3 * dot_size(len(lon_P)), color=theme.line, linewidths=0)
            dots = axes.scatter(
                lon_P[order],
                lat_P[order],
                s=STRONGEST_DOT * weight_P[order] / weight_P.max(),
                c=values_P[order],
                cmap=visible_heat(theme),
                vmin=low,
                vmax=high if high > low else low + 1,
                linewidths=0.3,
                edgecolors=theme.paper,
            )
            asked = plots.lonlat_N2[looks.asked[n : n + 1]]
            axes.scatter(
                *frame.place(asked),
                marker="*",
                s=170,
                linewidths=0.8,
                color=theme.baseline,
                edgecolors=theme.paper,
                zorder=3,
            )
            frame.paint(axes, theme, ticks=4)
            measured = plots.targets_N[looks.asked[n]]
            said = f"{shortened(plots.name(looks.asked[n]), 24)}\npredicted {looks.predicted_N[n]:.3g}, measured "
            plain_labels([axes.set_title(f"{said}{measured:.3g}", fontsize=8.5, fontweight="normal", pad=5)])
        bar = figure.colorbar(dots, ax=list(panels), fraction=0.02, pad=0.015, extend="both")
        bar.set_label(f"measured {shortened(plots.target_name, 22)}")
        bar.outline.set_visible(False)

    told = "; ".join(
        f"{plots.name(row)} most at {plots.name(looks.seen[int(weights.argmax())])} ({percent(float(weights.max()))})"
        for row, weights in zip(looks.asked, looks.weight_NP, strict=True)
    )
    alt = f"Maps of where {num} held-out plots look: {told}."
    return draw("attention", alt, paint, 0.9 + width * num, frame.height(width - 0.3, 4.6) + 0.8)


def _told(opened: Opened, looks: Looks, n: int) -> dict:
    """A row of the table: how many plots a prediction rests on, and how far they are."""
    plots, weight_P = opened.plots, looks.weight_NP[n]
    km_P = distance_km(plots.lonlat_N2[looks.seen], plots.lonlat_N2[looks.asked[n]])
    order = np.argsort(km_P, kind="stable")
    half = order[np.searchsorted(np.cumsum(weight_P[order]), 0.5 * weight_P.sum())]
    strongest = int(weight_P.argmax())
    return {
        "name": plots.name(looks.asked[n]),
        "predicted": f"{looks.predicted_N[n]:.4g}",
        "measured": f"{plots.targets_N[looks.asked[n]]:.4g}",
        "mean": f"{weight_P @ plots.targets_N[looks.seen] / weight_P.sum():.4g}",
        "effective": f"{weight_P.sum() ** 2 / np.square(weight_P).sum():.3g}",
        "nearest": f"{km_P.min():,.3g} km",
        "half": f"{km_P[half]:,.4g} km",
        "strongest": plots.name(looks.seen[strongest]),
        "share": percent(float(weight_P[strongest])),
        "value": f"{plots.targets_N[looks.seen[strongest]]:.4g}",
        "distance": f"{km_P[strongest]:,.3g} km",
    }
