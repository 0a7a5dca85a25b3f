"""mirada neighbours"""

from __future__ import annotations

from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging
from mirada.errors import MiradaError


def neighbours(
    run: Run,
    word: Annotated[str, typer.Argument(metavar="WORD", help="A word of the text that the model was trained on.")],
    minus: Annotated[str | None, typer.Option(help="Of an analogy: the word that is taken away.")] = None,
    plus: Annotated[str | None, typer.Option(help="Of an analogy: the word that is added.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many words to show.")] = 10,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Show the words whose vectors are nearest to that of a word, or to king - man + woman.

    \b
    Example:
      mirada train corpus.txt --system word2vec
      mirada neighbours runs/word2vec-corpus king
      mirada neighbours runs/word2vec-corpus king --minus man --plus woman
    """
    start_logging(log_level, verbose, quiet)
    from mirada.verbs.text.trained import text_run

    if (minus is None) != (plus is None):
        raise MiradaError("an analogy has both --minus and --plus; give the other one too, or none.")
    trained = text_run(run, device or "auto")
    if minus is not None and plus is not None:
        found = trained.analogy(word, minus, plus, top)
    else:
        found = trained.neighbours(word, top)
    for other, cosine in found:
        print(f"{cosine:.4f}\t{other}")
