"""`mirada check`: what is in the data, before training on it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mirada.config.load import parse_settings, resolve
from mirada.config.schema import DataConfig
from mirada.data.check import Inspection, Progress, inspect
from mirada.data.check_text import render
from mirada.data.geo.check import PlotsInspection, inspect_plots
from mirada.data.geo.check_render import render_plots
from mirada.data.geo.read_plots import open_plots
from mirada.data.graph_check import GraphInspection, inspect_graph, render_graph
from mirada.data.graphs import is_graph, open_graph
from mirada.data.masks.check import MaskInspection, inspect_masks, render_masks
from mirada.data.masks.table import open_masks
from mirada.data.text.check import TextInspection, inspect_text
from mirada.data.text.check_render import render_text
from mirada.data.text.sources import is_text, open_text
from mirada.errors import MiradaError
from mirada.verbs.maps.prepare import reading_options as plot_options
from mirada.verbs.masks.prepare import has_masks
from mirada.verbs.prepare import has_plots
from mirada.verbs.text.prepare import reading_options as text_options

AnyInspection = Inspection | GraphInspection | TextInspection | PlotsInspection | MaskInspection

READING = (
    *("task", "path_column", "label_column", "split_column", "group_column"),
    *("image_root", "label_pattern"),
)


def check(
    source: str | Path,
    *,
    settings: Iterable[str] = (),
    near_duplicates: bool = False,
    progress: Progress | None = None,
) -> AnyInspection:
    """Decode every image once, or read the masks, the graph, the plots or the text, and say what was found.

    `settings` such as "data.label_column=species" are train's.
    """
    given = parse_settings(settings)
    if set(given) - {"data"}:
        raise MiradaError(f"setting {sorted(set(given) - {'data'})[0]!r} says nothing about data; give data.… only.")
    config = resolve(given, {"data": {"source": str(source)}})
    if is_graph(source):
        return inspect_graph(open_graph(source))
    if has_plots(config.data):
        return inspect_plots(open_plots(source, **plot_options(config.data)))
    if has_masks(config.data):
        return inspect_masks(open_masks(source, classes=config.data.classes, ignore=config.data.ignore))
    if is_text(source):
        return inspect_text(open_text(source, **text_options(config.data)))
    return inspect(
        source,
        near_duplicates=near_duplicates,
        workers=config.data.workers,
        progress=progress,
        **reading_options(config.data),
    )


def text_of(inspection: AnyInspection) -> str:
    """What was found, for a terminal."""
    if isinstance(inspection, PlotsInspection):
        return render_plots(inspection)
    if isinstance(inspection, MaskInspection):
        return render_masks(inspection)
    if isinstance(inspection, TextInspection):
        return render_text(inspection)
    return render_graph(inspection) if isinstance(inspection, GraphInspection) else render(inspection)


def reading_options(data: DataConfig) -> dict:
    """What open_source takes of a configuration."""
    return {name: getattr(data, name) for name in READING}
