"""How fast text is written: against transformers and CTranslate2 with the same weights, and a search without memory.

    python benchmarks/decoding.py           half an hour, on an idle machine
    python benchmarks/decoding.py --only translating
    python benchmarks/decoding.py --table   only print what there is
    python benchmarks/decoding.py --try     small models, two rounds, on any machine

writing      A GPT of the size of GPT-2 small with random weights goes on from 32 tokens with 64 likeliest ones;
             `GPT2LMHeadModel.generate` with its cache has the same weights, and so has CTranslate2. Batch 1 and 8.
translating  Transformers of our sizes "base", which published Marian models have, and "small" as transformers' Marian
             has them, random weights, beam 4, 8 sentences of 16 tokens, 32 tokens written; the small one does this
             four times, and with 64 tokens, too. Opponents: the same search that reads all it has written anew at
             every step, and takes the scores after the last token only, `MarianMTModel.generate` with and without its
             cache, and CTranslate2, all with the same weights.

Ours, prepared for decoding as `mirada generate` and `mirada translate` do it, and CTranslate2 run in float32 and int8.
CTranslate2 is in .venv-peers; where it is not installed, it is left out, and that is said.

Each library is a process with two threads, and they run in turns, wall time; the ratio is the median of the pairs, and
is said to be a tie where their quartiles cover 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch import Tensor, nn

from benchmarks import decoding_ctranslate2, jobs
from benchmarks.apart import PAUSE, apart
from benchmarks.jobs import require_idle, write_whole
from benchmarks.peers import declare_operators
from benchmarks.text_jobs import runs_of
from benchmarks.timing import Timing, interleave, machine, speed_up
from mirada.nn.for_decoding import PRECISIONS, prepare_for_decoding
from mirada.systems.transformer import Transformer
from mirada.tasks.sampling import sample
from mirada.tasks.search import beam_search
from mirada.train.files import read_json
from mirada.weights import read_checkpoint

BEAM = 4
BATCHES = (1, 8)
END = 0
LIBRARIES = ("mirada", "transformers", "CTranslate2")
OURS = ("mirada", "mirada int8")
MEASURED = {
    "rounds": 7,
    "gpt": {"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257},
    "prompt": 32,
    "written": 64,
    "marian": {
        "base": {"dim": 512, "depth": 6, "heads": 8, "tokens": 16000, "batches": 1, "targets": [32]},
        "small": {"dim": 256, "depth": 3, "heads": 4, "tokens": 8000, "batches": 4, "targets": [32, 64]},
    },
    "sentences": 8,
    "source": 16,
}
TRIED = {
    "rounds": 2,
    "gpt": {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 101},
    "prompt": 5,
    "written": 7,
    "marian": {"tiny": {"dim": 32, "depth": 2, "heads": 2, "tokens": 101, "batches": 2, "targets": [7, 11]}},
    "sentences": 3,
    "source": 5,
}
Candidates = dict[str, Callable[[], list[list[int]]]]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="is_tried", help="small models, two rounds, kept apart")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--only", choices=("writing", "translating"), default="", help="keep the results of the other")
    args = parser.parse_args(words)
    results_file = (runs_of("decoding", True) if args.is_tried else jobs.RESULTS) / "decoding.json"
    if not args.table:
        if not args.is_tried:
            require_idle()
        found = measure(TRIED if args.is_tried else MEASURED, args.only)
        if args.only:
            before = read_json(results_file)
            if any(before[name] != found[name] for name in ("machine", "threads", "sizes")):
                sys.exit(
                    f"{results_file}: was measured otherwise or elsewhere; leave --only out and measure all of it."
                )
            found["rows"] = before["rows"] | found["rows"]
        write_whole(results_file, found)
    if results_file.exists():
        print_table(read_json(results_file))


def measure(sizes: dict, only: str = "") -> dict:
    """All jobs, or those whose name begins with `only`."""
    libraries = LIBRARIES
    if not decoding_ctranslate2.is_there():
        print("CTranslate2 is not installed here and is left out; it is in .venv-peers")
        libraries = tuple(library for library in LIBRARIES if library != "CTranslate2")
    rows = {}
    with ExitStack() as stack:
        everything: Candidates = {}
        for library in libraries:
            everything |= stack.enter_context(apart(candidates_of, library, sizes))
        for job, num_tokens in num_tokens_of(sizes).items():
            if not job.startswith(only):
                continue
            own = {name.removeprefix(job): run for name, run in everything.items() if name.startswith(job)}
            rows[job] = timed(own, sizes["rounds"], num_tokens)
    return {"machine": machine(), "threads": torch.get_num_threads(), "sizes": sizes, "rows": rows}


def num_tokens_of(sizes: dict) -> dict[str, int]:
    """All that are written, by job."""
    writing_jobs = {f"writing, batch {batch}": batch * sizes["written"] for batch in BATCHES}
    translating_jobs = {
        f"translating by {name} to {length} tokens, beam {BEAM}": shape["batches"] * sizes["sentences"] * length
        for name, shape in sizes["marian"].items()
        for length in shape["targets"]
    }
    return writing_jobs | translating_jobs


def candidates_of(library: str, sizes: dict) -> Candidates:
    """Of all jobs, whose name each begins with; the weights are the same in every library."""
    quietly_import_transformers()
    translators = [
        {name: repeated(run, shape["batches"]) for name, run in translating(sizes, shape, length, library).items()}
        for shape in sizes["marian"].values()
        for length in shape["targets"]
    ]
    of_jobs = [*(writing(sizes, batch, library) for batch in BATCHES), *translators]
    return {
        job + name: run for job, own in zip(num_tokens_of(sizes), of_jobs, strict=True) for name, run in own.items()
    }


def repeated(run: Callable[[], list[list[int]]], times: int) -> Callable[[], list[list[int]]]:
    """A batch of a small model is so quick that a library's waking up, after others had the processor, would count."""
    return lambda: [text for _ in range(times) for text in run()]


