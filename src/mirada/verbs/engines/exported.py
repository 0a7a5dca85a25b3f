"""A folder with model.onnx and data.json answers about images. Nothing here needs torch, scipy or scikit-learn."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mirada.data.normalise_array import normalise_array
from mirada.errors import MiradaError
from mirada.machine.threads import num_cores
from mirada.tasks.words import words_of
from mirada.train.files import read_json
from mirada.train.folder import RunFolder
from mirada.verbs.engines.session import PACKAGES, Session, open_session
from mirada.verbs.images import (
    NamedImage,
    Progress,
    Target,
    in_order,
    named_images,
    read_many,
    read_or_reason,
    rows_of,
)

log = logging.getLogger(__name__)

MODEL = "model.onnx"
# Images that a core computes at a time where there are many: what they need stays in its cache.
BATCH = 8
# The largest difference of an output, in the largest output: sums in another order, and nothing more.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Exported:
    """A model by ONNX Runtime or OpenVINO. `predict`, `rows` and `outputs` are those of a model by torch."""

    folder: RunFolder  # the run, or what was exported of it
    path: Path  # of model.onnx
    data: dict  # data.json beside it
    engine: str

    @property
    def precision(self) -> str:
        return self.data.get("onnx", {}).get("precision", "float32")

    @property
    def target(self) -> Target:
        height, width = self.data["image_size"]
        return Target((height, width), self.data["in_channels"], self.data["fit"])

    def predict(self, images: object, *, batch_size: int | None = None) -> list[dict]:
        """Answers in words, one per image: of paths, a folder, uint8 arrays (H, W, C) or Pillow images."""
        return words_of(self.data, self.outputs(images, batch_size=batch_size))

    def outputs(self, images: object, *, batch_size: int | None = None) -> np.ndarray:
        """(N, C) what the model gives for these images, before it is put into words."""
        found = []
        for _, reasons, outputs_NC in self.batches(named_images(images), batch_size):
            if any(reasons):
                raise MiradaError(next(filter(None, reasons)))
            found.append(outputs_NC)
        if not found:
            raise MiradaError("no images are given; give at least one.")
        return np.concatenate(found)

    def rows(self, images: object, *, batch_size: int | None = None, progress: Progress | None = None) -> list[dict]:
        """One row per image: name, the answer, and `error` (None, or why there is no answer)."""
        named = named_images(images)
        return rows_of(self.batches(named, batch_size, progress), lambda outputs: words_of(self.data, outputs))

    def batches(
        self, images: list[NamedImage], batch_size: int | None = None, progress: Progress | None = None
    ) -> Iterator[tuple[list[NamedImage], list[str], np.ndarray]]:
        """(images, why each cannot be used or "", outputs of the usable ones) batch by batch."""
        size, done = batch_size or BATCH, 0
        parts = [images[start : start + size] for start in range(0, len(images), size)]
        for part, (reasons, outputs) in zip(parts, self._found(parts, size), strict=True):
            yield part, reasons, outputs
            done += len(part)
            if progress is not None:
                progress(done, len(images))

    def of_pixels(self, pixels_NCHW: np.ndarray) -> list[dict]:
        """Answers about uint8 images that have the size of the model."""
        return words_of(self.data, self._on_all_cores(self._normalised(pixels_NCHW)))

    def _found(self, parts: list[list[NamedImage]], size: int) -> Iterator[tuple[list[str], np.ndarray]]:
        if len(parts) < 2:
            for found in read_many([image for part in parts for image in part], self.target, size):
                yield self._computed(found, self._on_all_cores)
            return
        assert self._on_one_core is not None  # opened once, and by this thread
        # Every core reads, decodes and computes a part of its own: none waits for another, however busy it is.
        with ThreadPoolExecutor(num_cores()) as pool:
            yield from in_order(pool, self._read_and_computed, parts, ahead=2 * num_cores())

    def _read_and_computed(self, images: list[NamedImage]) -> tuple[list[str], np.ndarray]:
        return self._computed([read_or_reason(image, self.target) for image in images], self._on_one_core)

    def _computed(self, found: list[np.ndarray | str], session: Session) -> tuple[list[str], np.ndarray]:
        usable = [pixels for pixels in found if isinstance(pixels, np.ndarray)]
        reasons = [pixels if isinstance(pixels, str) else "" for pixels in found]
        return reasons, session(self._normalised(np.stack(usable))) if usable else np.empty((0, 0), np.float32)

    def _normalised(self, pixels_NCHW: np.ndarray) -> np.ndarray:
        statistics = self.data["normalisation"]
        return normalise_array(pixels_NCHW, statistics["mean"], statistics["std"])

    @cached_property
    def _on_all_cores(self) -> Session:
        return open_session(self.path, self.engine, num_cores())

    @cached_property
    def _on_one_core(self) -> Session:
        return open_session(self.path, self.engine, 1, calls=num_cores())


def open_exported(folder: RunFolder, engine: str, *, inside: Path | None = None) -> Exported:
    """The model of a folder that `mirada export --to onnx` made; of a run, `inside` of which it lies."""
    place = inside or folder.path
    data = read_json(place / folder.data.name)
    require_images(folder, data, engine)
    found = Exported(folder, place / MODEL, data, engine)
    require_agreement(found)
    return found


def require_agreement(found: Exported) -> None:
    """An exported file was checked by ONNX Runtime; another engine must give what that one gives."""
    if found.engine in found.data.get("onnx", {}).get("difference", {}):
        return
    if importlib.util.find_spec(PACKAGES["onnx"]) is None:
        log.warning("%s: was not checked by %s, as there is no onnxruntime here", found.path, found.engine)
        return
    shape = (2, found.data["in_channels"], *found.data["image_size"])
    images = np.random.default_rng(0).standard_normal(shape, np.float32)
    wanted, own = (open_session(found.path, engine, num_cores())(images) for engine in ("onnx", found.engine))
    largest = difference(own, wanted)
    if not largest <= TOLERANCE:
        raise MiradaError(
            f"{found.path}: by {found.engine} it differs from ONNX Runtime by {largest:.2g} of its largest output, "
            f"more than {TOLERANCE:g}; leave --engine out."
        )


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """max |found − wanted| / max |wanted|; infinite where shapes differ."""
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.abs(found - wanted).max() / np.abs(wanted).max().clip(1e-30))


def require_images(folder: RunFolder, data: dict, engine: str) -> None:
    """Images go through any engine; what else there is, through torch."""
    inputs = data.get("inputs", "image")
    if inputs not in ("image", "pixels"):
        what = {"pairs": "text", "graph": "graphs"}.get(inputs, inputs)
        raise MiradaError(
            f"{folder.path}: models of {what} predict by torch only, not by {engine}; leave --engine out, and give a "
            "run or a safetensors export."
        )
