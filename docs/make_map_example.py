"""Makes the pictures of the worked example in docs/maps.md: `python docs/make_map_example.py DATA_FOLDER`.

The folder holds south_america_plant_richness.csv (703 vegetation plots) and americas_bioclim.tif (9 bands of climate,
half a degree). A few minutes on two cores.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import mirada
from mirada.train.folder import RunFolder

HERE = Path(__file__).resolve().parent
PICTURES = HERE / "images" / "maps"
FIGURES = ("schemes", "residuals")  # of the report


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
        shutil.copy(made.png, PICTURES / "richness.png")
        copy_figures(run)
        print(run.read_result()["value"], made.seconds)


def copy_figures(run: RunFolder) -> None:
    for figure in sorted(run.figures.glob("*.png")):
        print(figure.name)
        if figure.stem in FIGURES:
            shutil.copy(figure, PICTURES / figure.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
