"""What a model of pixels can do besides its likelihood: draw, complete, and tell classes apart by its features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from mirada.data import Batch, Normalisation, evaluation_batches
from mirada.systems import ImageGPT
from mirada.tasks.draw import complete, generate
from mirada.tasks.pixels import Pixels, colour_counts, nats_of_single_pixels, padded_grid
from mirada.tasks.probe import probe_accuracy
from mirada.train.files import write_atomically
from mirada.train.folder import RunFolder

if TYPE_CHECKING:
    from mirada.verbs.prepare_pixels import PreparedPixels

NUM_SAMPLES, COLUMNS = 32, 8
NUM_COMPLETED, VERSIONS = 6, 4
PROBE_IMAGES = 2000  # of each side: enough for a linear classifier
PICTURE_SIDE = 64  # px that a small image is enlarged to, about
SEED = 0


def pixel_results(prepared: PreparedPixels, folder: RunFolder, model: ImageGPT, device: torch.device) -> dict:
    """Numbers for result.json; the pictures go to figures/."""
    model.eval()
    held_out = _batch(prepared, prepared.split.rows(prepared.held_out))
    train = _batch(prepared, prepared.split.train)
    draw_samples(model, folder.figures / "samples.png", prepared.normalisation, NUM_SAMPLES, seed=SEED)
    chosen = held_out.inputs[:NUM_COMPLETED].to(device)
    draw_completions(model, folder.figures / "completions.png", prepared.normalisation, chosen, VERSIONS, seed=SEED)
    return {
        "majority": _without_context(prepared, model, train, held_out, device),
        **_probe(prepared, model, train, held_out, device),
    }


def draw_samples(
    model: ImageGPT, path: Path, normalisation: Normalisation, count: int, *, seed: int, **how: object
) -> None:
    """A picture of `count` new images in rows; `how` as in `mirada.tasks.draw.continued`."""
    device = model.palette_TC.device
    images = generate(model, count, device=device, generator=torch.Generator().manual_seed(seed), **how)
    write_picture(path, padded_grid(normalisation.undo(images), min(count, COLUMNS)))


def draw_completions(
    model: ImageGPT,
    path: Path,
    normalisation: Normalisation,
    images_BCHW: Tensor,
    versions: int,
    *,
    seed: int,
    share: float = 0.5,
    **how: object,
) -> None:
    """A row for each image: itself, what was shown of it, and `versions` of the whole that the model drew."""
    generator = torch.Generator().manual_seed(seed)
    known = round(share * images_BCHW.shape[-2])
    shown = normalisation.undo(images_BCHW)
    hidden = shown.clone()
    hidden[:, :, known:] = 0.5
    drawn = complete(model, images_BCHW.repeat_interleave(versions, 0), share=share, generator=generator, **how)
    rows = torch.cat([shown[:, None], hidden[:, None], normalisation.undo(drawn).unflatten(0, (-1, versions))], dim=1)
    write_picture(path, padded_grid(rows.flatten(0, 1), versions + 2))


def write_picture(path: Path, image_CHW: Tensor) -> None:
    """0..1 of one or three channels (of others the first three, or the first), enlarged without smoothing, as PNG."""
    image_CHW = image_CHW[:3] if len(image_CHW) >= 3 else image_CHW[:1]
    pixels = (image_CHW * 255).round().byte().cpu().numpy().transpose(1, 2, 0)
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    times = max(1, 8 * PICTURE_SIDE // max(picture.size))
    picture = picture.resize((picture.width * times, picture.height * times), Image.Resampling.NEAREST)

    def write(partial: Path) -> None:
        picture.save(partial, "PNG")

    write_atomically(path, write)


def _batch(prepared: PreparedPixels, rows: np.ndarray) -> Batch:
    """Up to PROBE_IMAGES of these rows, evenly spaced."""
    chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), PROBE_IMAGES)).astype(int)]
    found = list(
        evaluation_batches(prepared.store, chosen, batch_size=len(chosen), normalisation=prepared.normalisation)
    )
    return Batch(*(torch.cat([getattr(batch, name) for batch in found]) for name in ("inputs", "targets", "rows")))


@torch.inference_mode()
def _without_context(
    prepared: PreparedPixels, model: ImageGPT, train: Batch, held_out: Batch, device: torch.device
) -> float:
    """Bits per dimension of a model that looks at no other pixel."""
    num_colours = len(model.palette_TC)
    counts = [colour_counts(model.colours_of(batch.inputs.to(device)), num_colours) for batch in (train, held_out)]
    return Pixels(prepared.store.shape.channels).bits(nats_of_single_pixels(*counts))


@torch.inference_mode()
def _probe(
    prepared: PreparedPixels, model: ImageGPT, train: Batch, held_out: Batch, device: torch.device
) -> dict[str, float]:
    """Accuracy of a linear classifier on the features of the middle layer, where images have one class each."""
    if prepared.table.task != "single-label" or len(train.targets.unique()) < 2:
        return {}
    features = [
        torch.cat([model.features(piece.to(device)).float().cpu() for piece in batch.inputs.split(64)])
        for batch in (train, held_out)
    ]
    most = held_out.targets.bincount().max().item() / len(held_out.targets)
    return {
        "probe_accuracy": probe_accuracy(features[0], train.targets, features[1], held_out.targets),
        "probe_majority": most,
    }
