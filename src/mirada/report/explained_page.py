"""One HTML file that shows explanations and lets one ask: no network, no library, all numbers inside.

    weight = low + step · code,   code = round((weight − low) / step) of 0..255,   step = (highest − low) / 255

with one `low` (0, unless weights are negative) and one `step` for every row of every head, so that a weight is off by
at most 1/510 of its row's span. Relevance and curves are stored exactly, as float32.

Shape letters: H heads, N queries, M keys.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup
from matplotlib import colormaps
from PIL import Image

from mirada.errors import MiradaError
from mirada.report.explained_items import ExplainedText, Item, Lattice, Layer, Map, Strip, TokenMap, rows_only
from mirada.report.held_out import displayable
from mirada.report.style import data_uri

HERE = Path(__file__).parent
SCRIPTS = ("", "_weights", "_drawing", "_controls", "_strip", "_matrix", "_image", "_looks", "_text", "_start")
COLOURS = {"heat": "magma", "signed": "RdBu_r"}  # of numbers from zero up, and of numbers on both sides of it
MAX_STEP = 255
LARGEST = 768  # px of a picture's longer side
EXACT = 256  # px up to which pictures are kept exact


def explained_page(items: Sequence[Item], title: str, command: str, *, whole_matrices: bool = True) -> str:
    """`whole_matrices=False` keeps one row of weights per layer and head, see `rows_only`."""
    if not items:
        raise MiradaError("there is nothing to explain: give at least one image or text")
    kept = list(items) if whole_matrices else [rows_only(item) for item in items]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    facts = {"colours": {name: _colours(table) for name, table in COLOURS.items()}, "items": [_told(i) for i in kept]}
    scripts = "\n".join((HERE / f"explained{name}.js").read_text("utf-8") for name in SCRIPTS)
    styles = "\n".join((HERE / name).read_text("utf-8") for name in ("style.css", "explained.css"))
    page = {"title": title, "command": command, "facts": facts, "scripts": Markup(scripts), "styles": Markup(styles)}
    return environment.get_template("explained.html.j2").render(page)


def quantised(weights_HNM: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (H, N, M) of a byte each, and low and step (H, N)."""
    weights_HNM = np.asarray(weights_HNM, dtype=np.float32)
    low_HN = np.minimum(weights_HNM.min(-1), 0)
    step_HN = (np.maximum(weights_HNM.max(-1), low_HN) - low_HN) / np.float32(MAX_STEP)
    divisor = np.where(step_HN > 0, step_HN, 1)
    codes = np.rint((weights_HNM - low_HN[..., None]) / divisor[..., None])
    return np.clip(codes, 0, MAX_STEP).astype(np.uint8), low_HN, step_HN


def _told(item: Item) -> dict:
    shared: dict = {"name": item.name, "target": item.target}
    shared["answers"] = [[name, float(share)] for name, share in item.answers]
    if isinstance(item, ExplainedText):
        layers = [_layer(layer, [None, None]) | {"labels": item.labels_of(layer)} for layer in item.layers]
        maps = [_map(map, map.relevance_N) | {"of_target": _floats(map.of_target_N)} for map in item.relevance]
        own = {"tokens": item.tokens, "source": item.source_tokens}
        return {"kind": "text", **shared, **own, "maps": maps, "layers": layers}
    maps = [
        _map(map, map.relevance_RC) | {"grid": map.relevance_RC.shape, "cell": item.cell(map.relevance_RC.shape)}
        for map in item.maps
    ]
    layers = [
        _layer(layer, [item.cell(size) if len(size) == 2 else None for size, _ in layer.lattices])
        for layer in item.placed_layers
    ]
    picture = {"size": item.picture_HWC.shape[:2], "picture": _picture(item.picture_HWC)}
    return {"kind": "image", **shared, **picture, "maps": maps, "layers": layers}


def _map(map: Map | TokenMap, values: np.ndarray) -> dict:
    said = {"method": map.method, "title": map.title, "is_not": map.is_not, "cost": map.cost}
    return {**said, "values": _floats(values), "strip": map.faithfulness and _strip(map.faithfulness)}


def _strip(strip: Strip) -> dict:
    aucs = ("deletion_auc", "insertion_auc", "random_deletion_auc", "random_insertion_auc")
    return {
        **{name: _floats(curve) for name, curve in strip.curves.items()},
        **{name: float(getattr(strip, name)) for name in aucs},
        "baseline": strip.baseline,
        "verdict": strip.verdict,
        "picture": None if strip.baseline_HWC is None else _picture(strip.baseline_HWC),
    }


def _layer(layer: Layer, cells: Sequence[tuple[float, float] | None]) -> dict:
    codes, low_HN, step_HN = quantised(layer.weights_HNM)
    return {
        "name": layer.name,
        "kind": layer.kind,
        "asker": layer.asker,
        "shape": codes.shape,
        "queries": _lattice(layer.queries, cells[0]),
        "keys": _lattice(layer.keys, cells[1]),
        "codes": _text(codes.tobytes()),
        "step": _floats(step_HN),
        "low": _floats(low_HN) if low_HN.any() else None,
    }


def _lattice(lattice: Lattice, cell: tuple[float, float] | None) -> dict:
    """Without a cell, its tokens do not lie on the picture."""
    return {"size": lattice[0], "extra": lattice[1], "cell": cell}


def _colours(name: str) -> str:
    return _text(colormaps[name](np.arange(256), bytes=True)[:, :3].tobytes())


def _picture(picture_HWC: np.ndarray) -> str:
    image = Image.fromarray(displayable(picture_HWC))
    stream = io.BytesIO()
    if max(image.size) <= EXACT:
        image.save(stream, "PNG", optimize=True)
        return data_uri(stream.getvalue(), "png")
    image.thumbnail((LARGEST, LARGEST))
    image.save(stream, "JPEG", quality=88)
    return data_uri(stream.getvalue(), "jpeg")


def _floats(values: np.ndarray | None) -> str | None:
    return None if values is None else _text(np.ascontiguousarray(values, dtype="<f4").tobytes())


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
