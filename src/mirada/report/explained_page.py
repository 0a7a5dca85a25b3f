"""One HTML file that shows explanations and lets one ask: no network, no library, all numbers inside.

    weight = low + step · code,   code = round((weight − low) / step) of 0..255,   step = (highest − low) / 255

with one `low` (0, unless weights are negative) and one `step` for every row of every head, so that a weight is off by
at most 1/510 of its row's span. Relevance and curves are stored exactly, as float32.

Shape letters: H heads, N queries, M keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup
from matplotlib import colormaps

from mirada.errors import MiradaError
from mirada.report.explained_items import Item, Layer, rows_only
from mirada.report.explained_json import told_bytes, told_floats, told_item

HERE = Path(__file__).parent
SCRIPTS = ("", "_weights", "_drawing", "_controls", "_strip", "_matrix", "_image", "_looks", "_text", "_start")
COLOURS = {"heat": "magma", "signed": "RdBu_r"}  # of numbers from zero up, and of numbers on both sides of it
MAX_STEP = 255


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
    """With the weights, a byte each."""
    told = told_item(item)
    weights = (_weights(layer) for layer in item.layers)
    return told | {"layers": [_with(layer, own) for layer, own in zip(told["layers"], weights, strict=True)]}


def _weights(layer: Layer) -> dict:
    codes, low_HN, step_HN = quantised(layer.weights_HNM)
    low = told_floats(low_HN) if low_HN.any() else None
    return {"codes": told_bytes(codes.tobytes()), "step": told_floats(step_HN), "low": low}


def _with(layer: dict, weights: dict) -> dict:
    """Names of tokens, where there are some, stay last."""
    labels = {"labels": layer.pop("labels")} if "labels" in layer else {}
    return layer | weights | labels


def _colours(name: str) -> str:
    return told_bytes(colormaps[name](np.arange(256), bytes=True)[:, :3].tobytes())
