"""mirada translate"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mirada.cli.options import Device, Level, LogLevel, Quiet, Run, Verbose, start_logging


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
    device: Device = None,
    quiet: Quiet = False,
    log_level: LogLevel = Level.warning,
    verbose: Verbose = False,
) -> None:
    """Translate sentences, one per line, with a model that was trained on pairs of sentences.

    Lines from stdin are answered as they come. An empty line stays empty; with --n-best each sentence has that many
    lines.

    \b
    Example:
      mirada train en-es.tsv
      echo "Where is the library?" | mirada translate runs/transformer-en-es
      mirada translate runs/transformer-en-es letter.txt -o carta.txt --alignments carta.jsonl
    """
    start_logging(log_level, verbose, quiet)
    from mirada.cli.lines import groups
    from mirada.train.files import write_text
    from mirada.verbs.translate import text_run
    from mirada.verbs.translate import translate as verb

    trained = text_run(run, device or "auto")
    said: list[str] = []
    looked: list[str] = []
    how = {"beam": beam, "penalty": penalty, "alpha": alpha, "n_best": n_best}
    for lines in groups(files or ["-"], batch_size):
        found = verb(trained, lines, **how, max_length=max_length, batch_size=batch_size)  # type: ignore[arg-type]
        for line, ways in zip(lines, found, strict=True):
            told = [f"{way.score:.4f}\t{way.text}" if scores else way.text for way in ways]
            said += told
            if out is None:
                print("\n".join(told), flush=True)
            if alignments is not None:
                looked.append(aligned(trained, line, ways[0].text))
    if out is not None:
        write_text(out, "".join(f"{line}\n" for line in said))
    if alignments is not None:
        write_text(alignments, "".join(looked))


def aligned(trained, source: str, target: str) -> str:
    """A line of JSON; of an empty sentence, with nothing in it."""
    if not source.strip() or not target.strip():
        return json.dumps({"source": [], "target": [], "links": "", "weights": []}) + "\n"
    found = trained.translator.alignment(source, target)
    weights = [[round(weight, 5) for weight in row] for row in found.weights_NM.tolist()]
    told = {"source": found.source, "target": found.target, "links": found.moses(), "weights": weights}
    return json.dumps(told, ensure_ascii=False) + "\n"
