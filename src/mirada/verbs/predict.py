"""`mirada predict`: answers for new images, broken ones included, for nodes of a graph, for texts, or for places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.verbs.load import Progress, Trained, load
from mirada.verbs.maps.trained import TrainedPlots

FORMATS = (".csv", ".jsonl")


def predict(
    run: str | Path | RunFolder | Trained,
    images: object,
    *,
    out: str | Path | None = None,
    batch_size: int = 64,
    device: str = "auto",
    progress: Progress | None = None,
    rasters: Sequence[str | Path] | None = None,
) -> list[dict]:
    """One row per image, text or point: name, the answer, and `error` (None, or why there is no answer).

    `images` are paths, folders, patterns, uint8 arrays or Pillow images; for a model trained on a graph, the folder of
    a graph, and there is a row per node; for a model trained on text, texts and files of texts; for a model trained on
    plots, a file of points, and `rasters` to look at (None: those of the run). `out` is a .csv or .jsonl file.
    """
    require_format(out)
    trained = run if isinstance(run, Trained) else load(run, device=device)
    if rasters and not isinstance(trained, TrainedPlots):
        raise MiradaError(f"{trained.folder.path}: this model was not trained on plots; leave the rasters out.")
    about = {"rasters": rasters} if rasters else {}
    rows = trained.rows(images, batch_size=batch_size, progress=progress, **about)
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
