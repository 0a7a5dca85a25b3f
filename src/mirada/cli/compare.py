"""mirada compare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Level, LogLevel, Quiet, Verbose, start_logging


def compare(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM... KEY.SUB=VALUE...",
            help="Two systems or more, each with its own settings in quotes; then settings of all.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[str | None, typer.Option(help="What all are trained on, as in `mirada train`.")] = None,
    seeds: Annotated[int, typer.Option(help="Trainings of every system.")] = 3,
    minutes: Annotated[float | None, typer.Option(help="Training time of each; 5 if nothing else is said.")] = None,
    preset: Annotated[str | None, typer.Option(help="Of `mirada presets`; by default chosen from the data.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder; an earlier one of the same comparison goes on.")
    ] = None,
    at_once: Annotated[int, typer.Option(help="Trainings at a time, in processes that share the cores.")] = 1,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Train several systems on the same data with the same budget, and say which is better and whether that is clear.

    All share the split and the seeds. `preset` is what `mirada train` would take. Ctrl-C stops with everything saved;
    the same command, or only --out FOLDER, goes on.

    \b
    Example:
      mirada compare vit cnn --data digits --seeds 3 --minutes 1
      mirada compare preset "vit:micro system.arguments.stem=linear" cnn:mini --data photos/ train.batch_size=32
      mirada compare --out runs/compare-photos
    """
    start_logging(log_level, verbose, quiet)
    given = words or []
    settings = [word for word in given if "=" in word.split(maxsplit=1)[0]]
    entrants = [word for word in given if word not in settings]

    from mirada.cli.progress import watcher
    from mirada.verbs.compare import compare as verb

    with watcher(quiet) as watching:
        found = verb(
            entrants,
            data,
            seeds=seeds,
            minutes=minutes,
            settings=settings,
            preset=preset,
            out=out,
            at_once=at_once,
            watcher=watching,
        )
    if not quiet:
        print(found.table)
        print(f"Table and figure are in {found.folder}.")
