"""From the data section of a configuration to images, split, normalisation and task."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from mirada import systems
from mirada.config.preset_choice import choose_preset
from mirada.config.schema import AugmentConfig, Config, DataConfig, SystemConfig
from mirada.data import (
    Augmentation,
    Batch,
    ImageTable,
    MemoryImages,
    Normalisation,
    Split,
    StreamedImages,
    TrainBatches,
    augmentation_named,
    evaluation_batches,
    flipping_is_safe,
    infer_shape,
    make_split,
    open_images,
    open_source,
    require_trainable,
)
from mirada.data.geo.read_plots import is_plots
from mirada.data.graphs import is_graph
from mirada.data.splits import require_validation
from mirada.data.text.sources import is_text
from mirada.errors import MiradaError
from mirada.tasks.image import Task, task_of
from mirada.verbs.judging import AnsweredByRow, ReadyAtOnce
from mirada.verbs.maps.prepare import PreparedPlots, prepare_plots
from mirada.verbs.masks.prepare import PreparedMasks, has_masks, prepare_masks
from mirada.verbs.prepare_graph import PreparedGraph, prepare_graph
from mirada.verbs.text.prepare import prepare_text
from mirada.verbs.text.prepared import PreparedText

LoadProgress = Callable[[int, int], None]

EVALUATION_BATCH = 256


@dataclass(frozen=True)
class Prepared(ReadyAtOnce, AnsweredByRow):
    """Images that are ready to train on."""

    store: MemoryImages | StreamedImages
    split: Split
    normalisation: Normalisation
    fit: str

    inputs = "image"

    @property
    def source(self) -> str:
        return self.table.source

    @property
    def task_name(self) -> str:
        return self.table.task

    @property
    def table(self) -> ImageTable:
        return self.store.table

    @property
    def held_out(self) -> str:
        """The side on which the final result is measured: test, or val where the data brings no test images."""
        return "test" if len(self.split.test) else "val"

    def name(self, row: int) -> str:
        """What to call a row in predictions."""
        return self.table.name(row)

    def preset(self) -> tuple[str, str]:
        """Which preset suits, and why."""
        return choose_preset(len(self.split.train), self.store.shape.size)

    def settings(self) -> dict:
        """What the data decides of a configuration."""
        return {"data": {"image_size": list(self.store.shape.size)}}

    def require_suitable(self, config: Config) -> None:
        """Nothing can be set that is not for images."""

    def attached(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model as batches of this data are given to it."""
        return model

    def arguments(self) -> dict:
        """What the data decides of a system."""
        shape = self.store.shape
        return {"image_size": tuple(shape.size), "in_channels": shape.channels, "num_classes": self.table.num_outputs}

    def training(self, config: Config) -> TrainBatches:
        return TrainBatches(
            self.store,
            self.split.train,
            batch_size=min(config.train.batch_size, len(self.split.train)),
            normalisation=self.normalisation,
            augmentation=augmentation_for(config.augment, self),
            seed=config.train.seed,
            balanced=config.train.balanced,
        )

    def evaluation(self, side: str) -> Iterator[Batch]:
        rows = self.split.rows(side)
        return evaluation_batches(self.store, rows, batch_size=EVALUATION_BATCH, normalisation=self.normalisation)

    def task(self, config: Config) -> Task:
        return task_of(
            self.table,
            self.split.train,
            label_smoothing=config.train.label_smoothing,
            weigh_classes=config.train.class_weights,
        )

    def describe(self) -> dict:
        """data.json"""
        table, split = self.table, self.split
        described = {
            "source": table.source,
            "inputs": self.inputs,
            "kind": table.kind,
            "task": table.task,
            "class_names": list(table.class_names),
            "target_names": list(table.target_names),
            "image_size": list(self.store.shape.size),
            "in_channels": self.store.shape.channels,
            "fit": self.fit,
            "normalisation": dataclasses.asdict(self.normalisation),
            "held_out": self.held_out,
            "num_images": {name: len(split.rows(name)) for name in ("train", "val", "test")},
            "checksum": table.checksum(),
            "notes": [*table.notes, *split.notes],
            "broken": [dataclasses.asdict(image) for image in self.store.broken],
            "split": split.to_dict(),
        }
        if table.task == "regression":
            targets = table.targets[split.train].astype(float)
            described |= {"target_mean": targets.mean(0).tolist(), "target_std": targets.std(0).tolist()}
        else:
            described["class_counts"] = {
                name: table.class_counts(split.rows(name)).tolist() for name in ("train", "val", "test")
            }
        return described


