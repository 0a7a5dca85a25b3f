"""Runs of every kind as `mirada train` leaves them, without training: a server does not care how good they are."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from mirada import systems
from mirada.data.text.tokeniser import Tokeniser
from mirada.train.checkpoint import describe_model, save_tensors
from mirada.train.files import write_json
from mirada.train.folder import RunFolder
from tests.verbs.text.texts import NUMBERS

SCRIPT = "<script>alert(1)</script>"
CLASSES = ["bright", "dark", SCRIPT]
SIZE = 24
PIXELS = {
    "in_channels": 3,
    "image_size": [SIZE, SIZE],
    "fit": "crop",
    "normalisation": {"mean": [0.5] * 3, "std": [0.25] * 3},
}


def image_run(path: Path, task: str = "single-label", names: list[str] | None = None) -> Path:
    names = names or CLASSES
    arguments = {"image_size": SIZE, "in_channels": 3, "num_classes": len(names), "patch_size": 8, "dropout": 0.0}
    arguments |= {"dim": 12, "depth": 2, "num_heads": 3}
    about = {"task": task, **PIXELS}
    if task == "regression":
        about |= {"target_names": names, "target_mean": [2.0] * len(names), "target_std": [3.0] * len(names)}
    else:
        about |= {"class_names": names}
    return _written(path, "vit", arguments, about)


def mask_run(path: Path, fit: str = "squash") -> Path:
    names = ["background", "cell"]
    arguments = {"image_size": SIZE, "in_channels": 3, "num_classes": 2, "dim": 4, "depth": 2}
    classes = {"codes": [0, 1], "names": names, "ignored": [], "are_colours": False}
    return _written(
        path,
        "unet",
        arguments,
        {"inputs": "masks", "task": "segment", "class_names": names, "classes": classes, **PIXELS, "fit": fit},
    )


def writing_run(path: Path) -> Path:
    tokeniser = Tokeniser.train([" ".join(NUMBERS)] * 3, "character")
    arguments = {"num_tokens": len(tokeniser), "dim": 8, "depth": 1, "num_heads": 2, "max_length": 16}
    run = _written(path, "gpt", arguments, {"inputs": "text", "task": "generate", "class_names": [], "max_length": 16})
    tokeniser.save(RunFolder(path).tokeniser)
    return run


def words_run(path: Path) -> Path:
    tokeniser = Tokeniser.train(list(NUMBERS), "word")
    run = _written(
        path,
        "word2vec",
        {"num_tokens": len(tokeniser), "dim": 8},
        {"inputs": "text", "task": "embed", "class_names": []},
    )
    tokeniser.save(RunFolder(path).tokeniser)
    return run


def picture(seed: int = 0, size: tuple[int, int] = (SIZE, SIZE), format: str = "PNG") -> bytes:
    """The bytes of a file with a colourful image."""
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format)
    return stream.getvalue()


def _written(path: Path, system: str, arguments: dict, about: dict) -> Path:
    folder = RunFolder(path)
    folder.best.mkdir(parents=True)
    torch.manual_seed(0)
    model = systems.create(system, **arguments)
    describe_model(folder.best / "model.json", system, None, arguments, 0)
    save_tensors(folder.best / "model.safetensors", model.state_dict())
    write_json(folder.data, about)
    return path
