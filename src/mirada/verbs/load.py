"""`mirada.load`: a trained model that answers about images, pixels, nodes of a graph, texts or places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mirada.config.load import load_config
from mirada.config.schema import Config
from mirada.data.normalise import Normalisation
from mirada.errors import MiradaError
from mirada.machine.threads import threads_for
from mirada.tasks.image import Task, saved_task
from mirada.train.checkpoint import load_model
from mirada.train.folder import RunFolder, model_folder
from mirada.verbs.engines.exported import Exported
from mirada.verbs.images import NamedImage, Progress, Target, named_images, read_many, rows_of
from mirada.verbs.prepare import device_named


@dataclass(frozen=True)
class Trained:
    """The best model of a run, with what is needed to use it."""

    folder: RunFolder
    model: nn.Module
    task: Task
    data: dict  # data.json
    device: torch.device

    @property
    def config(self) -> Config:
        """The configuration of the run."""
        return load_config(self.folder.config)

    @property
    def result(self) -> dict:
        """What the run measured on what was held out."""
        return self.folder.read_result()

    @property
    def normalisation(self) -> Normalisation:
        statistics = self.data["normalisation"]
        return Normalisation(tuple(statistics["mean"]), tuple(statistics["std"]))

    @property
    def target(self) -> Target:
        height, width = self.data["image_size"]
        return Target((height, width), self.data["in_channels"], self.data["fit"])

    def predict(self, images: object, *, batch_size: int = 64) -> list[dict]:
        """Answers in words, one per image: of paths, a folder, uint8 arrays (H, W, C) or Pillow images."""
        return self.task.answers(self.outputs(images, batch_size=batch_size))

    def outputs(self, images: object, *, batch_size: int = 64) -> Tensor:
        """(N, C) what the model gives for these images, before it is put into words."""
        outputs = []
        for _, reasons, outputs_NC in self.batches(named_images(images), batch_size):
            if any(reasons):
                raise MiradaError(next(filter(None, reasons)))
            outputs.append(outputs_NC)
        if not outputs:
            raise MiradaError("no images are given; give at least one.")
        return torch.cat(outputs)

    def rows(self, images: object, *, batch_size: int = 64, progress: Progress | None = None) -> list[dict]:
        """One row per image: name, the answer, and `error` (None, or why there is no answer)."""
        return rows_of(self.batches(named_images(images), batch_size, progress), self.task.answers)

    def batches(
        self, images: list[NamedImage], batch_size: int, progress: Progress | None = None
    ) -> Iterator[tuple[list[NamedImage], list[str], Tensor]]:
        """(images, why each cannot be used or "", outputs of the usable ones) batch by batch."""
        done = 0
        for found in read_many(images, self.target, batch_size):
            usable = [pixels for pixels in found if isinstance(pixels, np.ndarray)]
            reasons = [pixels if isinstance(pixels, str) else "" for pixels in found]
            outputs = self._run(np.stack(usable)) if usable else torch.empty(0, 0)
            yield images[done : done + len(found)], reasons, outputs
            done += len(found)
            if progress is not None:
                progress(done, len(images))

    def of_pixels(self, pixels_NCHW: np.ndarray) -> list[dict]:
        """Answers about uint8 images that have the size of the model."""
        return self.task.answers(self._run(pixels_NCHW))

    @torch.inference_mode()
    def _run(self, pixels_NCHW: np.ndarray) -> Tensor:
        normalised = self.normalisation.apply(torch.from_numpy(pixels_NCHW)).to(self.device)
        with threads_for(len(normalised), lambda: self.flops_of(normalised[:1])):
            return self.model(normalised).float().cpu()

    def flops_of(self, image_1CHW: Tensor) -> int:
        """Operations of a forward pass of one image, counted once."""
        from mirada.core.flops import count_flops

        if "_flops" not in self.__dict__:
            self.__dict__["_flops"] = count_flops(self.model, image_1CHW)
        return self.__dict__["_flops"]


def load(run: str | Path | RunFolder, *, device: str = "auto") -> Trained:
    """The best model of a run folder, of its baseline/, or of a folder made by `mirada export`, by torch."""
    if isinstance(run, Exported):
        raise MiradaError(f"{run.folder.path}: by {run.engine} a model only predicts; load it with engine torch.")
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    if not folder.path.is_dir():
        raise MiradaError(f"{folder.path}: there is no such folder; give a run made by `mirada train`.")
    weights = model_folder(folder)
    data = folder.read_data()
    place = device_named(device)
    kind = Trained
    if data.get("inputs") == "graph":
        from mirada.verbs.load_graph import TrainedGraph

        kind = TrainedGraph
    elif data.get("inputs") in ("text", "pairs"):
        from mirada.verbs.text.trained import TrainedText

        kind = TrainedText
    elif data.get("inputs") == "plots":
        from mirada.verbs.maps.trained import TrainedPlots

        kind = TrainedPlots
    elif data.get("inputs") == "masks":
        from mirada.verbs.masks.trained import TrainedMasks

        kind = TrainedMasks
    return kind(folder, load_model(weights).to(place), saved_task(data), data, place)
