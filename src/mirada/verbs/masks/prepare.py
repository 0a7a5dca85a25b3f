"""Images with masks that are ready to train on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from mirada.config.schema import AugmentConfig, Config, DataConfig
from mirada.data.batches import Batch
from mirada.data.decode import read_header
from mirada.data.masks.batches import MaskBatches, evaluation_masks
from mirada.data.masks.classes import MaskClasses, judged_of
from mirada.data.masks.store import MaskFit, MaskImages, load_masks
from mirada.data.masks.table import MaskTable, is_masks, open_masks
from mirada.data.normalise import Normalisation
from mirada.data.recipe import Augmentation, augmentation_named
from mirada.data.sizing import ImageShape, channels_of, size_for
from mirada.data.splits import Split, make_split, require_validation
from mirada.data.table import ImageTable
from mirada.errors import MiradaError
from mirada.tasks.image import Task
from mirada.tasks.judged_masks import JudgedMasks
from mirada.tasks.objective import Objective, supervised
from mirada.tasks.segment import Segment
from mirada.tasks.single_label import inverse_frequency
from mirada.train.files import write_atomically
from mirada.train.folder import RunFolder
from mirada.verbs.judging import ReadyAtOnce
from mirada.verbs.masks.judge import judge, watch

EVALUATION_BATCH = 32
NUM_SHOWN = 6  # of the worst, and of the best
LABEL_SETTINGS = ("label_column", "label_pattern", "path_column", "split_column", "group_column", "image_root")


def has_masks(data: DataConfig) -> bool:
    """Segmentation is asked for, or nothing else is and the source holds images and masks."""
    if data.task == "segment":
        if not is_masks(data.source):
            raise MiradaError(
                f"{data.source}: holds no masks; expected the folders images and masks, files such as a.jpg with "
                "a_mask.png, or an .npz with images and masks."
            )
        return True
    is_other = data.task is not None or any(getattr(data, name) for name in LABEL_SETTINGS)
    return not is_other and is_masks(data.source)


@dataclass(frozen=True, eq=False)
class PreparedMasks(ReadyAtOnce):
    store: MaskImages
    split: Split
    normalisation: Normalisation
    classes: MaskClasses
    fit: MaskFit

    inputs = "masks"
    task_name = "segment"

    @property
    def table(self) -> ImageTable:
        return self.store.table

    @property
    def source(self) -> str:
        return self.table.source

    @property
    def held_out(self) -> str:
        return "test" if len(self.split.test) else "val"

    def name(self, row: int) -> str:
        return self.store.table.name(row)

    def preset(self) -> tuple[str, str]:
        return "masks", f"{len(self.split.train):,} images with masks to train on"

    def settings(self) -> dict:
        # A mask that is cropped would be judged on its middle only.
        return {"data": {"image_size": list(self.store.shape.size), "fit": self.fit}}

    def require_suitable(self, config: Config) -> None:
        if config.distil.teacher is not None:
            raise MiradaError("distil.teacher: masks cannot be learned from a teacher; leave it out.")
        if min(config.train.batch_size, len(self.split.train)) < 2:
            raise MiradaError(
                f"train.batch_size is {config.train.batch_size} and there are {len(self.split.train)} training images: "
                "expected two at a time, as batch norms need."
            )

    def attached(self, model: nn.Module, device: torch.device) -> nn.Module:
        return model

    def arguments(self) -> dict:
        shape = self.store.shape
        offered = {"image_size": tuple(shape.size), "in_channels": shape.channels}
        return offered | {"num_classes": len(self.classes.names)}

    def training(self, config: Config) -> MaskBatches:
        return MaskBatches(
            self.store,
            self.split.train,
            batch_size=min(config.train.batch_size, len(self.split.train)),
            normalisation=self.normalisation,
            augmentation=augmentation_of_masks(config.augment),
            seed=config.train.seed,
        )

    def evaluation(self, side: str) -> Iterator[Batch]:
        rows = self.split.rows(side)
        return evaluation_masks(self.store, rows, batch_size=EVALUATION_BATCH, normalisation=self.normalisation)

    def task(self, config: Config) -> Segment:
        weights = inverse_frequency(self.pixel_counts("train")) if config.train.class_weights else None
        return Segment(self.classes.names, dice_weight=config.train.dice_weight, class_weights=weights)

    def _groups(self, rows_N: np.ndarray) -> np.ndarray:
        """Which image each of these rows is of: tiles of one are no independent witnesses."""
        assert self.table.groups is not None
        return self.table.groups[rows_N]

    def pixel_counts(self, side: str) -> np.ndarray:
        return self.store.pixel_counts(self.split.rows(side))

    def objective(self, task: Task) -> Objective:
        return supervised(task)

    def watched(self, model: nn.Module, task: Task, device: torch.device) -> dict[str, float]:
        assert isinstance(task, Segment)
        return watch(model, task, self.evaluation("val"), device)

    def judged(self, folder: RunFolder, model: nn.Module, task: Task, device: torch.device) -> tuple[dict, list[dict]]:
        assert isinstance(task, Segment)
        batches = self.evaluation(self.held_out)
        result, rows, found, rows_N = judge(model, task, batches, device, self.table)
        shown = worst_and_best(rows)
        images = self.store.images[torch.from_numpy(rows_N[shown])].numpy()
        kept = JudgedMasks(found.masks_NHW, found.targets_NHW, rows_N, shown, images)
        write_atomically(folder.masks, lambda partial: partial.write_bytes(kept.to_bytes()))
        return {"split": self.held_out, "inputs": self.inputs, "task": self.task_name, **result}, rows

    def describe(self) -> dict:
        """data.json"""
        table, split = self.store.table, self.split
        return {
            "source": table.source,
            "inputs": self.inputs,
            "kind": table.kind,
            "task": self.task_name,
            "class_names": list(self.classes.names),
            "classes": self.classes.to_dict(),
            "image_size": list(self.store.shape.size),
            "in_channels": self.store.shape.channels,
            "fit": self.fit,
            "normalisation": dataclasses.asdict(self.normalisation),
            "held_out": self.held_out,
            "num_images": {name: len(np.unique(self._groups(split.rows(name)))) for name in ("train", "val", "test")},
            "pixel_counts": {name: self.pixel_counts(name).tolist() for name in ("train", "val", "test")},
            "checksum": self.store.checksum(),
            "notes": [*table.notes, *split.notes],
            "broken": [],
            "split": split.to_dict(),
        }


def worst_and_best(rows: list[dict]) -> np.ndarray:
    """Places of the images to be shown, the worst first; those that say nothing of the judged classes are left out."""
    known = [number for number, row in enumerate(rows) if row["dice"] is not None] or list(range(len(rows)))
    order = sorted(known, key=lambda number: rows[number]["dice"] or 0.0)
    few = order if len(order) <= 2 * NUM_SHOWN else [*order[:NUM_SHOWN], *order[-NUM_SHOWN:]]
    return np.array(few, dtype=np.int64)


def prepare_masks(
    data: DataConfig, *, saved: dict | None = None, progress: Callable[[int, int], None] | None = None
) -> PreparedMasks:
    """Read images and masks and divide them; with `saved` (the data.json of a run) divided as then."""
    table = open_masks(data.source, classes=data.classes, ignore=data.ignore)
    fit: MaskFit = "squash" if data.fit == "crop" else data.fit
    store = load_masks(
        table,
        shape_of(table, data.image_size),
        fit=fit,
        workers=data.workers,
        memory_limit=int(data.memory_gb * 2**30),
        progress=progress,
    )
    if saved is not None:
        if store.checksum() != saved["checksum"]:
            raise MiradaError(f"{data.source}: the data changed since this run started; restore it or train a new run.")
        statistics = saved["normalisation"]
        normalisation = Normalisation(tuple(statistics["mean"]), tuple(statistics["std"]))
        return PreparedMasks(store, Split.from_dict(saved["split"]), normalisation, table.classes, fit)
    split = make_split(store.table, seed=data.split_seed, val=data.val, test=data.test, hashes=store.hashes())
    require_validation(split, table.source)
    _require_judged(store, split)
    return PreparedMasks(store, split, store.normalisation(split.train), table.classes, fit)


def _require_judged(store: MaskImages, split: Split) -> None:
    for side in ("val", "test"):
        advice = "give more images, or try another data.split_seed"
        require_shown(store, split.rows(side), f"images held out for {side}", advice)


def require_shown(store: MaskImages, rows: np.ndarray, what: str, advice: str) -> None:
    """Images that show nothing but background say nothing of a model."""
    names = store.table.class_names
    judged = judged_of(names)
    if len(rows) and not store.pixel_counts(rows)[list(judged)].any():
        wanted = ", ".join(names[number] for number in judged)
        raise MiradaError(f"{store.table.source}: none of the {len(rows)} {what} shows {wanted}; {advice}.")


def shape_of(table: MaskTable, image_size: tuple[int, int] | None) -> ImageShape:
    if table.arrays is not None:
        channels = table.arrays[0].shape[-1]
    else:
        channels = channels_of([read_header(pair.image).mode for pair in table.pairs[:500]])
    size, why = size_for(table.sizes_N2)
    return ImageShape(size if image_size is None else image_size, channels, why)


def augmentation_of_masks(config: AugmentConfig) -> Augmentation:
    """Images are not mixed: every pixel has one class."""
    given = {name: value for name, value in config if name != "strength" and value is not None}
    return dataclasses.replace(augmentation_named(config.strength), **given, mixup=0.0, cutmix=0.0)
