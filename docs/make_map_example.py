"""Makes the pictures of the worked example in docs/maps.md: `python docs/make_map_example.py DATA_FOLDER`.

The folder holds south_america_plant_richness.csv (703 vegetation plots) and americas_bioclim.tif (9 bands of climate,
half a degree). A few minutes on two cores.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

import mirada

HERE = Path(__file__).resolve().parent
PICTURES = HERE / "images" / "maps"
FIGURES = ("schemes",)  # of the report


def main(data: Path) -> None:
    plots, climate = data / "south_america_plant_richness.csv", data / "americas_bioclim.tif"
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        run = mirada.train(
            plots,
            settings=[
                f"data.rasters=[{climate}]",
                "data.label_column=richness",
                "data.covariates=[]",
                "maps.block=3deg",
                "maps.schemes=[blocked]",
                "train.steps=200",
            ],
            out=Path(place) / "run",
        )
        made = mirada.map(run.path, climate, Path(place) / "richness.tif")
        save_small(made.png, 1600)
        for figure in FIGURES:
            save_small(run.figures / f"{figure}.png", 600)
        print(run.read_result()["value"], made.seconds)


def save_small(picture: Path, width: int) -> None:
    """In few colours, as a page of documentation needs it."""
    with Image.open(picture) as image:
        small = image.convert("RGB")
        small.thumbnail((width, width), Image.Resampling.LANCZOS)
        small.quantize(128, dither=Image.Dither.NONE).save(PICTURES / picture.name, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
