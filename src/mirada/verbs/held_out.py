"""The held-out images of a run again, with what was said of them: as in the report, but all, some at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from mirada.config.load import load_config
from mirada.errors import MiradaError
from mirada.report.contents import Contents, read_contents, read_rows
from mirada.report.held_out import FILE_KINDS, open_held_out
from mirada.report.paired import label_set
from mirada.report.wording import decimal
from mirada.train.folder import RunFolder
from mirada.verbs.masks.prepare import prepare_masks

KINDS = ("image", "masks", "pixels")
MAX_OPEN = 4


@dataclass(frozen=True)
class HeldOut:
    """Row `index` of predictions.csv. `is_right` is None where answers are no classes."""

    index: int
    name: str
    truth: str | None
    answer: str | None
    is_right: bool | None


def num_held_out(run: RunFolder, inputs: str) -> int:
    return len(_rows(run)) if inputs in KINDS else 0


def held_out(run: RunFolder, start: int, count: int) -> tuple[int, list[HeldOut]]:
    """How many there are, and `count` of them."""
    contents = _contents(run)
    rows = contents.predictions
    return len(rows), [_told(index, rows[index], contents) for index in range(start, min(start + count, len(rows)))]


def held_out_pixels(run: RunFolder, index: int) -> tuple[str, np.ndarray]:
    """Its name, and uint8 (H, W, C) as the model saw it."""
    contents = _contents(run)
    if not 0 <= index < len(contents.predictions):
        raise MiradaError(f"held-out image {index}: there are {len(contents.predictions)}, from 0.")
    row = contents.predictions[index]
    return row["name"], _reader(run.path, _stamp(run))(row)


def held_out_path(run: RunFolder, index: int) -> str | None:
    """The file of an image, where it has one."""
    name = _rows(run)[index].get("name", "")
    return name if Path(name).is_file() else None


def _told(index: int, row: dict[str, str], run: Contents) -> HeldOut:
    """What was true and what was answered, in the words of predictions.csv."""
    if run.task == "regression":
        return HeldOut(index, row["name"], _numbers(row, run, "target"), _numbers(row, run, "predicted"), None)
    if run.task == "segment":
        return HeldOut(index, row["name"], None, f"Dice {decimal(float(row.get('dice') or 'nan'))}", None)
    truth, answer = row.get("target"), row.get("predicted")
    is_right = None
    if truth is not None and answer is not None:
        is_multi = run.task == "multi-label"
        is_right = label_set(truth) == label_set(answer) if is_multi else truth == answer
    return HeldOut(index, row["name"], truth, answer, is_right)


def _numbers(row: dict[str, str], run: Contents, what: str) -> str:
    return ", ".join(f"{float(row[f'{what}_{name}']):.4g}" for name in run.data["target_names"])


def _contents(run: RunFolder) -> Contents:
    contents = read_contents(run.path)
    if contents.inputs not in KINDS:
        raise MiradaError(f"{run.path}: was not trained on images, so it has no held-out ones.")
    return contents


def _rows(run: RunFolder) -> list[dict[str, str]]:
    try:
        return read_rows(run.predictions)
    except (OSError, ValueError):
        return []


def _stamp(run: RunFolder) -> int:
    return run.data.stat().st_mtime_ns


@lru_cache(MAX_OPEN)
def _reader(path: Path, stamp: int) -> Callable[[dict[str, str]], np.ndarray]:
    """Kept, as opening the source of images in one file reads all of it."""
    contents = read_contents(path)
    if contents.inputs == "masks" and (contents.data["fit"] == "tile" or contents.data["kind"] not in FILE_KINDS):
        return _prepared_again(contents)
    return open_held_out(contents).read


def _prepared_again(run: Contents) -> Callable[[dict[str, str]], np.ndarray]:
    """Of tiles, and of images in an archive: rows are those of what the run was trained on."""
    prepared = prepare_masks(load_config(run.folder.config).data, saved=run.data)
    rows = prepared.split.rows(run.held_out)
    images = dict(
        zip(rows.tolist(), prepared.store.images[torch.from_numpy(rows)].permute(0, 2, 3, 1).numpy(), strict=True)
    )
    return lambda prediction: images[int(prediction["row"])]
