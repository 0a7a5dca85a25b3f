"""Options that several verbs have, and what they mean."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Level(str, Enum):
    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class EngineName(str, Enum):
    torch = "torch"
    onnx = "onnx"
    openvino = "openvino"


class PrecisionName(str, Enum):
    float32 = "float32"
    int8 = "int8"


Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, made by `mirada train`.", show_default=False)]
Settings = Annotated[
    list[str] | None, typer.Argument(metavar="KEY.SUB=VALUE", help="Single settings.", show_default=False)
]
RasterFiles = Annotated[
    list[str] | None,
    typer.Option("--rasters", metavar="TIF", help="GeoTIFF to look at around plots; repeatable.", show_default=False),
]
TargetColumn = Annotated[
    str | None, typer.Option("--target", metavar="COLUMN", help="Column to predict, if its name does not tell.")
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.", show_default=False)]
TextPrecision = Annotated[
    PrecisionName,
    typer.Option("--precision", help="Of the model; int8 is faster, if held-out text says it is as good."),
]
Engine = Annotated[
    EngineName | None,
    typer.Option(help="What computes; by default torch, or onnx for an exported folder.", show_default=False),
]
Precision = Annotated[
    PrecisionName | None,
    typer.Option(help="float32, or int8 for onnx if the run's held-out score stays.", show_default=False),
]
Host = Annotated[str, typer.Option(help="Address to listen on; other than this machine's wants a token.")]
Port = Annotated[int, typer.Option(help="Port; 0 for any that is free.", min=0, max=65535)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
LogLevel = Annotated[
    Level, typer.Option(help="What to print of the log; the log.txt of a run has info and above, or this.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="The same as --log-level debug.")]


def start_logging(level: Level = Level.warning, verbose: bool = False, quiet: bool = False) -> None:
    """Messages of the log from `level` on go to stderr, and none in a quiet run: the file of the run has them."""
    number = logging.DEBUG if verbose else getattr(logging, level.value.upper())
    logger = logging.getLogger("mirada")
    for handler in [handler for handler in logger.handlers if isinstance(handler, _Terminal)]:
        logger.removeHandler(handler)
    # The level of the logger is what a run's file goes by; the terminal has its own.
    logger.setLevel(min(number, logging.INFO))
    handler = _Terminal()
    handler.setLevel(logging.CRITICAL + 1 if quiet else number)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logger.addHandler(handler)


class _Terminal(logging.StreamHandler):
    """stderr as it is at the time of the message."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def named(choice: Enum | None) -> str | None:
    return None if choice is None else choice.value


def plot_settings(rasters: Sequence[str] | None, target: str | None = None) -> dict[str, object]:
    """What --rasters and --target are among the settings."""
    given = {"data.rasters": list(rasters or ()), "data.label_column": target}
    return {key: value for key, value in given.items() if value}


def split_settings(words: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """Words that are settings (key=value, and no file of that name), and the others."""
    given = [word for word in words if word is not None]
    settings = [word for word in given if "=" in word and not Path(word).exists()]
    return settings, [word for word in given if word not in settings]
