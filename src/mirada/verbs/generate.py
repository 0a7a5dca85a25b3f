"""`mirada generate`: more text from a language model; new images from a model of pixels, or given ones completed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch

from mirada.errors import MiradaError
from mirada.systems import ImageGPT
from mirada.tasks.writing import Draw
from mirada.train.folder import RunFolder
from mirada.verbs.images import named_images, read_many
from mirada.verbs.load import Trained, load
from mirada.verbs.pixel_results import draw_completions, draw_samples
from mirada.verbs.text.precision import in_precision
from mirada.verbs.text.trained import text_run

BATCH = 64


def generate_text(
    run: str | Path | RunFolder | Trained,
    prompt: str = "",
    *,
    count: int = 1,
    max_tokens: int = 200,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    precision: str = "float32",
    device: str = "auto",
) -> list[str]:
    """`count` ways to go on from the prompt, without the prompt; the same seed writes the same.

    precision: "float32", or "int8", which is faster and is refused where held-out text says that it is worse.
    """
    if count < 1:
        raise MiradaError(f"{count} texts are asked for; at least one can be written.")
    draw = Draw(temperature, top_k, top_p, seed)
    trained = text_run(run, device)
    trained.require("generate")
    writer = in_precision(trained, precision).writer
    return writer.write(prompt, count=count, max_tokens=max_tokens, draw=draw)


def generate(
    run: str | Path | RunFolder | Trained,
    out: str | Path,
    *,
    count: int = 16,
    complete: object = None,
    share: float = 0.5,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Path:
    """Write a picture of `count` new images, or with `complete` (paths, arrays, …) of `count` completions of each.

    `share` of an image's rows, from above, is shown to the model. The same seed draws the same picture.
    """
    trained = run if isinstance(run, Trained) else load(run, device=device)
    model = trained.model
    if not isinstance(model, ImageGPT):
        raise MiradaError(
            f"{trained.folder.path}: this model answers about images and draws none; train one by "
            "`mirada train DATA --system image_gpt`."
        )
    if count < 1:
        raise MiradaError(f"{count} images are asked for; at least one can be drawn.")
    path = Path(out)
    if path.suffix.lower() != ".png":
        raise MiradaError(f"{path}: the picture is written as PNG; give a name that ends in .png.")
    if not os.access(path.parent, os.W_OK):
        raise MiradaError(f"{path}: cannot be written there; give another place.")
    how = {"temperature": temperature, "top_k": top_k, "seed": seed}
    model.eval()
    if complete is None:
        draw_samples(model, path, trained.normalisation, count, **how)  # type: ignore[arg-type]
        return path
    found = [pixels for batch in read_many(named_images(complete), trained.target, BATCH) for pixels in batch]
    unreadable = next((reason for reason in found if isinstance(reason, str)), None)
    if unreadable is not None or not found:
        raise MiradaError(unreadable or "no images to complete are given; give at least one.")
    images = trained.normalisation.apply(torch.from_numpy(np.stack([p for p in found if not isinstance(p, str)])))
    draw_completions(
        model,
        path,
        trained.normalisation,
        images.to(trained.device),
        count,
        share=share,
        **how,  # type: ignore[arg-type]
    )
    return path
