"""mirada fill"""

from __future__ import annotations

from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging


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

    \b
    Example:
      mirada train sentences.txt --system bert
      mirada fill runs/bert-sentences "the ___ sat on the mat"
    """
    start_logging(log_level, verbose, quiet)
    from mirada.cli.lines import groups_of_stdin
    from mirada.verbs.translate import text_run

    filler = text_run(run, device or "auto").filler
    for word in texts:
        for group in groups_of_stdin(1) if word == "-" else [[word]]:
            for text in group:
                for number, ways in enumerate(filler.fill(text, top), start=1):
                    for way in ways:
                        print(f"{number}\t{way.probability:.4f}\t{way.token}\t{way.text}", flush=True)
