"""Does a word's vector in its sentence know which of three senses is meant, where its static vector cannot?

    python benchmarks/senses.py             about two minutes of training on two cores
    python benchmarks/senses.py --table     only print what there is, and draw it
    python benchmarks/senses.py --try       two steps of a small model

Writes a Spanish corpus about three things called "banco" (benchmarks/senses_corpus.py) and a table of other sentences
with the sense of each, and runs `mirada train corpus.txt --system bert text.senses=senses.tsv`. Of the asked sentences
half make the mean vector of each sense, the other half are judged by the nearest mean. Numbers go to
benchmarks/results/senses.json, the picture of the report to docs/images/senses.png.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import jobs
from benchmarks.jobs import ROOT, write_whole
from benchmarks.senses_corpus import SENSES, WORD, corpus_and_senses
from benchmarks.text_jobs import runs_of, told_of, trained_on
from mirada.report.texts_fill import plane, sense_sentence
from mirada.train.files import read_json

MEASURED = {"lines": 12_000, "asked": 200, "system": "bert:tiny"}
# A small model, more hidden words and words as tokens, among which a wrong one is as likely as a right one: the hidden
# words are what teaches, and a word that may be wrong has to be compared with its context.
SETTINGS = (
    *("system.arguments.dim=64", "text.tokeniser=word", "text.masked=0.3", "text.max_length=32", "baseline.name=none"),
    *("train.steps=3000", "train.learning_rate=2e-3", "train.evaluations=10"),
)
TRIED = {"lines": 300, "asked": 6, "system": "bert:tiny"}
TRIED_SETTINGS = (
    *("system.arguments.dim=16", "system.arguments.depth=1", "text.max_length=32", "train.steps=2"),
    *("train.evaluations=1", "train.batch_size=16", "baseline.name=none"),
)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="is_tried", help="two steps of a small model, kept apart")
    parser.add_argument("--table", action="store_true", help="print and draw the results so far and stop")
    args = parser.parse_args(words)
    folder = runs_of("senses", args.is_tried)
    results_file = (folder if args.is_tried else jobs.RESULTS) / "senses.json"
    if not args.table:
        measure(folder, results_file, **(TRIED if args.is_tried else MEASURED), is_tried=args.is_tried)
    if results_file.exists():
        print(sense_sentence(WORD, read_json(results_file)["senses"]))
        if not args.is_tried:
            draw_file(results_file, ROOT / "docs" / "images")


def measure(folder: Path, results_file: Path, *, lines: int, asked: int, system: str, is_tried: bool) -> None:
    corpus, senses = corpus_and_senses(lines, asked)
    settings = [*(TRIED_SETTINGS if is_tried else SETTINGS), f"text.senses={folder / 'senses.tsv'}"]
    files = {"corpus.txt": corpus, "senses.tsv": senses}
    run = trained_on(folder, files, system=system, settings=settings, title="banco")
    found = run.read_result()["senses"][WORD]
    kept = {"lines": lines, "system": system, "chance": 1 / len(SENSES), "senses": found}
    write_whole(results_file, {**told_of(run), **kept})


def draw_file(results_file: Path, images: Path) -> tuple[Path, str] | None:
    """(picture, what can be read from it), if there are results."""
    if not results_file.exists():
        return None
    drawing = plane("senses", WORD, read_json(results_file)["senses"])
    images.mkdir(parents=True, exist_ok=True)
    (images / "senses.png").write_bytes(drawing.light)
    return images / "senses.png", drawing.alt


if __name__ == "__main__":
    main()
