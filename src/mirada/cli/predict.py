"""mirada predict"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging
from mirada.errors import MiradaError

SHOWN_REASONS = 5


def predict(
    run: Run,
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES",
            help="Image files, folders or patterns such as 'new/*.jpg'; - reads paths from stdin. Or a graph's folder.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a .csv or .jsonl file instead of printing a table.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 64,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Say what a trained model sees in images, or what it takes the nodes of a graph for.

    An image that cannot be read is reported in its row and does not stop the others.

    \b
    Example:
      mirada predict runs/vit-photos cat.jpg
      mirada predict runs/vit-photos new_photos/ -o answers.csv
      mirada predict runs/gat-citations citations/ -o answers.csv
      find . -name '*.jpg' | mirada predict runs/vit-photos - -o answers.jsonl
    """
    start_logging(log_level, verbose, quiet)
    if quiet and out is None:
        raise MiradaError("--quiet prints no answers; say with --out where to write them.")
    given = [line for word in images for line in (paths_from_stdin() if word == "-" else [word])]

    from mirada.cli.waiting import counted
    from mirada.verbs.predict import predict as verb

    with counted("predicting", quiet) as progress:
        rows = verb(run, given, out=out, batch_size=batch_size, device=device or "auto", progress=progress)
    failed = [row for row in rows if row["error"]]
    if out is None:
        show_answers(rows)
    elif not quiet:
        print(f"wrote {len(rows):,} rows to {out}")
    if failed and not quiet:
        for row in failed[:SHOWN_REASONS]:
            print(f"mirada: {row['error']}", file=sys.stderr)
        print(f"mirada: {len(failed)} of {len(rows)} images could not be read.", file=sys.stderr)


def paths_from_stdin() -> list[str]:
    return [line for line in sys.stdin.read().splitlines() if line.strip()]


def show_answers(rows: list[dict]) -> None:
    """One line per image. The shares of single classes are for files."""
    from rich import box
    from rich.table import Table

    from mirada.cli.summary import plain, print_table

    columns = [name for name in rows[0] if not name.startswith("p_") and name != "error"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(plain(name.replace("_", " ")), overflow="fold")
    for row in rows:
        cells = [row[name] for name in columns]
        if row["error"]:
            cells[1] = "cannot be read"
        table.add_row(*(plain("" if cell is None else cell) for cell in cells))
    print_table(table)
