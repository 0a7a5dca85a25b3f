"""mirada generate"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, PrecisionName, Quiet, Run, TextPrecision, Verbose, start_logging
from mirada.errors import MiradaError


def generate(
    run: Run,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROMPT_OR_IMAGES",
            help="A text to go on from; or images whose lower part is drawn anew. Without: from nothing.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A text file; or the picture, by default samples.png.")
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Texts (1), new images, or versions of each given image (16).")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a text.")] = 200,
    share: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of the rows of a given image that is kept.")] = 0.5,
    temperature: Annotated[float, typer.Option(min=0.0, help="Below 1 more usual, above 1 wilder.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw among this many likeliest tokens only.")] = None,
    top_p: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Of a text: among the likeliest that make up this share.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another number draws others.")] = 0,
    precision: TextPrecision = PrecisionName.float32,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Write more text with a model that learned from text, or draw images with one that learned how images look.

    \b
    Example:
      mirada train book.txt
      mirada generate runs/gpt-book "Once upon a time" --temperature 0.8 --max-tokens 500
      mirada train photos/ --system image_gpt
      mirada generate runs/image_gpt-photos -o new.png --count 32
      mirada generate runs/image_gpt-photos cat.jpg dog.jpg -o completed.png --count 4 --temperature 0.9
    """
    start_logging(log_level, verbose, quiet)
    from mirada.data.text.encoding import sound
    from mirada.verbs.load import load
    from mirada.verbs.text.precision import in_precision
    from mirada.verbs.text.trained import TrainedText

    trained = load(run, device=device or "auto")
    how = {"temperature": temperature, "top_k": top_k, "seed": seed}
    if isinstance(trained, TrainedText):
        trained.require("generate")
        prepared = in_precision(trained, precision.value)
        write(prepared, sound(" ".join(given or [])), out, count or 1, max_tokens, {**how, "top_p": top_p}, quiet)
        return
    if precision is PrecisionName.int8:
        raise MiradaError("--precision int8 is for texts; images are drawn in float32.")
    if top_p is not None:
        raise MiradaError("--top-p is for texts; use --top-k for images.")
    from mirada.verbs.generate import generate as verb

    path = verb(trained, out or Path("samples.png"), count=count or 16, complete=given or None, share=share, **how)  # type: ignore[arg-type]
    if not quiet:
        print(f"wrote {path}")


def write(trained, prompt: str, out: Path | None, count: int, max_tokens: int, how: dict, quiet: bool) -> None:
    """A single text is shown as it is written."""
    from mirada.tasks.writing import Draw
    from mirada.train.files import write_text

    writer, draw = trained.writer, Draw(**how)
    if out is None and count == 1:
        print(prompt, end="", flush=True)
        for piece in writer.stream(prompt, max_tokens=max_tokens, draw=draw):
            print(piece, end="", flush=True)
        print()
        return
    texts = [prompt + text for text in writer.write(prompt, count=count, max_tokens=max_tokens, draw=draw)]
    if out is None:
        print("\n\n".join(texts))
    else:
        write_text(out, "\n\n".join(texts) + "\n")
        if not quiet:
            print(f"wrote {out}")
