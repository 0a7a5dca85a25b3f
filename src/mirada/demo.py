"""See the attention core work: a small vision transformer learns handwritten digits and shows where it looks.

    python -m mirada.demo [folder for the picture]

Everything is built here from the four parts of the core, with scikit-learn's 8 × 8 digits: one token per pixel and its
surroundings, so the picture is as fine as the image.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Attention, Concatenated, Learned, ScaledDot, full, plane, record

SIZE = (8, 8)
NUM_CLASSES = 10
EPOCHS = 10
BATCH = 64


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(Concatenated(dim, num_heads), score=ScaledDot(), neighbours=full())
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class DigitsModel(nn.Module):
    """Each pixel with its surroundings → a token; class token, learned positions, blocks; the class token answers."""

    def __init__(self, dim: int = 48, depth: int = 2, num_heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, dim, kernel_size=3, padding=1)
        self.class_token = nn.Parameter(torch.randn(dim) * 0.02)
        self.position = Learned(SIZE, dim, num_extra=1)
        self.blocks = nn.Sequential(*(Block(dim, num_heads) for _ in range(depth)))
        self.norm, self.answer = nn.LayerNorm(dim), nn.Linear(dim, NUM_CLASSES)

    def forward(self, image_BHW: Tensor) -> Tensor:
        pixels = self.embed(image_BHW[:, None]).flatten(2).mT
        tokens = torch.cat([self.class_token.expand(len(pixels), 1, -1), pixels], dim=1)
        tokens = self.blocks(self.position(tokens, plane(*SIZE, num_extra=1)))
        return self.answer(self.norm(tokens[:, 0]))


def load_digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images in 0 … 1 and labels: train images, train labels, test images, test labels."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images, labels, test_size=0.25, stratify=labels, random_state=0)
    train, test = (torch.tensor(part / 16, dtype=torch.float32).unflatten(1, SIZE) for part in parts[:2])
    return train, torch.tensor(parts[2]), test, torch.tensor(parts[3])


def train(model: nn.Module, images: Tensor, labels: Tensor, epochs: int) -> None:
    num_steps = epochs * -(-len(images) // BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=4e-3, total_steps=num_steps)
    start = time.perf_counter()
    for epoch in range(1, epochs + 1):
        total = 0.0
        for batch in torch.randperm(len(images)).split(BATCH):
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(
            f"epoch {epoch:2}/{epochs}  loss {total / len(images):.3f}  {time.perf_counter() - start:.0f} s", flush=True
        )


@torch.no_grad()
def predict(model: nn.Module, images: Tensor) -> Tensor:
    return model.eval()(images).argmax(-1)


def draw(model: DigitsModel, images: Tensor, labels: Tensor, path: Path) -> None:
    """One test digit of each class, and under it how much of its gaze the class token spends on each pixel."""
    from matplotlib.figure import Figure

    images = images[[int((labels == digit).nonzero()[0]) for digit in range(NUM_CLASSES)]]
    with record(model, layers=[-1], queries=[0]) as maps:
        answers = predict(model, images)
    gaze = maps[0][:, :, 0, 1:].mean(1).unflatten(-1, SIZE)
    figure = Figure(figsize=(10, 2.4), layout="constrained")
    axes = figure.subplots(2, NUM_CLASSES)
    for column, (image, look, answer) in enumerate(zip(images.numpy(), gaze.numpy(), answers, strict=True)):
        axes[0, column].imshow(image, cmap="gray_r")
        axes[0, column].set_title(f"“{int(answer)}”", fontsize=11)
        axes[1, column].imshow(look, cmap="magma", vmin=0)
        axes[1, column].contour(image, levels=[0.5], colors="white", linewidths=0.7, alpha=0.6)
    for row, name in zip(axes, ("digit, and\nthe answer", "where it\nlooks"), strict=True):
        row[0].set_ylabel(name, fontsize=10)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main(folder: Path, epochs: int = EPOCHS) -> float:
    """Train, print, draw; gives the share of test digits that were read correctly."""
    torch.manual_seed(0)
    train_images, train_labels, test_images, test_labels = load_digits()
    model = DigitsModel()
    num_weights = sum(weight.numel() for weight in model.parameters())
    print(f"{len(train_images)} digits to learn from, {len(test_images)} to test with; {num_weights:,} weights")
    train(model, train_images, train_labels, epochs)
    accuracy = (predict(model, test_images) == test_labels).double().mean().item()
    print(f"test accuracy {accuracy:.1%} (guessing: 10 %)")
    picture = folder / "attention.png"
    draw(model, test_images, test_labels, picture)
    print(f"where it looks: {picture}")
    return accuracy


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path("mirada-demo"))
