"""`mirada predict`: answers for new images, broken ones included."""

from __future__ import annotations

import json
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.verbs.images import named_images
from mirada.verbs.load import Progress, Trained, load

FORMATS = (".csv", ".jsonl")


def predict(
    run: str | Path | RunFolder | Trained,
    images: object,
    *,
    out: str | Path | None = None,
    batch_size: int = 64,
    device: str = "auto",
    progress: Progress | None = None,
) -> list[dict]:
    """One row per image: name, the answer, and `error` (None, or why there is no answer).

    `images` are paths, folders, patterns, uint8 arrays or Pillow images. `out` is a .csv or .jsonl file.
    """
    if out is not None and Path(out).suffix.lower() not in FORMATS:
        raise MiradaError(f"{out}: cannot write {Path(out).suffix or 'this kind of'} files; name it .csv or .jsonl.")
    named = named_images(images)
    if not named:
        raise MiradaError("no images are given; give at least one file or folder.")
    trained = run if isinstance(run, Trained) else load(run, device=device)
    rows: list[dict] = []
    for batch, reasons, outputs in trained.batches(named, batch_size, progress):
        answers = iter(trained.task.answers(outputs) if len(outputs) else ())
        for image, reason in zip(batch, reasons, strict=True):
            rows.append({"name": image.name, **({} if reason else next(answers)), "error": reason or None})
    columns = next((list(row) for row in rows if not row["error"]), None)
    if columns is None:
        raise MiradaError(f"none of {len(rows)} images can be read; the first: {rows[0]['error']}")
    rows = [{column: row.get(column) for column in columns} for row in rows]
    if out is not None:
        write_rows(Path(out), rows)
    return rows


def write_rows(path: Path, rows: list[dict]) -> None:
    """Either the whole file or none of it."""
    if path.suffix.lower() == ".csv":
        write_text(path, csv_text(rows))
    else:
        write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
