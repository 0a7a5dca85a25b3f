"""Write docs/gallery.md and its pictures: where the last layer of every attention system looks, on one photograph.

    python docs/make_gallery.py                      about two minutes on two cores
    python docs/make_gallery.py --steps 2 --out DIR  as the tests do

Every system is trained for a moment on the sample set `photos` (which of two photographs is a patch from?), in its
smallest size, and then shown a whole photograph: another size than it was trained at.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_image
from torch import nn
from torch.nn import functional as F

from mirada import systems
from mirada.core import record
from mirada.data import Normalisation
from mirada.report.attention import LastAttention, last_attention, overlay
from mirada.train.checkpoint import load_model
from mirada.verbs.train import train

DOCS = Path(__file__).parent
SIZE = (128, 192)  # height and width of the photograph
PIXELS = (16, 24)  # of it, for systems whose tokens are pixels
STEPS = 80
SMALL = ("nano", "micro", "mini")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="of training, for every system")
    parser.add_argument("--out", type=Path, default=DOCS, help="where gallery.md and images/gallery/ are written")
    args = parser.parse_args()
    pictures = args.out / "images" / "gallery"
    pictures.mkdir(parents=True, exist_ok=True)
    photo = np.asarray(Image.fromarray(load_sample_image("flower.jpg")).resize(SIZE[::-1], Image.Resampling.LANCZOS))
    Image.fromarray(photo).save(pictures / "photo.png")
    sections = [HEAD.format(steps=args.steps)]
    for name in attention_systems():
        sections.append(section(name, args.steps, photo, pictures))
        print(name, flush=True)
    (args.out / "gallery.md").write_text("\n".join(sections), encoding="utf-8")


HEAD = """# Gallery: where every system looks

![The photograph](images/gallery/photo.png)

Made by `python docs/make_gallery.py`: the smallest size of every attention system, trained for {steps} steps to tell
patches of two photographs apart (or, for masks, petals from ground), looks at the whole of one. The more orange, the
more the last attention layer looks there; full colour is the 99th percentile. So short a training makes no good model:
the pictures show that every system can be recorded, at any size, whatever kernel runs, not what a trained one has
learned.
"""


def attention_systems() -> list[str]:
    seen = ("image", "pixels", "masks")
    return [name for name, card in systems.cards().items() if card.inputs in seen and card.parts]


def small_size(name: str) -> str:
    sizes = systems.card(name).sizes
    return next((size for size in SMALL if size in sizes), next(iter(sizes)))


def section(name: str, steps: int, photo: np.ndarray, pictures: Path) -> str:
    card, size = systems.card(name), small_size(name)
    with tempfile.TemporaryDirectory() as folder:
        settings = [f"train.steps={steps}", "train.evaluations=1", "baseline.name=none", "train.batch_size=32"]
        source = flowers_and_ground(photo, Path(folder)) if card.inputs == "masks" else "photos"
        run = train(source, system=f"{name}:{size}", settings=settings, out=Path(folder) / "run")
        model, statistics = load_model(run.best).eval(), run.read_data()["normalisation"]
    normalise = Normalisation(tuple(statistics["mean"]), tuple(statistics["std"])).apply
    seen = (last_pixels_attention if card.inputs == "pixels" else last_attention)(model, normalise(as_batch(photo)))
    relative = seen.relative_BRC[0]
    low, high = np.percentile(relative, [1, 99])
    strength = (relative - low) / max(high - low, 1e-9)
    Image.fromarray(overlay(photo, strength)).save(pictures / f"{name}.png")
    parts = "; ".join(f"{part}: {words}" for part, words in card.parts.items())
    return (
        f"## {card.title}\n\n![Attention of {card.title}](images/gallery/{name}.png)\n\n"
        f"`{name}:{size}`. {card.summary} {card.paper}.\n\n"
        f"Parts: {parts}. Shown: `{seen.layer}`, {seen.looks}, {seen.grid[0]} × {seen.grid[1]} patches.\n"
    )


def flowers_and_ground(photo: np.ndarray, folder: Path) -> Path:
    """Patches of the photograph with masks: a petal is redder than it is blue."""
    corners = [(top, left) for top in range(0, SIZE[0] - 31, 16) for left in range(0, SIZE[1] - 31, 16)]
    patches = np.stack([photo[top : top + 32, left : left + 32] for top, left in corners])
    is_petal = patches[..., 0].astype(int) > patches[..., 2].astype(int) + 40
    np.savez(folder / "flowers.npz", images=patches, masks=is_petal)
    return folder / "flowers.npz"


def as_batch(photo: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(photo.copy()).permute(2, 0, 1)[None]


@torch.inference_mode()
def last_pixels_attention(model: nn.Module, photo_1CHW: torch.Tensor) -> LastAttention:
    """Where a model that writes pixel by pixel looks when it writes the last one, on the photograph in few pixels."""
    small_1CHW = F.adaptive_avg_pool2d(photo_1CHW, PIXELS)
    with record(model, layers=[-1], queries=[-1]) as maps:
        model(small_1CHW)
    (layer,) = maps.names
    # It reads a start token and then all pixels but the last.
    share_N = torch.cat([maps[layer][0, :, 0, 1:].mean(0), torch.zeros(1)])
    relative = (share_N / share_N.mean()).reshape(1, *PIXELS).double().numpy()
    return LastAttention(relative, layer, "the last pixel as it is written")


if __name__ == "__main__":
    main()
