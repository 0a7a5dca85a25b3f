"""A GPT of characters: nanoGPT's recipe for CPUs at equal tokens seen, and what ten minutes of our preset give.

    python benchmarks/language.py --calibrate     only time a step on both texts, in turns, on an idle machine
    python benchmarks/language.py                 everything that is missing
    python benchmarks/language.py --table         only print what there is
    python benchmarks/language.py --try           two steps of small models on a few lines

nanogpt     Tiny Shakespeare, 4 layers, dim 128, 4 heads, context 64, batch 12, 2,000 iterations, dropout 0, AdamW with
            rate 1e-3 and 100 steps of warm-up: the recipe whose published validation loss is 1.88, in our loop.
preset      The same number of tokens of the same text, all else as in the preset language.
shakespeare, quijote    The preset for 10 minutes.

The model learns from the first 90 % of a text. As in nanoGPT, the loss is that of the last 10 %: our validation and
test stretch (5 % each) are asked as one, in consecutive windows. Weights are chosen on the validation stretch, so the
loss on the test stretch alone is given beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from benchmarks.text_jobs import Contender, Study, carry_out, excerpt, runs_of, text_file
from mirada.config.load import load_config
from mirada.data.text.stream_batches import stream_evaluation
from mirada.tasks.tokens import Tokens
from mirada.train.checkpoint import load_model
from mirada.train.folder import RunFolder
from mirada.verbs.prepare import prepare_data
from mirada.verbs.text.generate import PreparedStream

PUBLISHED = 1.88  # README of nanoGPT, `config/train_shakespeare_char.py` on a CPU
ITERATIONS = 2000
NANOGPT = (
    *("system.arguments.dim=128", "system.arguments.depth=4", "system.arguments.num_heads=4"),
    *("system.arguments.dropout=0.0", "text.max_length=64", "train.batch_size=12", "train.learning_rate=1e-3"),
    *("train.weight_decay=0.1", "train.betas=[0.9,0.99]", "train.schedule=cosine", "train.warmup=0.05"),
    *("train.clip=1.0", "train.average=0.0", "train.label_smoothing=0.0"),
)
# Of the preset at equal tokens seen: those of nanoGPT's iterations, whatever the preset's batches are.
SAME_TOKENS = ("text.max_length=64", "train.batch_size=12")
HELD_OUT = ("data.val=0.05", "data.test=0.05", "train.evaluations=10")
TRIED = (
    *("system.arguments.dim=16", "system.arguments.depth=1", "system.arguments.num_heads=2"),
    *("text.max_length=16", "train.evaluations=1", "data.val=0.1", "data.test=0.1"),
)
KEPT = ("loss", "perplexity", "low", "high", "bits_per_character", "majority", "num_tokens_asked", "token_accuracy")


def main(words: list[str] | None = None) -> None:
    found = carry_out(study, __doc__, words)
    if found is not None:
        print_table(found)


def study(is_tried: bool) -> Study:
    texts = {name: text_file(f"{name}.txt") for name in ("tinyshakespeare", "quijote")}
    if is_tried:
        texts = {name: excerpt(path, runs_of("language", True) / "data", 200) for name, path in texts.items()}
    more = TRIED if is_tried else HELD_OUT
    shakespeare, quijote = texts["tinyshakespeare"], texts["quijote"]
    contenders = {
        "nanogpt": Contender(shakespeare, "language", (*NANOGPT, *more), ITERATIONS),
        "preset": Contender(shakespeare, "language", (*SAME_TOKENS, *more), ITERATIONS),
        "shakespeare": Contender(shakespeare, "language", more),
        "quijote": Contender(quijote, "language", more),
    }
    return Study("language", __file__, contenders, judged, is_tried)


def judged(run: RunFolder) -> dict:
    result, config = run.read_result(), load_config(run.config)
    window, batch_size = config.text.max_length, config.train.batch_size
    return {
        **{name: result[name] for name in KEPT},
        **last_tenth(run),
        "tokens_seen": result["steps"] * batch_size * window,
        "recipe": f"batch {batch_size}, context {window}, rate {config.train.learning_rate:g}",
        "sample": result["samples"][0],
    }


def last_tenth(run: RunFolder) -> dict:
    """Loss on all that was held out, as one stretch."""
    config = load_config(run.config)
    prepared = prepare_data(config.data, config.system, saved=run.read_data()).ready(config, run)
    assert isinstance(prepared, PreparedStream)
    tokens_N = torch.cat([prepared.tokens("val"), prepared.tokens("test")])
    windows = stream_evaluation(tokens_N, batch_size=32, length=config.text.max_length)
    tally = Tokens().tally(load_model(run.best), windows, torch.device("cpu"))
    low, high = tally.interval()
    return {"last_tenth": tally.nats, "last_tenth_low": low, "last_tenth_high": high}


def print_table(found: Study) -> None:
    print(f"\n{'':<14}{'min':>4}{'seed':>5}{'steps':>8}{'tokens seen':>14}{'last 10 %':>11}{'test':>8}{'bits':>7}")
    for job in found.found():
        minutes = "" if job["minutes"] is None else f"{job['minutes']:g}"
        print(
            f"{job['contender']:<14}{minutes:>4}{job['seed']:>5}{job['steps']:>8,}{job['tokens_seen']:>14,}"
            f"{job['last_tenth']:>11.3f}{job['loss']:>8.3f}{job['bits_per_character']:>7.3f}"
        )
    print(f"published, nanoGPT on a CPU: {PUBLISHED} on the last 10 % after {ITERATIONS * 12 * 64:,} tokens")


if __name__ == "__main__":
    main()
