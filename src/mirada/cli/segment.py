"""mirada segment"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Device, Engine, Level, LogLevel, Quiet, Run, Verbose, named, start_logging


def segment(
    run: Run,
    images: Annotated[
        list[str],
        typer.Argument(metavar="IMAGES", help="Image files, GeoTIFFs, folders or patterns; - reads paths from stdin."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the masks.")] = Path("masks"),
    overlay: Annotated[bool, typer.Option("--overlay", help="Also write each image under its mask.")] = False,
    polygons: Annotated[bool, typer.Option("--polygons", help="Also write the outlines as GeoJSON.")] = False,
    device: Device = None,
    engine: Engine = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Say of every pixel of images what it shows, with a model that was trained on masks.

    The mask of a.jpg is a.png: the number of a class in every pixel, in the colours of the report. That of a GeoTIFF is
    a GeoTIFF that lies where the image lies. Large images go in tiles if the model was trained on tiles
    (data.fit=tile). An image that cannot be read does not stop the others; the exit code is 2 then.

    \b
    Example:
      mirada train cells/                                  folders images and masks
      mirada segment runs/transunet-cells new/ -o masks
      mirada segment runs/transunet-cells new/ -o masks --engine openvino
      mirada segment runs/transunet-fields field.tif -o masks --polygons
    """
    start_logging(log_level, verbose, quiet)
    from mirada.cli.failures import USER_ERROR
    from mirada.cli.predict import paths_given
    from mirada.cli.waiting import counted
    from mirada.verbs.masks.trained import masks_run
    from mirada.verbs.segment import segment as verb

    trained = masks_run(run, device or "auto", named(engine))
    with counted("segmenting", quiet) as progress:
        done = verb(trained, paths_given(images), out, overlay=overlay, polygons=polygons, progress=progress)
    for one in done:
        if one.error:
            print(f"mirada: {one.error}", file=sys.stderr)
        elif not quiet:
            shares = ", ".join(
                f"{name.removeprefix('share_')} {100 * share:.1f} %" for name, share in one.shares.items()
            )
            print(f"{one.files[0]}: {shares}")
    if any(one.error for one in done):
        raise typer.Exit(USER_ERROR)
