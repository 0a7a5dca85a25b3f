"""mirada translate"""

from __future__ import annotations

import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, PrecisionName, Quiet, Run, TextPrecision, Verbose, start_logging
from mirada.errors import MiradaError

if TYPE_CHECKING:
    from mirada.tasks.translation import Translator


def translate(
    run: Run,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help="Text files, a sentence per line; without any, or as -, stdin."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a file instead of printing.")] = None,
    beam: Annotated[int, typer.Option(min=1, help="Sentences that are followed at once; 1 is greedy.")] = 4,
    penalty: Annotated[
        str, typer.Option(help="Of the length: none, length (|Y|^alpha) or gnmt (((5+|Y|)/6)^alpha).")
    ] = "gnmt",
    alpha: Annotated[float, typer.Option(help="How much the length counts.")] = 0.6,
    n_best: Annotated[int, typer.Option(min=1, help="Translations of each sentence, at most the beam.")] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="The score and a tab before each translation.")] = False,
    alignments: Annotated[
        Path | None, typer.Option(help="Write what was looked at, as a .jsonl file: tokens, weights, 0-0 1-2 links.")
    ] = None,
    max_length: Annotated[int | None, typer.Option(min=1, help="Tokens; by default 50 more than the source.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences at a time.")] = 32,
    precision: TextPrecision = PrecisionName.float32,
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Translate sentences, one per line, with a model that was trained on pairs of sentences.

    Lines from stdin are answered as they come. An empty line stays empty, and so does one that is too long, which is
    reported and makes the exit code 2. With --n-best each sentence has that many lines, the last of them empty where
    fewer were found. With --out, the lines are in OUT.partial until all are there.

    \b
    Example:
      mirada train en-es.tsv
      echo "Where is the library?" | mirada translate runs/transformer-en-es
      mirada translate runs/transformer-en-es letter.txt -o carta.txt --alignments carta.jsonl
    """
    start_logging(log_level, verbose, quiet)
    if n_best > beam:
        raise MiradaError(f"--n-best {n_best} with --beam {beam}: at most the beam is found; widen it.")
    from mirada.cli.failures import USER_ERROR
    from mirada.cli.growing import growing
    from mirada.cli.lines import groups
    from mirada.tasks.length_penalty import LengthPenalty
    from mirada.verbs.text.precision import in_precision
    from mirada.verbs.text.trained import text_run

    how = {"beam": beam, "n_best": n_best, "max_length": max_length, "batch_size": batch_size}
    weighed = LengthPenalty(penalty, alpha)
    trained = text_run(run, device or "auto")
    trained.require("translate")
    translator = in_precision(trained, precision.value).translator
    if alignments:
        translator.require_attention()
    num_refused = 0
    with ExitStack() as files_to_write:
        say = files_to_write.enter_context(growing(out)) if out else print_now
        show = files_to_write.enter_context(growing(alignments)) if alignments else None
        for placed in groups(files or ["-"], batch_size):
            lines = [line if translator.can_read(line) else "" for _, line in placed]
            for (where, line), readable in zip(placed, lines, strict=True):
                if line != readable:
                    num_refused += 1
                    tell_too_long(where, translator.longest)
            found = translator.translate(lines, penalty=weighed, **how)  # type: ignore[arg-type]
            for line, ways in zip(lines, found, strict=True):
                for way in ways:
                    say(f"{way.score:.4f}\t{in_one_line(way.text)}" if scores else in_one_line(way.text))
                for _ in range(n_best - len(ways)):
                    say("")
                if show is not None:
                    show(aligned(translator, line, ways[0].text))
    if num_refused:
        raise typer.Exit(USER_ERROR)


def tell_too_long(where: str, longest: int) -> None:
    said = f"mirada: {where} has more than {longest:,} tokens and stays empty; divide it into sentences."
    print(said, file=sys.stderr, flush=True)


def print_now(line: str) -> None:
    print(line, flush=True)


def in_one_line(text: str) -> str:
    return " ".join(re.split(r"[\r\n]+", text))


def aligned(translator: Translator, source: str, target: str) -> str:
    """A line of JSON; of an empty sentence, with nothing in it."""
    if not source.strip() or not target.strip():
        return json.dumps({"source": [], "target": [], "links": "", "weights": []})
    found = translator.alignment(source, target)
    weights = [[round(weight, 5) for weight in row] for row in found.weights_NM.tolist()]
    told = {"source": found.source, "target": found.target, "links": found.moses(), "weights": weights}
    return json.dumps(told, ensure_ascii=False)
