"""mirada anatomy"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging


def anatomy(
    run: Run,
    images: Annotated[
        str | None,
        typer.Option(
            "--images",
            metavar="PATH",
            help="Images to look at (of a model of text: a file of texts); left out: what the run held out.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="RUN", help="Another run, to compare what its layers know.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the files; left out: RUN/anatomy.", show_default=False)
    ] = None,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Take a trained attention model apart: how far and how widely its heads look, how alike its layers are.

    Writes anatomy.html (one file), anatomy.json (all numbers) and the figures as PNG: attention distance and entropy of
    every head beside those of uniform attention, divergence between heads, similarity of the layers' maps, CKA between
    what layers know, filters of the first layer by PCA, similarity of learned positions. What a model does not have is
    named with the reason. A model without attention is refused.

    \b
    Example:
      mirada anatomy runs/vit-photos
      mirada anatomy runs/vit-photos --against runs/vit-photos/baseline
      mirada anatomy runs/gpt-book --out figures/gpt
    """
    start_logging(log_level, verbose, quiet)
    from mirada.cli.waiting import counted
    from mirada.report.anatomy import layer_sentences
    from mirada.verbs.anatomy import anatomy as verb

    with counted("reading", quiet) as progress:
        found = verb(run, images=images, against=against, out=out, device=device or "auto", progress=progress)
    if quiet:
        return
    for sentence in layer_sentences(found.anatomy):
        print(sentence)
    print(f"wrote {found.files[0]} and {len(found.files) - 1} files beside it")
