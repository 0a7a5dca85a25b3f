"""Explanations as JSON: what the offline page holds inside, and what the studio answers.

Arrays of numbers are base64 of little-endian float32 in raster order, exactly as they are. Only the weights of the
offline page are coarser, see explained_page.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from mirada.report.explained_items import ExplainedImage, ExplainedText, Item, Lattice, Layer, Map, Strip, TokenMap
from mirada.report.held_out import displayable
from mirada.report.style import data_uri

LARGEST = 768  # px of a picture's longer side
EXACT = 256  # px up to which pictures are kept exact


def told_item(item: Item) -> dict:
    """All but the weights: of each layer, its name and how its tokens lie."""
    shared: dict = {"name": item.name, "target": item.target}
    shared["answers"] = [[name, float(share)] for name, share in item.answers]
    if isinstance(item, ExplainedText):
        own = {"tokens": item.tokens, "source": item.source_tokens}
        maps = [told_token_map(map) for map in item.relevance]
        return {"kind": "text", **shared, **own, "maps": maps, "layers": told_layers(item)}
    picture = {"size": item.picture_HWC.shape[:2], "picture": told_picture(item.picture_HWC)}
    maps = [told_map(item, map) for map in item.maps]
    return {"kind": "image", **shared, **picture, "maps": maps, "layers": told_layers(item)}


def told_layers(item: Item) -> list[dict]:
    if isinstance(item, ExplainedText):
        return [_layer(layer, [None, None]) | {"labels": item.labels_of(layer)} for layer in item.layers]
    return [
        _layer(layer, [item.cell(size) if len(size) == 2 else None for size, _ in layer.lattices])
        for layer in item.placed_layers
    ]


def told_map(item: ExplainedImage, map: Map) -> dict:
    grid = map.relevance_RC.shape
    return _map(map, map.relevance_RC) | {"grid": grid, "cell": item.cell(grid)}


def told_token_map(map: TokenMap) -> dict:
    of_target = None if map.of_target_N is None else told_floats(map.of_target_N)
    return _map(map, map.relevance_N) | {"of_target": of_target}


def told_picture(picture_HWC: np.ndarray) -> str:
    """A data: URL."""
    image = Image.fromarray(displayable(picture_HWC))
    stream = io.BytesIO()
    if max(image.size) <= EXACT:
        image.save(stream, "PNG", optimize=True)
        return data_uri(stream.getvalue(), "png")
    image.thumbnail((LARGEST, LARGEST))
    image.save(stream, "JPEG", quality=88)
    return data_uri(stream.getvalue(), "jpeg")


def told_floats(values: np.ndarray) -> str:
    return told_bytes(np.ascontiguousarray(values, dtype="<f4").tobytes())


def told_bytes(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _map(map: Map | TokenMap, values: np.ndarray) -> dict:
    said = {"method": map.method, "title": map.title, "is_not": map.is_not, "cost": map.cost}
    return {**said, "values": told_floats(values), "strip": map.faithfulness and _strip(map.faithfulness)}


def _strip(strip: Strip) -> dict:
    aucs = ("deletion_auc", "insertion_auc", "random_deletion_auc", "random_insertion_auc")
    return {
        **{name: told_floats(curve) for name, curve in strip.curves.items()},
        **{name: float(getattr(strip, name)) for name in aucs},
        "baseline": strip.baseline,
        "beats": strip.beats,
        "verdict": strip.verdict,
        "picture": None if strip.baseline_HWC is None else told_picture(strip.baseline_HWC),
    }


def _layer(layer: Layer, cells: Sequence[tuple[float, float] | None]) -> dict:
    return {
        "name": layer.name,
        "kind": layer.kind,
        "asker": layer.asker,
        "shape": layer.weights_HNM.shape,
        "queries": _lattice(layer.queries, cells[0]),
        "keys": _lattice(layer.keys, cells[1]),
    }


def _lattice(lattice: Lattice, cell: tuple[float, float] | None) -> dict:
    """Without a cell, its tokens do not lie on the picture."""
    return {"size": lattice[0], "extra": lattice[1], "cell": cell}
