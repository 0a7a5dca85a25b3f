"""`mirada predict`: answers for new images, broken ones included, for nodes of a graph, for texts, or for places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mirada.errors import MiradaError
from mirada.train.files import write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.verbs.engines.exported import Exported
from mirada.verbs.engines.load import load
from mirada.verbs.images import Progress

if TYPE_CHECKING:
    from mirada.verbs.load import Trained

FORMATS = (".csv", ".jsonl")


def predict(
    run: str | Path | RunFolder | Trained | Exported,
    images: object,
    *,
    out: str | Path | None = None,
    batch_size: int | None = None,
    device: str = "auto",
    engine: str | None = None,
    precision: str | None = None,
    progress: Progress | None = None,
    rasters: Sequence[str | Path] | None = None,
) -> list[dict]:
    """One row per image, text or point: name, the answer, and `error` (None, or why there is no answer).

    `images` are paths, folders, patterns, uint8 arrays or Pillow images; for a model trained on a graph, the folder of
    a graph, and there is a row per node; for a model trained on text, texts and files of texts; for a model trained on
    plots, a file of points, and `rasters` to look at (None: those of the run). `out` is a .csv or .jsonl file.
    `engine` and `precision` are those of mirada.load; without a `batch_size` the engine has its own.
    """
    require_format(out)
    trained = (
        load(run, device=device, engine=engine, precision=precision) if isinstance(run, str | Path | RunFolder) else run
    )
    if rasters and trained.data.get("inputs") != "plots":
        raise MiradaError(f"{trained.folder.path}: this model was not trained on plots; leave the rasters out.")
    about: dict = {"rasters": rasters} if rasters else {}
    about |= {} if batch_size is None else {"batch_size": batch_size}
    rows = trained.rows(images, progress=progress, **about)
    if out is not None:
        write_rows(Path(out), rows)
    return rows


def require_format(out: str | Path | None) -> None:
    if out is not None and Path(out).suffix.lower() not in FORMATS:
        raise MiradaError(f"{out}: cannot write {Path(out).suffix or 'this kind of'} files; name it .csv or .jsonl.")


def write_rows(path: Path, rows: list[dict]) -> None:
    """Either the whole file or none of it."""
    if path.suffix.lower() == ".csv":
        write_text(path, csv_text(rows))
    else:
        write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
