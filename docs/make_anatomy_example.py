"""Makes the example of docs/anatomy.md, pictures and numbers: `python docs/make_anatomy_example.py [SOURCE]`.

A vision transformer with plain patches and a small CNN are trained on images of 32 × 32 pixels, those of the sample set
"photos" unless others are given, and taken apart. A few minutes on two cores.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

import mirada
from mirada.explain.anatomy import Anatomy
from mirada.report.anatomy import filter_sentence, layer_rows, position_sentence
from mirada.report.style import Drawing
from mirada.report.wording import result_sentence
from mirada.train.folder import RunFolder

HERE = Path(__file__).resolve().parent
PAGE, PICTURES = HERE / "anatomy.md", HERE / "images" / "anatomy"
BEGIN, END = "<!-- written by docs/make_anatomy_example.py -->", "<!-- end of the example -->"
SHOWN = ("distance", "divergence", "similarity", "against", "filters", "positions")
COLUMNS = {
    "label": "layer",
    "distance": "distance (px)",
    "uniform_distance": "uniform",
    "entropy": "entropy (nats)",
    "uniform_entropy": "uniform",
    "divergence": "divergence of its heads (nats)",
}
STEPS = 800
SETTINGS = (
    "system.name=vit",
    "system.arguments.dim=64",
    "system.arguments.depth=4",
    "system.arguments.num_heads=4",
    "system.arguments.patch_size=4",
    "system.arguments.stem=linear",
    "system.arguments.pooling=class",
    f"train.steps={STEPS}",
    "train.evaluations=2",
    "baseline.size=nano",
)


def main(source: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        write(mirada.train(source, settings=SETTINGS, out=Path(place) / "run"))


def write(run: RunFolder) -> None:
    found = mirada.anatomy(run.path, against=run.baseline.path)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        save_small(run.path / "anatomy" / f"{found.figures[name].name}.png")
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{told(run, found.anatomy, found.figures)}\n{END}{after}", "utf-8")


def told(run: RunFolder, anatomy: Anatomy, figures: dict[str, Drawing]) -> str:
    lines = [list(COLUMNS.values()), ["---"] * len(COLUMNS)]
    lines += [[row[column] for column in COLUMNS] for row in layer_rows(anatomy)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    pictures = [f"![{figures[name].alt}](images/anatomy/{figures[name].name}.png)" for name in SHOWN]
    own, other = (result_sentence(folder.read_result()) for folder in (run, run.baseline))
    opening = (
        f"A ViT with patches of 4 × 4 pixels, four layers and a class token after {STEPS:,} steps on "
        f"`{Path(run.read_data()['source']).name}`. {own}; a small CNN beside it: {other}. Attention is that of "
        f"{anatomy.num_inputs} held-out images. In the table: mean of the heads (lowest–highest)."
    )
    return "\n\n".join([opening, table, filter_sentence(anatomy), position_sentence(anatomy), *pictures])


def save_small(picture: Path, width: int = 900) -> None:
    """In few colours, as a page of documentation needs it."""
    with Image.open(picture) as image:
        small = image.convert("RGB")
        small.thumbnail((width, width), Image.Resampling.LANCZOS)
        small.quantize(128, dither=Image.Dither.NONE).save(PICTURES / picture.name, optimize=True)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["photos"]))
