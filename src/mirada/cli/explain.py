"""mirada explain"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging


def explain(
    run: Run,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", help="Images, folders or patterns; texts or files of texts."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the page and the pictures.")] = Path("explained"),
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", metavar="NAME", help="A method, or all; repeatable.", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="What to explain: a class by name or number.", show_default=False),
    ] = None,
    layer: Annotated[str, typer.Option(help="Of the method attention: number, from 0 or the end, or name.")] = "-1",
    head: Annotated[int | None, typer.Option(help="Of the method attention: number.", show_default=False)] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="ROW,COLUMN", help="Follow what this patch, or token, has seen.", show_default=False),
    ] = None,
    faithfulness: Annotated[bool, typer.Option(help="Measure how far the answer depends on each map.")] = True,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Show what a model looks at for given inputs, and how far each picture can be trusted.

    Writes explain.html, one page to click through layers, heads and patches, a PNG for every input, and explain.json
    with the numbers. Methods: attention, rollout, gradient_rollout, chefer, gradient_attention, legrad, grad_cam,
    layer_cam, integrated_gradients, occlusion.

    \b
    Example:
      mirada explain runs/vit-photos cat.jpg dog.jpg
      mirada explain runs/vit-photos cat.jpg --method all --target tabby
      mirada explain runs/bert-reviews "A film to remember."
    """
    start_logging(log_level, verbose, quiet)
    from mirada.cli.failures import USER_ERROR
    from mirada.cli.waiting import counted
    from mirada.verbs.explain import explain as verb

    number_or_name = int(layer) if layer.removeprefix("-").isdigit() else layer
    with counted("explaining", quiet) as progress:
        explained = verb(
            run,
            inputs,
            method=method,
            target=target,
            layer=number_or_name,
            head=head,
            at=place_given(at),
            faithfulness=faithfulness,
            device=device or "auto",
            progress=progress,
        )
    files = explained.save(out)
    for failure in explained.failures:
        print(f"mirada: {failure}", file=sys.stderr)
    if not quiet:
        for note in explained.notes:
            print(f"mirada: {note}", file=sys.stderr)
        for item in explained.items:
            print(summary(item))
        print(f"Look at {files[0]}")
    if explained.failures:
        raise typer.Exit(USER_ERROR)


def place_given(at: str | None) -> tuple[int, ...] | None:
    from mirada.errors import MiradaError

    if at is None:
        return None
    try:
        return tuple(int(part) for part in at.split(","))
    except ValueError:
        raise MiradaError(f"--at {at}: expected ROW,COLUMN, as in --at 3,5, or the number of a token.") from None


def summary(item) -> str:
    """One line: what was asked, and how each map did against a random one."""
    maps = getattr(item, "maps", None) or getattr(item, "relevance", [])
    measured = [
        f"{one.method} {one.faithfulness.insertion_auc:.2f} / {one.faithfulness.deletion_auc:.2f} "
        f"({one.faithfulness.random_insertion_auc:.2f} / {one.faithfulness.random_deletion_auc:.2f})"
        for one in maps
        if one.faithfulness is not None
    ]
    name = item.name if len(item.name) < 60 else item.name[:57] + "…"
    if not measured:
        return f"{name}: {item.target}"
    return f"{name}: {item.target}; insertion / deletion (of a random order): {', '.join(measured)}"
