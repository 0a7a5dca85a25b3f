"""A trained model that says of every pixel what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from mirada.data.masks.classes import MaskClasses
from mirada.data.resize import fit_image, match_channels, padded_box
from mirada.errors import MiradaError
from mirada.machine.threads import num_cores
from mirada.tasks.segment import Segment, probabilities
from mirada.train.folder import RunFolder
from mirada.verbs.engines.exported import MODEL
from mirada.verbs.engines.load import load as load_by
from mirada.verbs.engines.session import Session, open_session
from mirada.verbs.images import named_images, named_reason, pixels_of
from mirada.verbs.load import Progress, Trained, load
from mirada.verbs.masks.windows import classes_in_tiles, enlarged_classes, plan_for


@dataclass(frozen=True)
class TrainedMasks(Trained):
    """`segment` gives masks; `rows` and `predict` the share of each class.

    `session`: another engine's, for images of the size that the model was trained at, of which `engine` is the name.
    """

    session: Session | None = None
    engine: str = "torch"

    @property
    def classes(self) -> MaskClasses:
        return MaskClasses.from_dict(self.data["classes"])

    def segment(self, image: object, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        """uint8 (H, W) numbers of classes, at the size of the image: a path, a uint8 array or a Pillow image."""
        found = named_images(image)
        if len(found) != 1:
            raise MiradaError(f"{len(found)} images are given, expected one; `mirada.segment` takes many.")
        named = found[0]
        return self.segment_pixels(match_channels(pixels_of(named.content), self.data["in_channels"]), progress)

    def segment_pixels(self, pixels_HWC: np.ndarray, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        size, fit = tuple(self.data["image_size"]), self.data["fit"]
        height, width = pixels_HWC.shape[:2]
        if fit == "tile":
            return self.segment_windows(
                lambda rows, cols: pixels_HWC[rows[0] : rows[1], cols[0] : cols[1]], (height, width), progress
            )
        logits_Chw = self._logits(fit_image(pixels_HWC, size, fit))
        if fit == "pad":
            (rows, cols), _ = padded_box((height, width), size)
            logits_Chw = logits_Chw[:, rows, cols]
        return enlarged_classes(logits_Chw, (height, width))

    def segment_windows(
        self,
        read: Callable[[tuple[int, int], tuple[int, int]], np.ndarray],
        size: tuple[int, int],
        progress: Callable[[int, int], None] | None = None,
    ) -> np.ndarray:
        """The same of an image that is read window by window, as it is; `read` gives uint8 (h, w, channels)."""
        plan = plan_for(self.model, tuple(self.data["image_size"]))
        return classes_in_tiles(
            read, size, lambda pixels: probabilities(self._logits(pixels), 0).numpy(), plan, progress
        )

    def rows(self, images: object, *, batch_size: int = 64, progress: Progress | None = None) -> list[dict]:
        """One row per image: name, the share of each class, and `error` (None, or why there is no answer)."""
        named = named_images(images)
        if not named:
            raise MiradaError("no images are given; give at least one file or folder.")
        rows: list[dict] = []
        for number, image in enumerate(named):
            try:
                mask = self.segment_pixels(match_channels(pixels_of(image.content), self.data["in_channels"]))
                rows.append({"name": image.name, **self.shares(mask), "error": None})
            except MiradaError as error:
                rows.append({"name": image.name, **dict.fromkeys(self._columns), "error": named_reason(image, error)})
            if progress is not None:
                progress(number + 1, len(named))
        if all(row["error"] for row in rows):
            raise MiradaError(f"none of {len(rows)} images can be read; the first: {rows[0]['error']}")
        return rows

    def predict(self, images: object, *, batch_size: int = 64) -> list[dict]:
        """The share of each class, one dictionary per image; `segment` gives the masks."""
        found = self.rows(images, batch_size=batch_size)
        if failed := [row["error"] for row in found if row["error"]]:
            raise MiradaError(failed[0])
        return [{column: row[column] for column in self._columns} for row in found]

    def shares(self, mask_HW: np.ndarray) -> dict[str, float]:
        return Segment(self.data["class_names"]).shares("share", torch.from_numpy(mask_HW)[None])[0]

    @property
    def _columns(self) -> list[str]:
        return [f"share_{name}" for name in self.data["class_names"]]

    @torch.inference_mode()
    def _logits(self, pixels_HWC: np.ndarray) -> torch.Tensor:
        """(C, h, w) of one image."""
        chosen = torch.from_numpy(pixels_HWC.transpose(2, 0, 1).copy())[None]
        normalised = self.normalisation.apply(chosen)
        if self.session is not None and pixels_HWC.shape[:2] == tuple(self.data["image_size"]):
            return torch.from_numpy(self.session(normalised.contiguous().numpy()))[0]
        return self.model(normalised.to(self.device))[0].float().cpu()


def by_engine(run: RunFolder, engine: str, precision: str) -> TrainedMasks:
    """With the session of an engine, made on first use."""
    from mirada.verbs.engines.make import engine_folder

    if precision != "float32":
        raise MiradaError(f"{run.path}: masks are computed in float32, not in {precision}; leave --precision out.")
    trained = load(run, device="cpu")
    assert isinstance(trained, TrainedMasks)
    path = engine_folder(run, engine, precision) / MODEL
    return replace(trained, session=open_session(path, engine, num_cores()), engine=engine)


def masks_run(run: str | Path | RunFolder | Trained, device: str = "auto", engine: str | None = None) -> TrainedMasks:
    """The model of a run on masks; other runs are refused."""
    trained = run if isinstance(run, Trained) else load_by(run, device=device, engine=engine)
    if not isinstance(trained, TrainedMasks):
        raise MiradaError(f"{trained.folder.path}: this model was not trained on masks; give a run that was.")
    return trained