AnyPrepared = Prepared | PreparedGraph | PreparedText | PreparedPlots | PreparedMasks


def prepare_data(
    data: DataConfig, system: SystemConfig, *, saved: dict | None = None, progress: LoadProgress | None = None
) -> AnyPrepared:
    """Images, masks, a graph, plots or text, as they are; with `saved` (the data.json of a run) divided as then."""
    if is_graph(data.source):
        return prepare_graph(data, saved=saved)
    if has_plots(data):
        return prepare_plots(data, system.name, saved=saved)
    if has_masks(data):
        return prepare_masks(data, saved=saved, progress=progress)
    if is_text(data.source):
        return prepare_text(data, system, saved=saved)
    if systems.card(system.name).inputs == "pixels":
        from mirada.verbs.prepare_pixels import prepare_pixels

        return prepare_pixels(data, open_table(data), system, saved=saved, progress=progress)
    return prepare(data, open_table(data), saved=saved, progress=progress)


def has_plots(data: DataConfig) -> bool:
    """The source holds samples with a place: it is said so, or the table looks like it."""
    is_said = data.rasters or data.crs or data.x_column or data.y_column
    return bool(is_said) or is_plots(data.source)


def open_table(data: DataConfig) -> ImageTable:
    """The source of a configuration."""
    table = open_source(
        data.source,
        task=data.task,
        path_column=data.path_column,
        label_column=data.label_column,
        split_column=data.split_column,
        group_column=data.group_column,
        image_root=data.image_root,
        label_pattern=data.label_pattern,
    )
    require_trainable(table)
    return table


def prepare(
    data: DataConfig, table: ImageTable, *, saved: dict | None = None, progress: LoadProgress | None = None
) -> Prepared:
    """Read the images and divide them; with `saved` (the data.json of a run) the division is the saved one."""
    shape = infer_shape(table)
    if data.image_size is not None:
        shape = dataclasses.replace(shape, size=tuple(data.image_size), why="as configured")
    store = open_images(
        table,
        shape,
        fit=data.fit,
        workers=data.workers,
        on_broken=data.on_broken,
        progress=progress,
        memory_limit=int(data.memory_gb * 2**30),
    )
    if saved is not None:
        if store.table.checksum() != saved["checksum"]:
            raise MiradaError(f"{data.source}: the data changed since this run started; restore it or train a new run.")
        statistics = saved["normalisation"]
        normalisation = Normalisation(tuple(statistics["mean"]), tuple(statistics["std"]))
        return Prepared(store, Split.from_dict(saved["split"]), normalisation, data.fit)
    split = make_split(store.table, seed=data.split_seed, val=data.val, test=data.test, hashes=store.hashes())
    require_validation(split, store.table.source)
    return Prepared(store, split, store.normalisation(split.train), data.fit)


def augmentation_for(config: AugmentConfig, prepared: Prepared) -> Augmentation:
    """The configured recipe, without what the data cannot bear."""
    recipe = augmentation_named(config.strength)
    given = {name: value for name, value in config if name != "strength" and value is not None}
    if "flip" not in given and not flipping_is_safe(prepared.table.class_names, prepared.store.shape.channels):
        given["flip"] = 0.0
    if prepared.table.task == "regression":
        given |= {"mixup": 0.0, "cutmix": 0.0}
    return dataclasses.replace(recipe, **given)


def device_named(name: str) -> torch.device:
    """auto: the accelerator torch finds, else the CPU."""
    if name == "auto":
        name = str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise MiradaError(f"device {name!r} cannot be used here ({reason}); use cpu or auto.") from error
    return device
