"""Which head of a small BERT finds which relation of words, where the grammar is known?

    python benchmarks/relations.py             about two minutes of training on two cores
    python benchmarks/relations.py --table     only print what there is
    python benchmarks/relations.py --try       two steps of a small model

Writes sentences with known relations (benchmarks/relations_corpus.py), runs `mirada train corpus.txt --system bert` on
them, and scores every head on other sentences: the share of words at whose partner the head looks most. The head is
chosen on one half of these and judged on the other, beside the best fixed offset. Numbers go to
benchmarks/results/relations.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import jobs
from benchmarks.jobs import write_whole
from benchmarks.relations_corpus import RELATIONS, Sentence, sentences
from benchmarks.text_jobs import runs_of, told_of, trained_on
from mirada.explain.relations import relation_scores
from mirada.explain.trace import looks_of
from mirada.tasks.intervals import wilson
from mirada.train.files import read_json
from mirada.train.folder import RunFolder
from mirada.verbs.text.trained import text_run

MEASURED = {"lines": 12_000, "asked": 600}
SETTINGS = (
    *("system.arguments.dim=64", "text.tokeniser=word", "text.masked=0.3", "text.max_length=32", "baseline.name=none"),
    *("train.steps=3000", "train.learning_rate=2e-3", "train.evaluations=10", "data.task=fill"),
)
TRIED = {"lines": 300, "asked": 8}
TRIED_SETTINGS = (
    *("system.arguments.dim=16", "system.arguments.depth=1", "text.tokeniser=word", "text.max_length=32"),
    *("train.steps=2", "train.evaluations=1", "train.batch_size=16", "baseline.name=none", "data.task=fill"),
)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="is_tried", help="two steps of a small model, kept apart")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    args = parser.parse_args(words)
    folder = runs_of("relations", args.is_tried)
    results_file = (folder if args.is_tried else jobs.RESULTS) / "relations.json"
    if not args.table:
        measure(folder, results_file, **(TRIED if args.is_tried else MEASURED), is_tried=args.is_tried)
    if results_file.exists():
        print(relations_text(read_json(results_file)))


def measure(folder: Path, results_file: Path, *, lines: int, asked: int, is_tried: bool) -> None:
    corpus = "".join(" ".join(made.words) + "\n" for made in sentences(lines, seed=0))
    settings = list(TRIED_SETTINGS if is_tried else SETTINGS)
    run = trained_on(folder, {"corpus.txt": corpus}, system="bert:tiny", settings=settings, title="relations")
    kept = {"lines": lines, "asked": asked, "relations": _scored(run, asked)}
    write_whole(results_file, {**told_of(run), **kept})


def _scored(run: RunFolder, asked: int) -> list[dict]:
    trained = text_run(run)
    made = list(sentences(asked, seed=1))
    token_BN, is_word_BN = _read(trained.tokeniser, made)
    links = {
        name: torch.tensor([(text, i + 1, j + 1) for text, one in enumerate(made) for i, j in one.links[name]])
        for name in RELATIONS
    }
    found = relation_scores(looks_of(trained.model.eval(), token_BN), links, is_word_BN=is_word_BN)
    rows = []
    for name, score in found.items():
        low, high = wilson(round(score.found * score.num_links), score.num_links)
        head = f"layer {score.layer}, head {score.head}"
        row = {"relation": name, "head": head, "found": score.found, "low": low, "high": high}
        rows.append({**row, "offset": score.offset, "offset_found": score.offset_found, "links": score.num_links})
    return rows


def _read(tokeniser, made: list[Sentence]) -> tuple[Tensor, Tensor]:
    """One token for every word, between start and end."""
    tokens = [[tokeniser.start, *tokeniser.encode(" ".join(one.words)), tokeniser.end] for one in made]
    assert all(len(row) == len(one.words) + 2 for row, one in zip(tokens, made, strict=True)), (
        "a word is several tokens"
    )
    longest = max(map(len, tokens))
    token_BN = torch.tensor([row + [tokeniser.pad] * (longest - len(row)) for row in tokens])
    special = torch.tensor(sorted(tokeniser.special.values()))
    return token_BN, ~torch.isin(token_BN, special)


def relations_text(results: dict) -> str:
    rows = [
        f"| {row['relation']} | {row['head']} | {100 * row['found']:.1f} % ({100 * row['low']:.1f} to "
        f"{100 * row['high']:.1f}) | {100 * row['offset_found']:.1f} % ({row['offset']:+d}) | {row['links']} |"
        for row in results["relations"]
    ]
    head = ["| relation | best head | found | best fixed offset | links |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


if __name__ == "__main__":
    main()