def timed(candidates: Candidates, rounds: int, num_tokens: int) -> dict:
    """Ours against all others; how far they write the tokens that ours writes in float32 is told, too."""
    texts = {name: run() for name, run in candidates.items()}
    taken = interleave(candidates, rounds, clock=time.perf_counter, pause=PAUSE)
    ours, rounded = OURS
    return {
        "tokens_per_second": {name: rates(timing, num_tokens) for name, timing in taken.items()},
        "faster_than": {name: ratio(taken[ours], taken[name]) for name in candidates if name not in OURS},
        "int8_faster_than": {name: ratio(taken[rounded], taken[name]) for name in candidates if name != rounded},
        "same_tokens": {name: agreement(texts[ours], texts[name]) for name in candidates if name != ours},
    }


def rates(timing: Timing, num_tokens: int) -> list[float]:
    """Median and quartiles."""
    low, median, high = statistics.quantiles((num_tokens / each for each in timing.seconds), n=4, method="inclusive")
    return [median, low, high]


def ratio(ours: Timing, other: Timing) -> list[float]:
    found = speed_up(ours, other)
    return [found.median, found.low, found.high]


def agreement(ours: list[list[int]], theirs: list[list[int]]) -> float:
    """Share of texts that are equal."""
    return statistics.mean(a == b for a, b in zip(ours, theirs, strict=True))


def quietly_import_transformers() -> None:
    if importlib.util.find_spec("torchvision"):
        declare_operators()
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def writing(sizes: dict, batch: int, library: str) -> Candidates:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    num_tokens = sizes["gpt"]["vocab_size"]
    config = GPT2Config(**sizes["gpt"], bos_token_id=None, eos_token_id=None, pad_token_id=num_tokens - 1)
    theirs = GPT2LMHeadModel(config).eval()
    prompt = torch.randint(num_tokens - 1, (batch, sizes["prompt"]))

    def writes(model: nn.Module) -> Callable[[], list[list[int]]]:
        how = {"max_length": sizes["written"], "temperature": 0.0}
        return lambda: sample(model, model.begin(), prompt.tolist(), **how)  # type: ignore[operator, arg-type]

    def generate() -> list[list[int]]:
        written = theirs.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=sizes["written"],
            do_sample=False,
            use_cache=True,
        )
        return written[:, prompt.shape[1] :].tolist()

    if library == "mirada":
        return {name: writes(model) for name, model in as_ours(theirs).items()}
    if library == "transformers":
        return {library: generate}
    return decoding_ctranslate2.writers(theirs, prompt, sizes["written"], end=num_tokens - 1)


