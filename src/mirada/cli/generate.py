"""mirada generate"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging


def generate(
    run: Run,
    complete: Annotated[
        list[str] | None,
        typer.Argument(metavar="IMAGES", help="Images whose lower part is drawn anew; without any, new images."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture, a .png file.")] = Path("samples.png"),
    count: Annotated[int, typer.Option(min=1, help="New images, or versions of each given image.")] = 16,
    share: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of the rows of a given image that is kept.")] = 0.5,
    temperature: Annotated[float, typer.Option(min=0.0, help="Below 1 more usual, above 1 wilder.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw among this many likeliest colours only.")] = None,
    seed: Annotated[int, typer.Option(help="Another number draws others.")] = 0,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Draw new images with a model that learned how images look, or complete given ones.

    \b
    Example:
      mirada train photos/ --system image_gpt
      mirada generate runs/image_gpt-photos -o new.png --count 32
      mirada generate runs/image_gpt-photos cat.jpg dog.jpg -o completed.png --count 4 --temperature 0.9
    """
    start_logging(log_level, verbose, quiet)
    from mirada.verbs.generate import generate as verb

    path = verb(
        run,
        out,
        count=count,
        complete=complete or None,
        share=share,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
        device=device or "auto",
    )
    if not quiet:
        print(f"wrote {path}")
