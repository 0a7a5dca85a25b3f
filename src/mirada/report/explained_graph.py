"""A matrix of weights as a graph: who looks on the left, who is looked at on the right, an edge per strong weight.

Shape letters: N tokens that look, M tokens that are looked at, E edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from mirada.errors import MiradaError
from mirada.report import style
from mirada.report.wording import shortened

LINE = 0.21  # inches of a token
EDGES_PER_TOKEN = 2  # if not said otherwise


def graph_figure(
    weights_NM: np.ndarray,
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    threshold: float | None = None,
    top_k: int | None = None,
    title: str = "",
) -> Figure:
    """Edges of at least `threshold`, or the `top_k` strongest ones. `keys` are the tokens that are looked at, where
    they are others. Tokens without an edge are left out, and counted."""
    keys = tokens if keys is None else keys
    if weights_NM.shape != (len(tokens), len(keys)):
        raise MiradaError(
            f"weights of shape {weights_NM.shape} for {len(tokens)} tokens that look at {len(keys)}: "
            "expected a row for each that looks and a column for each that is looked at"
        )
    edges_E2, weights_E = strongest(weights_NM, threshold, top_k)
    sides = [np.unique(edges_E2[:, side]) for side in (0, 1)]
    places = [{token: at for at, token in enumerate(side)} for side in sides]
    height = max(map(len, sides))
    with mpl.rc_context(style._settings(style.LIGHT)):
        figure = Figure((5.6, LINE * height + 1.1), dpi=style.DPI, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        lines = [((0, places[0][n]), (1, places[1][m])) for n, m in edges_E2]
        most = float(weights_E.max())
        drawn = LineCollection(
            lines,
            array=weights_E,
            cmap=mpl.colormaps["magma_r"],
            norm=Normalize(0, most),
            linewidths=0.5 + 2.5 * weights_E / most,
        )
        axes.add_collection(drawn)
        for x, side, names, align in ((-0.03, sides[0], tokens, "right"), (1.03, sides[1], keys, "left")):
            for at, token in enumerate(side):
                written = shortened(names[token], 18) or "␣"
                axes.text(x, at, written, ha=align, va="center", fontsize=9)
        axes.set_xlim(-0.55, 1.55)
        axes.set_ylim(height - 0.4, -0.6)
        axes.set_axis_off()
        bar = figure.colorbar(drawn, ax=axes, location="bottom", fraction=0.03, pad=0.02, aspect=45)
        left_out = sum(len(names) - len(side) for names, side in zip((tokens, keys), sides, strict=True))
        alone = f"; {left_out} tokens without one left out" if left_out else ""
        bar.set_label(f"weight; {len(lines)} edges of at least {weights_E.min():.3g}{alone}")
        bar.outline.set_visible(False)
        if title:
            axes.set_title(shortened(title, 60))
    return figure


def strongest(
    weights_NM: np.ndarray, threshold: float | None = None, top_k: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(E, 2) rows and columns of the strongest weights, and the weights, the strongest first; none of them 0."""
    if threshold is not None and top_k is not None:
        raise MiradaError(f"threshold={threshold:g} and top_k={top_k}: give one of them")
    if top_k is not None and top_k < 1:
        raise MiradaError(f"top_k={top_k}: must be at least 1")
    order = np.argsort(-weights_NM, axis=None, kind="stable")
    kept = order[weights_NM.ravel()[order] > 0]
    if threshold is not None:
        kept = kept[weights_NM.ravel()[kept] >= threshold]
    else:
        kept = kept[: EDGES_PER_TOKEN * len(weights_NM) if top_k is None else top_k]
    if not len(kept):
        highest = float(weights_NM.max())
        raise MiradaError(f"no weight is at least {threshold or 0:g}: the highest is {highest:.3g}, so choose less")
    return np.stack(np.unravel_index(kept, weights_NM.shape), 1), weights_NM.ravel()[kept]
