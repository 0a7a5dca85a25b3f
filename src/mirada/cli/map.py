"""mirada map"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mirada.cli.options import Level, LogLevel, Quiet, Run, Verbose, start_logging
from mirada.errors import MiradaError

if TYPE_CHECKING:
    from mirada.verbs.maps.map_run import MapProgress, MapResult

SECONDS_BETWEEN_LINES = 10.0


def map_(
    run: Run,
    rasters: Annotated[
        list[Path],
        typer.Argument(
            metavar="RASTERS", help="GeoTIFFs with the bands of the run, and a band for each covariate, by its name."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The map, a .tif; a .png and an .html are written too.")],
    tile: Annotated[int, typer.Option(min=1, help="Side in pixels of the squares in which it goes.")] = 512,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; by default one per core.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask cluster that computes, such as tcp://10.0.0.7:8786.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Draws of Monte-Carlo dropout for the spread; 0: the spread of the members.")
    ] = 0,
    constants: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="COVARIATE=VALUE", help="A covariate with one value everywhere; repeatable."),
    ] = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Map what a model of plots predicts for every pixel of rasters, with how sure it is.

    The bands of the map are prediction, low and high (the interval of the run's validation), spread (of the members of
    the model, or of --samples), and applicability: how unlike the training plots a pixel is, where up to 1 is inside
    the area of applicability. Pixels without data stay so. The same command goes on with a map that was stopped; the
    map depends neither on --tile nor on who computes.

    \b
    Example:
      mirada map runs/spatioformer-plots climate.tif -o richness.tif
      mirada map runs/spatioformer-plots landsat.tif climate.tif -o richness_2020.tif --set year=2020
      mirada map runs/spatioformer_paper-plots landsat.tif -o richness.tif --samples 20
    """
    start_logging(log_level, verbose, quiet)
    fixed = dict(map(constant, constants or ()))
    from mirada.verbs.map import map_run

    with watched(quiet) as progress:
        made = map_run(
            run,
            rasters,
            out,
            tile=tile,
            workers=workers,
            scheduler=scheduler,
            samples=samples,
            constants=fixed,
            progress=progress,
        )
    if not quiet:
        show_map(made)


def constant(word: str) -> tuple[str, float]:
    name, _, value = word.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise MiradaError(f"--set {word}: expected the name of a covariate and a number, such as year=2020.") from None


@contextmanager
def watched(quiet: bool) -> Iterator[Callable[[MapProgress], None]]:
    """A bar on a terminal, a line now and then elsewhere, nothing if quiet."""
    if quiet:
        yield lambda progress: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("mapping"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} tiles"),
            TextColumn("{task.fields[words]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bars:
            task = bars.add_task("", total=1, words="starting")
            pace = Pace()
            yield lambda now: bars.update(task, completed=now.done, total=now.total, words=pace.describe(now))
    else:
        yield Lines().advances


class Pace:
    """Tiles per second, of those that this command computed, and time left."""

    def __init__(self) -> None:
        self.num_before: int | None = None

    def describe(self, now: MapProgress) -> str:
        from mirada.cli.progress import clock

        if self.num_before is None:
            self.num_before = now.done - 1
        rate = (now.done - self.num_before) / max(now.seconds, 1e-9)
        left = "" if now.seconds_left is None else f", {clock(now.seconds_left)} left"
        return f"{rate:.3g} tiles/s{left}"


class Lines:
    """A plain line about every ten seconds."""

    def __init__(self) -> None:
        self.pace, self.spoken = Pace(), time.monotonic()

    def advances(self, now: MapProgress) -> None:
        words = self.pace.describe(now)
        if time.monotonic() - self.spoken > SECONDS_BETWEEN_LINES:
            print(f"tile {now.done:,}/{now.total:,} ({words})", flush=True)
            self.spoken = time.monotonic()


def show_map(made: MapResult) -> None:
    """What was written, how long it took, and what should be known of it."""
    from mirada.cli.progress import clock

    height, width = made.size
    for note in made.notes:
        print(f"note: {note}")
    before = f", {made.num_kept:,} of them by an earlier command" if made.num_kept else ""
    print(f"mapped {made.num_tiles:,} tiles ({made.num_empty:,} without data{before}) in {clock(made.seconds)}")
    print(f"wrote {made.path}  {height:,} × {width:,} pixels: {', '.join(made.outputs)}")
    print(f"wrote {made.png}  a picture")
    print(f"wrote {made.page}  to look around in, without a network")
