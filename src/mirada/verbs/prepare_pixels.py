"""Images for a model of their pixels: small, in the colours of a palette, each its own target."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mirada import systems
from mirada.config.schema import Config, DataConfig, SystemConfig
from mirada.data import ImageTable, evaluation_batches, infer_shape
from mirada.data.palette import learn_palette, pixels_of
from mirada.systems.registry import all_arguments
from mirada.tasks.image import Task
from mirada.tasks.pixels import Pixels
from mirada.train.folder import RunFolder
from mirada.verbs.pixel_results import pixel_results
from mirada.verbs.prepare import LoadProgress, Prepared, prepare

MAX_SIDE = 16  # of images whose size nobody chose: 256 tokens are what two cores can train on
PALETTE_IMAGES = 1000  # training images that the palette is learned from


@dataclass(frozen=True, eq=False)
class PreparedPixels(Prepared):
    """Images that are ready to be learned pixel by pixel."""

    palette_TC: Tensor

    inputs = "pixels"

    @property
    def task_name(self) -> str:
        return "pixels"

    def preset(self) -> tuple[str, str]:
        height, width = self.store.shape.size
        return "pixels", f"{height} × {width} pixels are {height * width:,} tokens of {len(self.palette_TC)} colours"

    def settings(self) -> dict:
        # The fewer bits the better, and nothing else that is registered learns pixels.
        return {**super().settings(), "train": {"choose_by": "loss"}, "baseline": {"name": "none"}}

    def arguments(self) -> dict:
        shape = self.store.shape
        return {"image_size": tuple(shape.size), "in_channels": shape.channels, "num_colours": len(self.palette_TC)}

    def attached(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model with its palette: a new one is given that of this data."""
        assert isinstance(model, systems.ImageGPT)
        if not model.has_palette:
            model.give_palette(self.palette_TC)
        return model

    def task(self, config: Config) -> Task:
        return Pixels(self.store.shape.channels)

    def further_results(self, folder: RunFolder, model: nn.Module, device: torch.device) -> dict:
        """Pictures that the model draws, and what its features know."""
        assert isinstance(model, systems.ImageGPT)
        return pixel_results(self, folder, model, device)

    def describe(self) -> dict:
        """data.json"""
        described = super().describe()
        return described | {"task": self.task_name, "labels": described["task"], "num_colours": len(self.palette_TC)}


def prepare_pixels(
    data: DataConfig,
    table: ImageTable,
    system: SystemConfig,
    *,
    saved: dict | None = None,
    progress: LoadProgress | None = None,
) -> PreparedPixels:
    """As `prepare`, at a size that can be learned pixel by pixel, with a palette of as many colours as there are."""
    if data.image_size is None:
        data = data.model_copy(update={"image_size": small_size(infer_shape(table).size)})
    prepared = prepare(data, table, saved=saved, progress=progress)
    asked = all_arguments(system.name, system.size, **system.arguments | {"image_size": (1, 1), "in_channels": 1})
    palette_TC = learn_palette(pixels_of(_some_images(prepared)), asked["num_colours"])
    own = {field.name: getattr(prepared, field.name) for field in dataclasses.fields(Prepared)}
    return PreparedPixels(**own, palette_TC=palette_TC)


def small_size(size: tuple[int, int]) -> tuple[int, int]:
    """The same shape with at most MAX_SIDE² pixels."""
    shrink = min(1.0, (MAX_SIDE**2 / (size[0] * size[1])) ** 0.5)
    return max(1, round(size[0] * shrink)), max(1, round(size[1] * shrink))


def _some_images(prepared: Prepared) -> Tensor:
    rows = prepared.split.train
    chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), PALETTE_IMAGES)).astype(int)]
    batches = evaluation_batches(prepared.store, chosen, batch_size=len(chosen), normalisation=prepared.normalisation)
    return torch.cat([batch.inputs for batch in batches])
