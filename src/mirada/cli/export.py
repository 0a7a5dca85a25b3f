"""mirada export"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Level, LogLevel, PrecisionName, Quiet, Run, Verbose, start_logging


class Format(str, Enum):
    safetensors = "safetensors"
    onnx = "onnx"
    transformers = "transformers"
    ctranslate2 = "ctranslate2"


def export(
    run: Run,
    to: Annotated[Format, typer.Option(help="Kind of file.")] = Format.safetensors,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the files; by default RUN/export or RUN/LIBRARY."),
    ] = None,
    precision: Annotated[
        PrecisionName, typer.Option(help="Of ONNX: int8 only if the score on the run's held-out samples stays.")
    ] = PrecisionName.float32,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Write the best model of a run as files for elsewhere, with class names and normalisation.

    safetensors: a folder that `mirada predict` and mirada.load open like a run. onnx: model.onnx for any runtime, with
    a free number of images, written only if it gives the same answers as the model itself; `mirada predict` opens this
    folder too, and starts without torch. transformers: the folder of
    a checkpoint as that library (and `mirada train --from`) reads it, for systems that it has. ctranslate2: a
    Transformer that translates and its tokeniser, written only if CTranslate2 translates as the model itself does.

    \b
    Example:
      mirada export runs/vit-photos -o photo_model
      mirada export runs/vit-photos --to onnx -o photo_model
      mirada export runs/vit-photos --to onnx --precision int8 -o small_model
      mirada export runs/vit-photos --to transformers -o photo_model
      mirada export runs/transformer-en-es --to ctranslate2 -o en_es
    """
    start_logging(log_level, verbose, quiet)
    from mirada.verbs.export import export as verb

    files = verb(run, to=to.value, out=out, precision=precision.value)
    if not quiet:
        for file in files:
            print(f"wrote {file}")
