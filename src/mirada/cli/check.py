"""mirada check"""

from __future__ import annotations

import json as json_format
from typing import Annotated

import typer

from mirada.cli.failures import USER_ERROR
from mirada.cli.options import (
    Level,
    LogLevel,
    Quiet,
    RasterFiles,
    Settings,
    TargetColumn,
    Verbose,
    plot_settings,
    start_logging,
)


def check(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Labelled images (folder, table, .npz, IDX, sample set), images with masks (folders, .npz), text "
            "(.txt, table of pairs), a graph, plots.",
            show_default=False,
        ),
    ],
    settings: Settings = None,
    rasters: RasterFiles = None,
    target: TargetColumn = None,
    near: Annotated[bool, typer.Option("--near", help="Also look for images that are nearly identical.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Look at the data before training: counts, sizes, broken files, balance, duplicates, leaks between splits; of a
    graph nodes, edges, isolated nodes, balance and split; of text lengths, copies and odd rows; of plots places,
    values, clusters, and what rasters lack around them; of masks whether each fits its image, and the share of every
    class.

    The exit code is 0 if one can train on it, with or without warnings, and 2 if not.

    \b
    Example:
      mirada check photos/
      mirada check labels.csv data.label_column=species --near
      mirada check photos/ --json > photos.json
      mirada check cells/                                  folders images and masks
      mirada check plots.csv --rasters climate.tif --target richness
    """
    start_logging(log_level, verbose, quiet)
    from mirada.cli.waiting import counted
    from mirada.verbs.check import check as verb
    from mirada.verbs.check import text_of

    said = [f"{key}={json_format.dumps(value)}" for key, value in plot_settings(rasters, target).items()]
    with counted("looking at images", quiet) as progress:
        inspection = verb(source, settings=[*(settings or ()), *said], near_duplicates=near, progress=progress)
    if not quiet:
        print(json_format.dumps(inspection.to_dict(), indent=1, ensure_ascii=False) if json else text_of(inspection))
    if inspection.problems:
        raise typer.Exit(USER_ERROR)
