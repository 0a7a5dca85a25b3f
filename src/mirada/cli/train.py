"""mirada train"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import (
    Device,
    Level,
    LogLevel,
    Quiet,
    RasterFiles,
    Settings,
    TargetColumn,
    Verbose,
    plot_settings,
    split_settings,
    start_logging,
)
from mirada.errors import MiradaError
from mirada.machine.processes import started

LENGTHS = ("epochs", "steps", "minutes")


def train(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="Labelled images (folder, table, .npz, IDX, sample set), text (.txt, table of pairs), a graph, plots.",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    rasters: RasterFiles = None,
    target: TargetColumn = None,
    system: Annotated[str | None, typer.Option(help="Model, or model:size, of `mirada systems`.")] = None,
    preset: Annotated[str | None, typer.Option(help="Of `mirada presets`; by default chosen from the data.")] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file of settings, such as a run's config.yaml.")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH_OR_HUB_ID",
            help="Trained weights to start from: a run, or a checkpoint of transformers or timm in safetensors.",
        ),
    ] = None,
    teacher: Annotated[
        str | None, typer.Option(metavar="RUN", help="A run on the same classes whose answers are learned too.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder; must not hold anything yet.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run folder below runs/.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the training data.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Training time; by default that of the preset.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates of the weights.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same run.")] = None,
    device: Device = None,
    baseline: Annotated[
        str | None, typer.Option(help="Opponent to compare with: cnn, resnet, mlp (graphs), seq2seq (pairs) or none.")
    ] = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Train a model on labelled images, text, a graph with labelled nodes or plots on a map, judge it on what it has
    not seen, and write a report.

    What is not given is chosen from the data. Options beat KEY.SUB=VALUE settings, these beat the --config file, and
    that beats the preset. Ctrl-C stops with everything saved; `mirada resume` goes on.

    \b
    Example:
      mirada train photos/
      mirada train en-es.tsv
      mirada train book.txt --system bert
      mirada train citations/
      mirada train plots.csv --rasters landsat.tif --rasters climate.tif --target richness
      mirada train labels.csv --system vit:mini --minutes 20
      mirada train digits --epochs 10 --baseline none train.learning_rate=5e-4 augment.strength=strong
      mirada train photos/ --from google/vit-base-patch16-224
      mirada train photos/ --system deit --teacher runs/cnn-photos
      mirada train --config runs/vit-digits/config.yaml --seed 1
    """
    quiet = quiet or not started().is_first  # of processes that torchrun started, one speaks
    start_logging(log_level, verbose, quiet)
    words, rest = split_settings([source, *(settings or [])])
    if len(rest) > 1:
        raise MiradaError(f"{rest[1]!r} is not a setting; write it as key.sub=value, for example train.epochs=10.")
    flags = {
        "name": name,
        "train.epochs": epochs,
        "train.minutes": minutes,
        "train.steps": steps,
        "train.seed": seed,
        "train.device": device,
        "baseline.name": baseline,
        "distil.teacher": teacher,
        **plot_settings(rasters, target),
    }
    given = {key: value for key, value in flags.items() if value is not None}
    layered = [*without_beaten(words, given), *(f"{key}={json.dumps(value)}" for key, value in given.items())]
    if system is not None and "" in system.split(":"):
        raise MiradaError(f"--system {system!r}: expected a name, or name:size, for example vit:mini.")

    from mirada.cli.progress import watcher
    from mirada.cli.summary import show_run
    from mirada.verbs.train import train as verb

    with watcher(quiet) as watching:
        run = verb(
            rest[0] if rest else None,
            system=system,
            preset=preset,
            config=config,
            settings=layered,
            start=start,
            out=out,
            watcher=watching,
        )
    if not quiet:
        show_run(run)


def without_beaten(settings: list[str], flags: Collection[str]) -> list[str]:
    """A length of training given by an option replaces one given by a setting, in whatever unit."""
    if not any(f"train.{unit}" in flags for unit in LENGTHS):
        return settings
    return [word for word in settings if word.partition("=")[0].strip() not in {f"train.{unit}" for unit in LENGTHS}]
