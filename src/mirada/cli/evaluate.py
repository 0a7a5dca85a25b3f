"""mirada evaluate"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from mirada.cli.options import (
    Device,
    Level,
    LogLevel,
    Quiet,
    RasterFiles,
    Run,
    Settings,
    Verbose,
    plot_settings,
    split_settings,
    start_logging,
)
from mirada.errors import MiradaError


def evaluate(
    run: Run,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="Other images, texts, plots or graph of the same kind and classes; left out: what the run held out.",
        ),
    ] = None,
    settings: Settings = None,
    rasters: RasterFiles = None,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Measure a trained model on what its run held out, or on other images, texts or plots or another graph.

    Prints the metric with its 95 % interval and writes evaluation-<source>.json and .csv into the run folder. Classes
    of other data are matched by name.

    \b
    Example:
      mirada evaluate runs/vit-photos
      mirada evaluate runs/vit-photos other_photos/
      mirada evaluate runs/vit-photos other.csv data.label_column=species
      mirada evaluate runs/spatioformer-plots other_plots.csv
    """
    start_logging(log_level, verbose, quiet)
    words, rest = split_settings([source, *(settings or [])])
    if len(rest) > 1:
        raise MiradaError(f"{rest[1]!r} is not a setting; write it as key.sub=value, for example data.fit=pad.")

    from mirada.cli.summary import show_evaluation
    from mirada.cli.waiting import counted
    from mirada.verbs.evaluate import evaluate as verb

    words += [f"{key}={json.dumps(value)}" for key, value in plot_settings(rasters).items()]
    with counted("reading images", quiet) as progress:
        evaluation = verb(run, rest[0] if rest else None, settings=words, device=device or "auto", progress=progress)
    if not quiet:
        show_evaluation(evaluation.result, evaluation.files)