def translating(sizes: dict, shape: dict, length: int, library: str) -> Candidates:
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(0)
    pad = shape["tokens"] - 1
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", shape["depth"]),
            ("ffn_dim", 4 * shape["dim"]),
            ("attention_heads", shape["heads"]),
        )
    }
    config = MarianConfig(
        vocab_size=shape["tokens"],
        d_model=shape["dim"],
        max_position_embeddings=512,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=pad,
        eos_token_id=END,
        bos_token_id=None,
        decoder_start_token_id=pad,
        forced_eos_token_id=None,
        **sides,
    )
    theirs = MarianMTModel(config).eval()
    source = torch.randint(1, pad, (sizes["sentences"], sizes["source"]))
    source[:, -1] = END

    def search(model: Transformer | Forgetful) -> list[list[int]]:
        # No text may end before all have the same length, and there the search stops.
        found = beam_search(
            model, source, start=pad, end=END, beam=BEAM, max_length=length, min_length=length, penalty="none"
        )
        return [best.tokens for (best,) in found]

    def generate(use_cache: bool) -> list[list[int]]:
        written = theirs.generate(
            source,
            attention_mask=torch.ones_like(source),
            num_beams=BEAM,
            min_new_tokens=length,
            max_new_tokens=length,
            length_penalty=0.0,
            do_sample=False,
            use_cache=use_cache,
            bad_words_ids=[[pad]],
        )
        return written[:, 1:].tolist()

    if library == "mirada":
        ours = as_ours(theirs)
        searches = {name: partial(search, model) for name, model in ours.items()}
        return {**searches, "mirada without a cache": partial(search, Forgetful(ours[OURS[0]]))}
    if library == "transformers":
        return {library: partial(generate, True), f"{library} without a cache": partial(generate, False)}
    return decoding_ctranslate2.translators(theirs, source, length, END, BEAM)


def as_ours(theirs: nn.Module) -> dict[str, Any]:
    """The same weights, through our loader, in both precisions."""
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)  # type: ignore[operator]
        model = read_checkpoint(folder).model()
    return {name: prepare_for_decoding(model, how) for name, how in zip(OURS, PRECISIONS, strict=True)}


class Forgetful:
    """A Transformer that reads all it has written anew at every step; the source it reads once."""

    def __init__(self, model: Transformer) -> None:
        self.model, self.pad = model, model.pad

    def begin(self, source_BM: Tensor) -> Written:
        return Written(self.model.begin(source_BM), source_BM[:, :0])

    def next_logits(self, read_BN: Tensor, state: Written) -> Tensor:
        state.written_BN = torch.cat([state.written_BN, read_BN], dim=1)
        fresh = type(state.read)(state.read.memory_BMD, state.read.valid_BM)
        return self.model.next_logits(state.written_BN, fresh, num_last=1)


@dataclass
class Written:
    """What was read, and all tokens so far."""

    read: Any
    written_BN: Tensor

    def reorder(self, index_B: Tensor) -> None:
        self.read.reorder(index_B)
        self.written_BN = self.written_BN.index_select(0, index_B)


def print_table(results: dict) -> None:
    for label, row in results["rows"].items():
        print(f"\n{label}")
        for name, (median, low, high) in row["tokens_per_second"].items():
            print(f"  {name:<20}{median:>9.1f} tokens/s ({low:.1f}–{high:.1f})")
        for ours, against in zip(OURS, ("faster_than", "int8_faster_than"), strict=True):
            for name, (median, low, high) in row[against].items():
                is_clear = low > 1 or high < 1
                said = f"{median:.2f}× as fast as" if is_clear else f"tie ({low:.2f}–{high:.2f}) with"
                print(f"  {ours}: {said} {name}")
        for name, share in row["same_tokens"].items():
            print(f"  {name} writes {100 * share:.0f} % of the texts as {OURS[0]} does")


if __name__ == "__main__":
    main()
