"""Run folders as `mirada train` leaves them, with made-up answers: everything else is real, and nothing is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import yaml
from PIL import Image
from torch import Tensor

from mirada import systems
from mirada.data import open_source
from mirada.tasks.image import Task, saved_task
from mirada.train.checkpoint import describe_model, save_tensors
from mirada.train.files import write_json, write_text
from mirada.train.folder import RunFolder, csv_text

SYSTEM_ARGUMENTS = {
    "vit": {"dim": 12, "depth": 2, "num_heads": 2, "patch_size": 4, "pooling": "class"},
    "cnn": {"dim": 4, "depth": 1},
}


def digits_run(path: Path, *, share_right: float = 0.9, baseline_right: float | None = 0.8, **changes) -> RunFolder:
    """Single-label: held-out rows of the digits sample."""
    table = open_source("digits")
    rows = np.arange(0, len(table), 13)
    data = {
        "source": "digits",
        "kind": "sample",
        "task": "single-label",
        "class_names": list(table.class_names),
        "image_size": [8, 8],
        "in_channels": 1,
        "checksum": table.checksum(),
        **changes,
    }
    counts = [101 + 7 * number for number in range(len(data["class_names"]))]
    data["class_counts"] = {"train": counts, "val": [7] * len(counts), "test": [13] * len(counts)}
    targets = torch.from_numpy(table.targets[rows])
    return write_run(path, data, [table.name(row) for row in rows], rows, targets, share_right, baseline_right)


def labels_run(path: Path, *, share_right: float = 0.8, baseline_right: float | None = 0.8) -> RunFolder:
    """Multi-label: files on disk."""
    names = ["boat", "dog", "tree"]
    files = photographs(path.parent / "photos", 31)
    targets = (torch.rand(31, 3, generator=torch.Generator().manual_seed(1)) > 0.5).float()
    counts = targets.sum(0).int().tolist()
    data = {"source": str(path.parent / "photos"), "kind": "table", "task": "multi-label", "class_names": names}
    data |= {"image_size": [11, 13], "in_channels": 3, "class_counts": dict.fromkeys(("train", "val", "test"), counts)}
    return write_run(path, data, files, np.arange(31), targets, share_right, baseline_right)


def numbers_run(path: Path, *, share_right: float = 0.9, baseline_right: float | None = 0.2) -> RunFolder:
    """Regression on two targets: files on disk."""
    files = photographs(path.parent / "photos", 37)
    targets = torch.randn(37, 2, generator=torch.Generator().manual_seed(2)) * torch.tensor([3.0, 50.0])
    data = {"source": str(path.parent / "photos"), "kind": "table", "task": "regression", "class_names": []}
    data |= {"target_names": ["height $m$", "mass"], "image_size": [11, 13], "in_channels": 3}
    data |= {"target_mean": [0.0, 0.0], "target_std": [3.0, 50.0]}
    return write_run(path, data, files, np.arange(37), targets, share_right, baseline_right)


def write_run(path, data, names, rows, targets, share_right, baseline_right) -> RunFolder:
    data = {
        "target_names": [],
        "fit": "crop",
        "held_out": "test",
        "notes": ["a note"],
        "broken": [{"name": "a.jpg", "reason": "it is empty"}],
        "checksum": "0",
        "num_images": {"train": 1000, "val": 70, "test": len(rows)},
        "normalisation": {"mean": [0.5] * data["in_channels"], "std": [0.5] * data["in_channels"]},
        **data,
    }
    task, folder = saved_task(data), RunFolder(path)
    write_json(folder.data, data)
    _write_side(folder, "vit", data, task, names, rows, targets, share_right, seed=0)
    if baseline_right is not None:
        _write_side(folder.baseline, "cnn", data, task, names, rows, targets, baseline_right, seed=1)
    return folder


def _write_side(folder, system, data, task, names, rows, targets, share_right, seed) -> None:
    num_outputs = len(data["class_names"]) or len(data["target_names"])
    shape = {"image_size": data["image_size"], "in_channels": data["in_channels"], "num_classes": num_outputs}
    arguments = {**SYSTEM_ARGUMENTS[system], **shape}
    model = systems.create(system, **arguments | {"image_size": tuple(data["image_size"])})
    num_parameters = sum(p.numel() for p in model.parameters())
    describe_model(folder.best / "model.json", system, None, arguments, num_parameters)
    save_tensors(folder.best / "model.safetensors", model.state_dict())
    config = {"preset": "tiny-images", "data": {"source": data["source"]}, "system": {"name": system, "size": None}}
    config |= {"train": {"steps": 30, "epochs": None, "betas": [0.9, 0.999], "learning_rate": 1e-3, "seed": 3}}
    write_text(folder.config, yaml.safe_dump(config))
    outputs = answers(task, targets, num_outputs, share_right, seed)
    lines = [
        {"name": name, "row": int(row), **target, **answer}
        for name, row, target, answer in zip(names, rows, task.named(targets), task.answers(outputs), strict=True)
    ]
    write_text(folder.predictions, csv_text(lines))
    counted = {"system": system, "size": None, "num_parameters": num_parameters, "seconds_training": 61.5}
    counted |= {"samples_seen": 1920, "best_step": 20, "steps": 30, "seconds_per_image": 0.0021}
    write_json(folder.result, {"split": "test", "task": data["task"], **task.result(outputs, targets), **counted})
    folder.write_metrics(
        [
            {"step": 10 * n, "epoch": n / 2, "seconds": 20.0 * n, "samples": 640 * n, "learning_rate": 1e-3}
            | {"train_loss": 2 / n, "val_loss": 1.5 / n, f"val_{task.metric}": 1 - 0.5 / n}
            for n in (1, 2, 3)
        ]
    )


def answers(task: Task, targets: Tensor, num_outputs: int, share_right: float, seed: int) -> Tensor:
    """Outputs that are right for about that share of rows, and unsure about some."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(targets), num_outputs, generator=generator)
    if task.metric == "r2":
        return (targets - task.mean) / task.std + (1.2 - share_right) * noise
    is_right = torch.rand(len(targets), generator=generator) < share_right
    if task.metric == "f1":
        return torch.where(is_right[:, None], 4 * targets - 2, 2 - 4 * targets) + 0.5 * noise
    shown = torch.where(is_right, targets, (targets + 1) % num_outputs)
    return 4 * torch.nn.functional.one_hot(shown, num_outputs) + 0.5 * noise


def photographs(folder: Path, number: int) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    paths = [folder / f"photo {n}.png" for n in range(number)]
    for path in paths:
        Image.fromarray(generator.integers(0, 256, (11, 13, 3), dtype=np.uint8)).save(path)
    return [str(path) for path in paths]
