"""Held-out nodes of a graph with their answers, and the edges that they look along. Shape letters: H heads, E edges."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mirada.core import record
from mirada.core.record import attention_layers
from mirada.data.graph import UNKNOWN, Graph
from mirada.data.graph_batches import OnGraph
from mirada.data.graph_features import FeatureScale
from mirada.data.graphs import open_graph
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import Row, random_rows, worst_rows
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import percent, shortened
from mirada.train.checkpoint import load_model

NUM_PANELS, NUM_COLUMNS = 6, 3
MAX_SPOKES = 9  # the strongest neighbours of a node that are drawn
# Okabe and Ito 2008; classes beyond these take them again.
COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#f0e442")
UNLABELLED = "#9a9a9a"


def node_section(run: Contents) -> dict:
    """Tables of answers and a picture of attention, or the sentences that say why there are none."""
    section: dict = {"mistakes": [], "examples": [], "drawing": None, "missing": None, "no_attention": None}
    if not run.predictions:
        reason = "There are no predictions of held-out nodes in this run."
        return section | {"missing": reason, "no_attention": reason}
    try:
        graph = _own_graph(run)
    except MiradaError as error:
        reason = f"The held-out nodes cannot be shown: {error}"
        return section | {"missing": reason, "no_attention": reason}
    section["mistakes"] = [_told(row, graph) for row in worst_rows(run)]
    section["examples"] = [_told(row, graph) for row in random_rows(run)]
    try:
        section["drawing"] = neighbourhoods(run, graph)
    except MiradaError as error:
        section["no_attention"] = f"No attention is shown: {str(error).rstrip('.')}."
    return section


def neighbourhoods(run: Contents, graph: Graph) -> Drawing:
    """Some held-out nodes with their strongest neighbours. Raises a MiradaError that says why there is no picture."""
    rows = [row for row in random_rows(run) if len(_neighbours(graph, int(row["row"])))][:NUM_PANELS]
    if not rows:
        raise MiradaError("none of the nodes drawn at random has a neighbour")
    weight_E, edge_2E = _last_weights(run, graph)
    num_rows = -(-len(rows) // NUM_COLUMNS)

    def paint(figure: Figure, theme: Theme) -> None:
        for axes in figure.subplots(num_rows, NUM_COLUMNS, squeeze=False).flat:
            axes.set_axis_off()
        for axes, row in zip(figure.axes, rows, strict=False):
            node = int(row["row"])
            own_E = edge_2E[0] == node
            _paint_spokes(axes, theme, graph, node, edge_2E[1][own_E], weight_E[own_E])
            mark = "✓" if row["predicted"] == row["target"] else "✗"
            said = f"{mark} {shortened(row['name'], 16)}: {shortened(row['predicted'], 16)}"
            axes.set_title(said, fontsize=9, fontweight="normal", loc="center", pad=3)

    return draw("attention", f"Strongest edges of {len(rows)} held-out nodes", paint, 7.6, 2.6 * num_rows)


def _paint_spokes(axes: Axes, theme: Theme, graph: Graph, node: int, seen_E: Tensor, weight_E: Tensor) -> None:
    """The node in the middle, its strongest neighbours around it in the order of their weight."""
    itself = float(weight_E[seen_E == node].sum())
    seen_E, weight_E = seen_E[seen_E != node], weight_E[seen_E != node]
    order = weight_E.argsort(descending=True, stable=True)[:MAX_SPOKES]
    for place, edge in enumerate(order.tolist()):
        angle = np.pi / 2 - 2 * np.pi * place / len(order)
        x, y, share = np.cos(angle), np.sin(angle), float(weight_E[edge])
        axes.plot([0, x], [0, y], color=theme.third, linewidth=0.4 + 9 * share, solid_capstyle="butt", zorder=1)
        axes.plot([x], [y], "o", color=_colour(graph, int(seen_E[edge])), markersize=9, zorder=2)
        axes.text(1.28 * x, 1.28 * y, f"{100 * share:.0f} %", ha="center", va="center", fontsize=7, color=theme.faint)
    axes.plot([0], [0], "o", color=_colour(graph, node), markersize=14, markeredgecolor=theme.ink, zorder=3)
    hidden = len(weight_E) - len(order)
    more = f", {hidden} weaker ones not drawn" if hidden else ""
    axes.text(0, -1.62, f"itself {100 * itself:.0f} %{more}", ha="center", fontsize=7, color=theme.faint)
    axes.set(xlim=(-1.75, 1.75), ylim=(-1.75, 1.5), aspect="equal")


def _colour(graph: Graph, node: int) -> str:
    label = int(graph.labels_N[node])
    return UNLABELLED if label == UNKNOWN else COLOURS[label % len(COLOURS)]


@torch.inference_mode()
def _last_weights(run: Contents, graph: Graph) -> tuple[Tensor, Tensor]:
    """Weights of the last layer, mean over heads, and the edges that they belong to."""
    model = load_model(run.folder.best)
    if not attention_layers(model):
        raise MiradaError(f"{run.system} has no attention layers, so there is nothing to show")
    on_graph = OnGraph(model, graph, FeatureScale.from_dict(run.data["normalisation"]), torch.device("cpu")).eval()
    with record(on_graph, layers=[-1]) as maps:
        on_graph(torch.arange(1))
    (layer,) = maps.names
    return maps[layer][0].mean(0), on_graph.neighbours.edge_2E


def _own_graph(run: Contents) -> Graph:
    graph = open_graph(run.data["source"])
    if graph.checksum() != run.data["checksum"]:
        raise MiradaError(f"{run.data['source']}: changed since the run, so its nodes are no longer those of this run.")
    return graph


def _neighbours(graph: Graph, node: int) -> Tensor:
    return graph.edge_2E[1][graph.edge_2E[0] == node]


def _told(row: Row, graph: Graph) -> dict:
    neighbours = _neighbours(graph, int(row["row"]))
    seen = [graph.classes[label] for label in graph.labels_N[neighbours].tolist() if label != UNKNOWN]
    return {
        "name": row["name"],
        "predicted": row["predicted"],
        "target": row["target"],
        "is_right": row["predicted"] == row["target"],
        "sure": percent(float(row["confidence"])),
        "degree": len(neighbours),
        "like_predicted": seen.count(row["predicted"]),
        "like_target": seen.count(row["target"]),
    }
