"""mirada fill"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging
from mirada.errors import MiradaError

if TYPE_CHECKING:
    from mirada.tasks.filling import Filled


def fill(
    run: Run,
    texts: Annotated[
        list[str], typer.Argument(metavar="TEXTS", help="Texts with [MASK] or ___ where a word is missing; - is stdin.")
    ],
    top: Annotated[int, typer.Option(min=1, help="Words to suggest for each blank.")] = 5,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Suggest words for the blanks of a text, with a model that was trained to fill in hidden words.

    A row is the number of the blank, the probability, the word and the text with it. A line of stdin that has no blank
    is reported and does not stop the others; the exit code is 2 then.

    \b
    Example:
      mirada train sentences.txt --system bert
      mirada fill runs/bert-sentences "the ___ sat on the mat"
    """
    start_logging(log_level, verbose, quiet)
    from mirada.cli.failures import USER_ERROR
    from mirada.cli.lines import groups_of_stdin
    from mirada.verbs.text.trained import text_run

    filler = text_run(run, device or "auto").filler
    num_refused = 0
    for word in texts:
        if word != "-":
            show(filler.fill(word, top))
            continue
        for number, (line,) in enumerate(groups_of_stdin(1), start=1):
            try:
                show(filler.fill(line, top))
            except MiradaError as error:
                num_refused += 1
                print(f"mirada: stdin: line {number}: {error}", file=sys.stderr, flush=True)
    if num_refused:
        raise typer.Exit(USER_ERROR)


def show(blanks: list[list[Filled]]) -> None:
    for number, ways in enumerate(blanks, start=1):
        for way in ways:
            print(f"{number}\t{way.probability:.4f}\t{way.token}\t{way.text}", flush=True)
