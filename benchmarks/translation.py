"""English to Spanish at equal training time: a recurrent net with attention, the same without, and a Transformer.

    python benchmarks/translation.py --calibrate     only time the steps of all three, in turns, on an idle machine
    python benchmarks/translation.py                 everything that is missing: 10 minutes each on two cores, 2 seeds
    python benchmarks/translation.py --table         only print what there is
    python benchmarks/translation.py --try           two steps of small models on a few sentences

All have the data, the vocabulary, the batches and the schedule of the preset translation. BLEU and chrF are those of
beam search on the held-out test sentences, every source once against all its translations, with sacrebleu's intervals.
The alignments of ten test sentences by the recurrent net go to docs/images/alignments.png.
"""

from __future__ import annotations

import gzip
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import alignments
from benchmarks.jobs import ROOT, write_whole
from benchmarks.text_jobs import Contender, Study, carry_out, runs_of, text_file
from benchmarks.translation_table import ordering, rows_of
from mirada.train.folder import RunFolder

PARTS = {"train": 300, "dev": 20, "test": 20}  # sentences to try things out on
RECURRENT = ("system.name=seq2seq", "system.size=small", "train.learning_rate=4e-3")
SYSTEMS = {
    "attention": RECURRENT,  # additive, from the state before the step: the card's default
    "no attention": (*RECURRENT, "system.arguments.score=none"),
    "transformer": (),
}
MEASURED = ("train.evaluations=10",)
TRIED = (
    *("system.arguments.dim=16", "system.arguments.depth=1", "text.num_tokens=200", "text.tokens_per_batch=256"),
    "train.evaluations=1",
)
KEPT = (
    *("bleu", "bleu_low", "bleu_high", "bleu_signature", "chrf", "chrf_low", "chrf_high", "chrf_signature"),
    *("n", "search", "interval", "majority", "perplexity", "token_accuracy"),
)


def main(words: list[str] | None = None) -> None:
    found = carry_out(study, __doc__, words)
    if found is not None:
        keep(found)


def study(is_tried: bool) -> Study:
    source = tried_source(runs_of("translation", True) / "data") if is_tried else text_file("en_es_train.tsv.gz")
    more = TRIED if is_tried else MEASURED
    contenders = {name: Contender(source, "translation", (*own, *more)) for name, own in SYSTEMS.items()}
    return Study("translation", __file__, contenders, judged, is_tried)


def tried_source(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in PARTS.items():
        with gzip.open(text_file(f"en_es_{part}.tsv.gz"), "rt", encoding="utf-8") as file:
            (folder / f"en_es_{part}.tsv").write_text("".join(itertools.islice(file, count)), "utf-8")
    return folder / "en_es_train.tsv"


def judged(run: RunFolder) -> dict:
    result = run.read_result()
    epochs = result["samples_seen"] / run.read_data()["num_texts"]["train"]
    return {name: result[name] for name in KEPT} | {"epochs": epochs}


def keep(found: Study) -> None:
    """Print the table, and draw the alignments of the first seed if it is through."""
    print_table(found)
    done = [job for job in found.found() if job["contender"] == "attention"]
    if not done:
        return
    first = min(done, key=lambda job: job["seed"])
    run = found.run_of(first)
    if run.is_finished:  # else the run was removed, and what was kept of it stays
        write_whole(found.results / "alignments.json", alignments.aligned(run))
    if not found.is_tried:
        alignments.draw_file(found.results / "alignments.json", ROOT / "docs" / "images")


def print_table(found: Study) -> None:
    rows = rows_of(found.found())
    for row in rows:
        print("\n" + ", ".join(f"{name} {value}" for name, value in row.items()))
    if rows:
        print(f"\n{ordering(found.found())}")


if __name__ == "__main__":
    main()
