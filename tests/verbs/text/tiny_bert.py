"""Runs that fill in or classify words of numbers: the files that `mirada train` leaves, without any training."""

from __future__ import annotations

from pathlib import Path

import torch

from mirada import systems
from mirada.data.text.tokeniser import Tokeniser
from mirada.train.checkpoint import describe_model, save_tensors
from mirada.train.files import write_json
from mirada.train.folder import RunFolder
from tests.verbs.text.texts import NUMBERS

CLASSES = ["small", "large"]
NUM_WORDS = len(NUMBERS)


def tiny_bert(path: Path, task: str) -> Path:
    """task: "fill" or "single-label"."""
    folder = RunFolder(path)
    folder.best.mkdir(parents=True)
    tokeniser = Tokeniser.train(list(NUMBERS), "word")
    tokeniser.save(folder.tokeniser)
    arguments = {"num_tokens": len(tokeniser), "dim": 6, "depth": 1, "num_heads": 2, "max_length": 19, "dropout": 0.0}
    if task == "single-label":
        arguments["num_classes"] = len(CLASSES)
    torch.manual_seed(0)
    model = systems.create("bert", **arguments)
    describe_model(folder.best / "model.json", "bert", None, arguments, 0)
    save_tensors(folder.best / "model.safetensors", model.state_dict())
    names = CLASSES if task == "single-label" else []
    write_json(folder.data, {"inputs": "text", "task": task, "class_names": names, "max_length": 17})
    return path
