"""Small texts with a rule behind them, and models trained on them for a moment: made once, used by many tests."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import mirada

NUMBERS = {"one": "uno", "two": "dos", "three": "tres", "four": "cuatro", "five": "cinco", "six": "seis"}
SHAPE = ("system.arguments.dim=16", "system.arguments.depth=1", "train.evaluations=2", "train.steps=6")
SMALL = (*SHAPE, "system.arguments.num_heads=2")
SETTINGS = {
    "pairs": (*SMALL, "text.tokeniser=word", "text.tokens_per_batch=256", "baseline.name=none", "data.task=translate"),
    "book": (*SMALL, "text.max_length=16", "train.batch_size=4"),
    "lines": (*SMALL, "text.tokeniser=word", "text.max_length=16", "data.task=fill", "train.batch_size=16"),
    "labels": (*SMALL, "text.tokeniser=word", "text.max_length=16", "train.batch_size=16"),
    "words": ("system.arguments.dim=8", "train.steps=6", "train.evaluations=2", "train.batch_size=64"),
}
SYSTEMS = {"pairs": "transformer", "book": "gpt", "lines": "bert", "labels": "bert", "words": "word2vec"}


def sentence(generator: random.Random) -> list[str]:
    return generator.choices(list(NUMBERS), k=generator.randint(2, 5))


def write_texts(folder: Path, seed: int = 0) -> dict[str, Path]:
    generator = random.Random(seed)
    sentences = [sentence(generator) for _ in range(240)]
    translated = [" ".join(NUMBERS[word] for word in words) for words in sentences]
    pairs = "".join(f"{' '.join(words)}\t{other}\n" for words, other in zip(sentences, translated, strict=True))
    lines = "".join(f"{' '.join(words)}.\n" for words in sentences)
    labels = "text,label\n" + "".join(
        f"{n} {' '.join(words)},{'has six' if 'six' in words else 'no six'}\n" for n, words in enumerate(sentences)
    )
    files = {"pairs.tsv": pairs, "book.txt": lines, "lines.txt": lines, "labels.csv": labels, "words.txt": lines}
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return {Path(name).stem: folder / name for name in files}


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-texts-")


@cache
def sources() -> dict[str, Path]:
    return write_texts(Path(_place().name))


@cache
def run(kind: str) -> Path:
    """Shared: read it, do not change it."""
    out = Path(_place().name) / f"run-{kind}"
    return mirada.train(sources()[kind], system=SYSTEMS[kind], settings=SETTINGS[kind], out=out).path
