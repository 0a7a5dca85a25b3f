"""What a model of pixels drew, and the held-out images that it finds most and least surprising."""

from __future__ import annotations

from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import Row, Tile
from mirada.report.held_out import displayable, open_held_out
from mirada.report.style import data_uri

NUM_SHOWN = 8


def pixel_section(run: Contents) -> dict:
    """Pictures, or the sentences that say why there are none."""
    section: dict = {name: _picture(run, name) for name in ("samples", "completions")}
    section |= {"unusual": [], "usual": [], "missing": None}
    if not run.predictions:
        return section | {"missing": "There are no held-out images in this run yet."}
    order = sorted(run.predictions, key=lambda row: -float(row["nats_per_pixel"]))
    num_shown = min(NUM_SHOWN, -(-len(order) // 2))
    try:
        section["unusual"] = _tiles(run, order[:num_shown])
        section["usual"] = _tiles(run, order[::-1][:num_shown])
    except MiradaError as error:
        section["missing"] = f"The held-out images cannot be shown: {error}"
    return section


def _picture(run: Contents, name: str) -> str | None:
    path = run.folder.figures / f"{name}.png"
    return data_uri(path.read_bytes(), "png") if path.exists() else None


def _tiles(run: Contents, rows: list[Row]) -> list[Tile]:
    reader = open_held_out(run)
    return [
        Tile(displayable(reader.read(row)), row["name"], (("bits per dimension", _bits(row)),), None) for row in rows
    ]


def _bits(row: Row) -> str:
    return f"{float(row['bits_per_dimension']):.2f}"
