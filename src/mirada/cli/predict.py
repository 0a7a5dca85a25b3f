"""mirada predict"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.lines import lines_of_stdin
from mirada.cli.options import (
    Device,
    Engine,
    Level,
    LogLevel,
    Precision,
    Quiet,
    RasterFiles,
    Run,
    Verbose,
    named,
    start_logging,
)
from mirada.errors import MiradaError

THINGS = {"text": "texts", "pairs": "texts", "plots": "points"}


def predict(
    run: Run,
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUTS",
            help="Image files, folders or patterns such as 'new/*.jpg'; - reads paths from stdin. Or a graph's folder. "
            "Or texts, and files of them (.txt, .csv, .tsv, .jsonl); - reads a text per line. Or a file of points.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a .csv or .jsonl file instead of printing a table.")
    ] = None,
    rasters: RasterFiles = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Images or texts at a time; by default what suits the engine.")
    ] = None,
    engine: Engine = None,
    precision: Precision = None,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Say what a trained model sees in images, what it takes the nodes of a graph for, what it makes of texts, or what
    it expects at places.

    An image that cannot be read is reported in its row and does not stop the others. Every line of a text file or of
    stdin has a row, blank ones too. Points need no target; bands come from the rasters of the run, or from --rasters.

    \b
    Example:
      mirada predict runs/vit-photos cat.jpg
      mirada predict runs/vit-photos new_photos/ -o answers.csv
      mirada predict runs/gat-citations citations/ -o answers.csv
      mirada predict runs/bert-reviews "what a lovely film" new_reviews.txt
      mirada predict runs/spatioformer-plots new_points.csv -o richness.csv
      mirada predict runs/vit-photos new_photos/ -o answers.csv --engine onnx --precision int8
      find . -name '*.jpg' | mirada predict runs/vit-photos - -o answers.jsonl
    """
    start_logging(log_level, verbose, quiet)
    if quiet and out is None:
        raise MiradaError("--quiet prints no answers; say with --out where to write them.")

    from mirada.cli.answers import show_answers, tell_failures
    from mirada.cli.waiting import counted
    from mirada.verbs.engines.load import load
    from mirada.verbs.predict import predict as verb
    from mirada.verbs.predict import require_format

    require_format(out)
    trained = load(run, device=device or "auto", engine=named(engine), precision=named(precision))
    things = THINGS.get(trained.data.get("inputs", "image"), "images")
    given = texts_given(images) if things == "texts" else paths_given(images)
    with counted("predicting", quiet) as progress:
        rows = verb(trained, given, out=out, batch_size=batch_size, progress=progress, rasters=rasters)
    if out is None:
        show_answers(rows, "cannot be read" if things == "images" else "no answer")
    elif not quiet:
        print(f"wrote {len(rows):,} rows to {out}")
    if not quiet:
        tell_failures(rows, things)
    for note in () if quiet else getattr(trained, "notes", ()):
        print(f"note: {note}", file=sys.stderr)


def paths_given(words: list[str]) -> list[str]:
    return [path for word in words for path in (filter(str.strip, lines_of_stdin()) if word == "-" else [word])]


def texts_given(words: list[str]) -> list[str]:
    """A line of stdin is a text, whatever it says, and a blank one keeps its row."""
    from mirada.verbs.text.lines import Texts, texts_of

    return Texts(text for word in words for text in (lines_of_stdin() if word == "-" else texts_of(word)))
