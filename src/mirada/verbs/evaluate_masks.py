"""`mirada evaluate` of a model of masks: on what its run held out, or on other images with masks."""

from __future__ import annotations

import numpy as np

from mirada.config.load import merge, resolve
from mirada.data.masks.batches import evaluation_masks
from mirada.data.masks.classes import MaskClasses
from mirada.data.masks.store import MaskImages, load_masks
from mirada.data.masks.table import MaskTable, is_masks, open_masks
from mirada.data.sizing import ImageShape
from mirada.errors import MiradaError
from mirada.tasks.segment import Segment
from mirada.verbs.masks.judge import judge
from mirada.verbs.masks.prepare import EVALUATION_BATCH, prepare_masks, require_shown
from mirada.verbs.masks.trained import TrainedMasks
from mirada.verbs.questions import require_other_data, require_own_data


def judge_masks(trained: TrainedMasks, source: str | None, given: dict) -> tuple[dict, list[dict], str]:
    """Numbers, a row per image, and the side of the run's own split (empty for other data)."""
    if source is None:
        require_own_data(trained)
        prepared = prepare_masks(trained.config.data, saved=trained.data)
        store, side = prepared.store, prepared.held_out
        batches = prepared.evaluation(side)
    else:
        store, side = _other(trained, source, given), ""
        require_other_data(store.checksum(), trained, source)
        rows = np.arange(len(store))
        require_shown(store, rows, "images", "give images of which some masks do")
        batches = evaluation_masks(store, rows, batch_size=EVALUATION_BATCH, normalisation=trained.normalisation)
    task = Segment(trained.data["class_names"])
    result, lines, _, _ = judge(trained.model, task, batches, trained.device, store.table)
    title = source or f"{trained.data['source']} ({side} images)"
    return {"source": title, "inputs": "masks", "task": "segment", **result, "broken": []}, lines, side


def _other(trained: TrainedMasks, source: str, given: dict) -> MaskImages:
    unknown = sorted(set(given) - {"data"})
    if unknown:
        raise MiradaError(f"setting {unknown[0]!r} has no meaning for evaluating; give data.… only.")
    if not is_masks(source):
        raise MiradaError(f"{source}: holds no images with masks, but the model was trained on them.")
    data = resolve(merge(given, {"data": {"source": source}})).data
    own = trained.classes
    # The codes of the run: the same number or colour is the same class.
    classes = data.classes or {_text(code, own): name for code, name in zip(own.codes, own.names, strict=True)}
    ignore = data.ignore if data.ignore is not None else [_text(code, own) for code in own.ignored]
    table = open_masks(source, classes=classes, ignore=ignore)
    _require_same_classes(table, own)
    height, width = trained.data["image_size"]
    shape = ImageShape((height, width), trained.data["in_channels"], "as trained")
    limit = int(data.memory_gb * 2**30)
    return load_masks(table, shape, fit=trained.data["fit"], workers=data.workers, memory_limit=limit)


def _text(code: int, classes: MaskClasses) -> str:
    return f"#{code:06x}" if classes.are_colours else str(code)


def _require_same_classes(table: MaskTable, own: MaskClasses) -> None:
    if table.classes.names != own.names:
        raise MiradaError(
            f"{table.source}: its classes are {', '.join(table.classes.names)}, but the model was trained on "
            f"{', '.join(own.names)}; give these names with data.classes."
        )
