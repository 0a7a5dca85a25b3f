"""Masks of held-out images: class by class, the worst and the best, and what an object's places look at.

Shape letters: K images shown, N places of the coarsest map, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from mirada.core import record
from mirada.core.record import attention_layers
from mirada.data import Normalisation
from mirada.data.masks.classes import judged_of
from mirada.errors import MiradaError
from mirada.report.attention import overlay
from mirada.report.contents import Contents
from mirada.report.examples import Tile, montage
from mirada.report.held_out import displayable
from mirada.report.wording import decimal
from mirada.tasks.judged_masks import JudgedMasks
from mirada.tasks.mask_colours import coloured, colours_of
from mirada.train.checkpoint import load_model

NUM_ATTENTION = 4


@dataclass(frozen=True)
class Shown:
    """An image, its mask, and what was predicted, each a tile."""

    image: Tile
    target: Tile
    predicted: Tile


def mask_section(run: Contents) -> dict:
    """Tables and pictures, or the sentences that say why there are none."""
    names = run.data["class_names"]
    section: dict = {
        "legend": [(name, _css(colour)) for name, colour in zip(names, colours_of(names), strict=True)],
        "rows": _class_rows(run.result) if run.result else [],
        "worst": [],
        "best": [],
        "attention": [],
        "no_attention": None,
        "montages": [],
        "missing": None,
    }
    if not run.folder.masks.exists() or not run.predictions:
        return section | {"missing": "The run is not finished, so there are no masks of held-out images yet."}
    masks = JudgedMasks.read(run.folder.masks)
    shown = [_shown(run, masks, number) for number in range(len(masks.shown))]
    half = len(shown) // 2
    section |= {"worst": shown[: len(shown) - half], "best": shown[len(shown) - half :][::-1]}
    tiles = [tile for one in [*section["worst"][:2], *section["best"][:2]] for tile in _three(one)]
    section["montages"] = [montage("masks", tiles, num_columns=3)]
    try:
        section["attention"] = _attention(run, masks, shown)
    except MiradaError as error:
        section["no_attention"] = f"No attention is shown: {error}."
    return section


def _three(shown: Shown) -> tuple[Tile, Tile, Tile]:
    return shown.image, shown.target, shown.predicted


def _class_rows(result: dict) -> list[dict]:
    return [
        {
            "name": row["name"],
            "dice": decimal(row["dice"]),
            "bar": round(100 * (row["dice"] or 0.0)),
            "iou": decimal(row["iou"]),
            "hd95": "–" if row["hd95"] is None else f"{row['hd95']:.1f}",
            "boundary_f1": decimal(row["boundary_f1"]),
            "images": f"{row['images']:,}",
            "pixels": f"{100 * row['pixels'] / max(1, sum(r['pixels'] for r in result['per_class'])):.1f} %",
        }
        for row in result["per_class"]
    ]


def _shown(run: Contents, masks: JudgedMasks, number: int) -> Shown:
    index = masks.shown[number]
    line = run.predictions[index]
    picture = displayable(masks.images[number].transpose(1, 2, 0))
    names = run.data["class_names"]
    said = (("Dice", decimal(float(line["dice"] or "nan"))),)
    return Shown(
        Tile(picture, line["name"], (("", "image"),), None),
        Tile(coloured(picture, masks.targets[index], names), line["name"], (("", "true mask"),), None),
        Tile(coloured(picture, masks.predicted[index], names), line["name"], said, None),
    )


def _attention(run: Contents, masks: JudgedMasks, shown: list[Shown]) -> list[tuple[Tile, Tile]]:
    """What the places of the objects look at in the last layer of attention, for some images."""
    model = load_model(run.folder.best).eval()
    if not attention_layers(model):
        raise MiradaError(f"{run.system} has no attention layers")
    chosen = list(range(len(shown)))[::-1][:NUM_ATTENTION]
    statistics = run.data["normalisation"]
    normalisation = Normalisation(tuple(statistics["mean"]), tuple(statistics["std"]))
    inputs = normalisation.apply(torch.from_numpy(masks.images[chosen]))
    with torch.inference_mode(), record(model, layers=[-1]) as maps:
        model(inputs)
    weights_KNN = maps[0].mean(1)
    grid = model.grid(inputs)  # type: ignore[operator]
    judged = judged_of(run.data["class_names"])
    found = []
    for number, weights_NN in zip(chosen, weights_KNN, strict=True):
        looks_N = _places_of(np.isin(masks.predicted[masks.shown[number]], judged), grid, model.patch_size)  # type: ignore[arg-type]
        if not looks_N.any():
            continue
        seen_N = weights_NN[torch.from_numpy(looks_N)].mean(0)
        relative = (seen_N / seen_N.mean()).reshape(*grid).double().numpy()
        low, high = relative.min(), max(float(np.percentile(relative, 99)), relative.min() + 1e-9)
        picture = overlay(shown[number].image.picture, (relative - low) / (high - low), model.patch_size)
        name = shown[number].image.name
        found.append((shown[number].predicted, Tile(picture, name, (("", "attention of these places"),), None)))
    return found


def _places_of(mask_HW: np.ndarray, grid: tuple[int, int], stride: int) -> np.ndarray:
    """(N,) whether a place of the coarsest map holds some of the mask."""
    rows, columns = grid
    padded = np.zeros((rows * stride, columns * stride), dtype=bool)
    padded[: mask_HW.shape[0], : mask_HW.shape[1]] = mask_HW
    return padded.reshape(rows, stride, columns, stride).any((1, 3)).ravel()


def _css(colour: np.ndarray) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in colour)
