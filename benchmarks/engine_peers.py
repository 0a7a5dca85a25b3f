"""The scripts that `mirada predict` is measured against: what a user of timm or transformers writes.

python benchmarks/engine_peers.py timm-files SHAPE FOLDER OUT.csv
python benchmarks/engine_peers.py timm SHAPE PHOTO
python benchmarks/engine_peers.py transformers SHAPE PHOTO
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


def timm_model(shape: dict):
    from benchmarks.peers import timm_vit

    return timm_vit(**shape).eval()


def transform(size: int):
    from torchvision import transforms

    steps = [
        transforms.Resize(size),
        transforms.CenterCrop(size),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    return transforms.Compose(steps)


class Photos:
    """A Dataset."""

    def __init__(self, files: list[Path], size: int) -> None:
        self.files, self.transform = files, transform(size)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int):
        from PIL import Image

        return self.transform(Image.open(self.files[index]).convert("RGB"))


def timm_files(shape: dict, folder: str, out: str) -> None:
    import torch
    from torch.utils.data import DataLoader

    model = timm_model(shape)
    files = sorted(Path(folder).rglob("*.jpg"))
    loader = DataLoader(Photos(files, shape["image_size"]), batch_size=64, num_workers=2)
    shares = []
    with torch.inference_mode():
        for images in loader:
            shares += model(images).softmax(-1).tolist()
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        for path, row in zip(files, shares, strict=True):
            writer.writerow([path, max(range(len(row)), key=row.__getitem__), *row])


def timm_photo(shape: dict, photo: str) -> None:
    import torch
    from PIL import Image

    model = timm_model(shape)
    with torch.inference_mode():
        print(model(transform(shape["image_size"])(Image.open(photo).convert("RGB"))[None]).softmax(-1))


def transformers_photo(shape: dict, photo: str) -> None:
    import numpy as np
    import torch
    from PIL import Image

    from benchmarks.peers import declare_operators

    declare_operators()
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=shape["dim"],
        num_hidden_layers=shape["depth"],
        num_attention_heads=shape["num_heads"],
        intermediate_size=4 * shape["dim"],
        image_size=shape["image_size"],
        patch_size=shape["patch_size"],
        num_labels=shape["num_classes"],
    )
    model = ViTForImageClassification(config).eval()
    # Its image processor would load still more.
    pixels = np.asarray(Image.open(photo).convert("RGB"), np.float32).transpose(2, 0, 1) / 255
    with torch.inference_mode():
        print(model(torch.from_numpy((pixels - 0.5) / 0.25)[None]).logits.softmax(-1))


if __name__ == "__main__":
    name, shape, *further = sys.argv[1:]
    {"timm-files": timm_files, "timm": timm_photo, "transformers": transformers_photo}[name](
        json.loads(shape), *further
    )
