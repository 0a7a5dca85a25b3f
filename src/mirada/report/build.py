"""From a run folder to report.html and figures/."""

from __future__ import annotations

import datetime
from pathlib import Path

import jinja2

from mirada.errors import MiradaError
from mirada.report import facts
from mirada.report.anatomy import heads_section
from mirada.report.anchors import anchors
from mirada.report.attention import Overlay, attention_pictures, colour_bar, shown_images
from mirada.report.classes import class_section
from mirada.report.contents import Contents, read_contents
from mirada.report.curves import curve_note, learning_curves
from mirada.report.examples import Tile, montage, random_rows, tiles, worst_rows
from mirada.report.headline import headline
from mirada.report.held_out import open_held_out, picture_uri
from mirada.report.labels import label_section
from mirada.report.masks import mask_section
from mirada.report.nodes import node_section
from mirada.report.numbers import number_section
from mirada.report.pixels import pixel_section
from mirada.report.plots import plot_section
from mirada.report.relevance import relevance_pictures
from mirada.report.style import Drawing
from mirada.report.texts import ATTENTION_NOTE
from mirada.report.texts_classify import classify_section
from mirada.report.texts_embed import embed_section
from mirada.report.texts_fill import fill_section
from mirada.report.texts_generate import generate_section
from mirada.report.texts_translate import translate_section
from mirada.train.files import write_atomically, write_text

HERE = Path(__file__).parent
SECTION_OF_TASK = {"single-label": class_section, "multi-label": label_section, "regression": number_section}
SECTION_OF_TEXTS = {
    "translate": translate_section,
    "generate": generate_section,
    "fill": fill_section,
    "single-label": classify_section,
    "embed": embed_section,
}
TEMPLATE_OF_INPUTS = {
    "image": "pictures.html.j2",
    "graph": "nodes.html.j2",
    "pixels": "pixels.html.j2",
    "plots": "plots.html.j2",
    "masks": "masks.html.j2",
}
TEMPLATE_OF_TEXTS = {"single-label": "texts_classify.html.j2"}  # others are named after their task


def build_report(run_path: str | Path) -> Path:
    """Write `<run>/report.html` and the figures; what is missing in the run is said in the report."""
    run = read_contents(run_path)
    known = SECTION_OF_TEXTS if run.is_text else SECTION_OF_TASK
    if run.task not in known and run.inputs not in TEMPLATE_OF_INPUTS:
        raise MiradaError(f"{run.folder.data}: the task {run.task!r} has no report.")
    page = {
        "run": run,
        "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d"),
        "headline": headline(run),
        "curves": learning_curves(run),
        "curve_note": curve_note(run),
        "scores": SECTION_OF_TASK[run.task](run) if run.result and run.task in SECTION_OF_TASK else None,
        **SECTION_OF_INPUTS[run.inputs](run),
        "data": facts.data_facts(run),
        "model": facts.model_facts(run),
        "training": facts.training_facts(run),
        "repeat": facts.repeat_facts(run),
    }
    page["anchors"] = anchors(run, has_scores=page["scores"] is not None)
    page["own_template"] = _template(run)
    for drawing in _drawings(page):
        _write_bytes(run.folder.figures / f"{drawing.name}.png", drawing.light)
    write_text(run.folder.report, render(page))
    return run.folder.report


def render(page: dict) -> str:
    """Everything that comes from the run is escaped: names of classes and files are other people's text."""
    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["uri"] = picture_uri
    return environment.get_template("report.html.j2").render(page)


def _write_bytes(path: Path, content: bytes) -> None:
    def write(partial: Path) -> None:
        partial.write_bytes(content)

    write_atomically(path, write)


def _pictures(run: Contents) -> dict:
    """Images of the run, or the sentence that says why there are none."""
    page: dict = {"mistakes": [], "examples": [], "attention": None, "relevance": None, "heads": None}
    page |= {
        "montages": [],
        "no_pictures": None,
        "no_attention": None,
        "no_relevance": None,
        "colour_bar": picture_uri(colour_bar()),
    }
    if not run.predictions:
        reason = "There are no predictions of held-out images in this run."
        return page | {"no_pictures": reason, "no_attention": reason}
    drawn = random_rows(run)
    try:
        reader = open_held_out(run)
        page["examples"] = tiles(run, drawn, reader)
        page["mistakes"] = tiles(run, worst_rows(run), reader)
    except MiradaError as error:
        reason = f"The held-out images cannot be shown: {error}"
        return page | {"no_pictures": reason, "no_attention": reason}
    page["montages"] += [montage("predictions", page["examples"])]
    page["montages"] += [montage("mistakes", page["mistakes"])] if page["mistakes"] else []
    try:
        images = shown_images(run, drawn, reader)
        page["attention"] = attention_pictures(images)
        page["heads"] = heads_section(images.model, images.inputs)
        page["relevance"] = relevance_pictures(run, images)
    except MiradaError as error:
        reason = f"No attention is shown: {str(error).rstrip('.')}."
        page["no_relevance" if page["attention"] else "no_attention"] = reason
    if page["attention"]:
        page["montages"].append(montage("attention", _side_by_side(page["attention"].overlays)))
    return page


def _side_by_side(overlays: list[Overlay]) -> list[Tile]:
    return [
        tile
        for shown in overlays
        for tile in (shown.tile, Tile(shown.picture, shown.tile.name, (("", "attention"),), None))
    ]


def _nodes(run: Contents) -> dict:
    return {"nodes": node_section(run)}


def _pixels(run: Contents) -> dict:
    return {"pixels": pixel_section(run)}


def _masks(run: Contents) -> dict:
    return {"masks": mask_section(run)}


def _plots(run: Contents) -> dict:
    return {"plots": plot_section(run)}


def _texts(run: Contents) -> dict:
    return {"texts": SECTION_OF_TEXTS[run.task](run), "attention_note": ATTENTION_NOTE}


SECTION_OF_INPUTS = {
    "image": _pictures,
    "graph": _nodes,
    "pixels": _pixels,
    "plots": _plots,
    "masks": _masks,
    "text": _texts,
    "pairs": _texts,
}


def _template(run: Contents) -> str:
    if run.is_text:
        return TEMPLATE_OF_TEXTS.get(run.task, f"texts_{run.task}.html.j2")
    return TEMPLATE_OF_INPUTS[run.inputs]


def _drawings(page: dict) -> list[Drawing]:
    """Every figure anywhere in the page."""
    found: list[Drawing] = []
    waiting: list[object] = [value for key, value in page.items() if key != "run"]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Drawing):
            found.append(value)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found
