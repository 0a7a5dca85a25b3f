"""The images and classes that benchmarks/planted.py explains, with masks: of planted objects, and of pets."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks import jobs
from benchmarks.jobs import unpack_pets
from benchmarks.planted_data import pairs, planted, seed_of
from benchmarks.planted_measure import Asked, Pairs
from mirada.data.decode import decode_image
from mirada.data.resize import fit_image
from mirada.explain.faithfulness import is_above_half, is_highest
from mirada.tasks.single_label import SingleLabel
from mirada.verbs.load import Trained

PET = 1  # in a trimap; 2 is background, 3 the border, of which nobody says whose it is


def asked(trained: Trained) -> Asked:
    """Probabilities that add up to one where an image has one class, else one for each label."""
    statistics, task, model = trained.normalisation, trained.task, trained.model
    black_C = tuple(-mean / std for mean, std in zip(statistics.mean, statistics.std, strict=True))
    if isinstance(task, SingleLabel):
        return Asked(model, lambda images_BCHW: task.probabilities(model(images_BCHW)), is_highest, black_C)
    return Asked(model, lambda images_BCHW: model(images_BCHW).sigmoid(), is_above_half, black_C)


def planted_pairs(trained: Trained, seed: int, num_test: int, count: int) -> Pairs:
    """Held-out images, and one class of each."""
    made = planted(num_test, seed_of("test", seed))
    image_P, class_P = pairs(made.labels_NC, count, seed)
    return Pairs(
        _normalised(trained, made.images_NHWC[image_P]),
        torch.from_numpy(class_P),
        torch.from_numpy(made.mask(image_P, class_P)),
        torch.from_numpy(made.labels_NC[image_P].sum(1) > 1),
    )


def pet_pairs(trained: Trained, seed: int, count: int) -> tuple[Pairs, Pairs]:
    """Test images with an animal: with the class that the model says, and with the true one."""
    with open(pets_table(), newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    order = np.random.default_rng(seed).permutation(len(rows))
    size, names = trained.target.size, list(trained.data["class_names"])
    images, masks, classes = [], [], []
    for number in order:
        path = Path(rows[number]["path"])
        mask_HW = _animal(path.parents[1] / "trimaps" / f"{path.stem}.png", size)
        if mask_HW.any() and len(images) < count:
            images.append(fit_image(decode_image(str(path)), size, "squash"))
            masks.append(mask_HW)
            classes.append(names.index(rows[number]["label"]))
    images_BCHW, true_B = _normalised(trained, np.stack(images)), torch.tensor(classes)
    with torch.inference_mode():
        said_B = trained.model(images_BCHW).argmax(1)
    mask_BHW, nowhere_B = torch.from_numpy(np.stack(masks)), torch.zeros(len(images), dtype=torch.bool)
    said, true = (Pairs(images_BCHW, class_B, mask_BHW, nowhere_B) for class_B in (said_B.clone(), true_B))
    return said, true


def pets_table() -> Path:
    """Unpacked once."""
    folder = jobs.RUNS / "data"
    if not (folder / "pets.csv").exists():
        folder.mkdir(parents=True, exist_ok=True)
        unpack_pets(folder)
    return folder / "pets.csv"


def _normalised(trained: Trained, images_NHWC: np.ndarray) -> Tensor:
    return trained.normalisation.apply(torch.from_numpy(np.ascontiguousarray(images_NHWC.transpose(0, 3, 1, 2))))


def _animal(trimap: Path, size: tuple[int, int]) -> np.ndarray:
    """(H, W) true on the animal, squashed as its image is."""
    with Image.open(trimap) as image:
        return np.asarray(image.resize((size[1], size[0]), Image.Resampling.NEAREST)) == PET
