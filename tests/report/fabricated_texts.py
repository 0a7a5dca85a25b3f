"""Folders of runs on text, with made-up answers: tokenisers and tiny models are real, and nothing is trained."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import torch
import yaml

from mirada import systems
from mirada.data.text.sources import open_text
from mirada.data.text.tokeniser import Tokeniser
from mirada.tasks.bleu import quick_scores, scores
from mirada.tasks.single_label import SingleLabel
from mirada.train.checkpoint import describe_model, save_tensors
from mirada.train.files import write_json, write_text
from mirada.train.folder import RunFolder, csv_text
from tests.report.fabricated import answers

SOURCES = [
    f"The {a} {b} sees the {c}." for a, b, c in product(["old", "red"], ["cat", "dog", "book"], ["tree", "house"])
]
TARGETS = [text.replace("The", "El").replace("the", "el").replace("sees", "ve") for text in SOURCES]
SIZES = {
    "transformer": {"dim": 16, "depth": 2, "num_heads": 2},
    "seq2seq": {"dim": 8},
    "gpt": {"dim": 12, "depth": 2, "num_heads": 2, "max_length": 32},
    "bert": {"dim": 12, "depth": 2, "num_heads": 2, "max_length": 32},
    "word2vec": {"dim": 7},
}


def translate_run(
    path: Path, system: str = "transformer", *, wrong: int = 3, baseline_wrong: int | None = 6, **arguments
) -> RunFolder:
    """Translations that are the references, but for some of which half is missing."""
    tokeniser = Tokeniser.train([*SOURCES, *TARGETS], "bpe", 90)
    data = {"inputs": "pairs", "kind": "pairs", "task": "translate", "sides": ["en", "es"], "shared": True}
    data["split"] = {"how": "grouped"}
    folder = _begin(path, data, tokeniser)
    for side, name, num_wrong in ((folder, system, wrong), (folder.baseline, "seq2seq", baseline_wrong)):
        if num_wrong is not None:
            written = [text[: len(text) // 2] if n < num_wrong else text for n, text in enumerate(TARGETS)]
            pairs = zip(SOURCES, TARGETS, written, strict=True)
            lines = [
                {"name": f"test {n + 1}", "row": n, "source": source, "target": target, "num_references": 1}
                | {"predicted": said, "score": -0.5, "is_finished": n > 0}
                for n, (source, target, said) in enumerate(pairs)
            ]
            references = [[text] for text in TARGETS]
            found = scores(written, references)
            result = {"metric": "bleu", "value": found["bleu"], "low": found["bleu_low"], "high": found["bleu_high"]}
            result |= {
                "interval": "sacrebleu's bootstrap over sentences, 95 %",
                "search": "beam 4, GNMT length penalty 0.6",
            }
            result |= {"majority": quick_scores(SOURCES, references)["bleu"], "perplexity": 3.21, "token_accuracy": 0.7}
            _write(side, name, data, tokeniser, lines, {**result, **found}, **(arguments if side is folder else {}))
    return folder


def generate_run(path: Path) -> RunFolder:
    tokeniser = Tokeniser.train(SOURCES, "character", 90)
    data = {"inputs": "text", "kind": "plain", "task": "generate", "split": {"how": "contiguous"}}
    lines = [
        {"name": f"test, token {16 * n}", "row": n, "nats_per_token": round(1 + 0.1 * n, 4), "text": text + "\n" + text}
        for n, text in enumerate(SOURCES)
    ]
    result = {**_perplexity(), "bits_per_character": 1.987, "samples": ["The dog <b>sees</b>\nthe", "A & B"]}
    folder = _begin(path, data, tokeniser)
    _write(folder, "gpt", data, tokeniser, lines, result)
    return folder


def fill_run(path: Path, *, with_senses: bool = True) -> RunFolder:
    tokeniser = Tokeniser.train(SOURCES, "wordpiece", 90)
    data = {"inputs": "text", "kind": "plain", "task": "fill", "split": {"how": "contiguous"}}
    lines = [
        {"name": f"texts[{n}]", "row": n, "text": text, "asked": 2, "right": 1, "nats_per_token": 1.2}
        for n, text in enumerate(SOURCES)
    ]
    points = [[n / 7, n % 3, "money <i>" if n % 2 else "river"] for n in range(23)]
    bank = {"accuracy": 0.91, "static_accuracy": 0.5, "n": 23, "points": points}
    senses = {"senses": {"bank": bank, "bat": {**bank, "accuracy": 0.5}}} if with_senses else {}
    folder = _begin(path, data, tokeniser)
    _write(folder, "bert", data, tokeniser, lines, {**_perplexity(), **senses})
    return folder


def classify_run(path: Path, system: str = "bert", *, share_right: float = 0.9, counted: float = 0.5) -> RunFolder:
    """`counted` is the accuracy of the linear model of word counts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.parent / "reviews.csv"
    labels = [("cats", "dogs & <u>books</u>")[n % 2] for n in range(120)]
    rows = [{"text": f"{SOURCES[n % len(SOURCES)]} Number {n}.", "label": label} for n, label in enumerate(labels)]
    write_text(source, csv_text(rows))
    table = open_text(source, task="classify", text_column="text", label_column="label")
    tokeniser = Tokeniser.train(table.texts, "wordpiece", 90, lowercase=True)
    data = {"inputs": "text", "kind": "labelled", "task": "single-label", "source": str(source)}
    data |= {"class_names": list(table.class_names), "checksum": table.checksum(), "split": {"how": "stratified"}}
    data["class_counts"] = {side: [60, 60] for side in ("train", "val", "test")}
    task = SingleLabel(table.class_names)

    targets = torch.from_numpy(table.labels)
    outputs = answers(task, targets, 2, share_right, seed=0)
    lines = [
        {"name": table.name(row), "row": row, **target, **answer}
        for row, (target, answer) in enumerate(zip(task.named(targets), task.answers(outputs), strict=True))
    ]
    low, high = counted - 0.05, counted + 0.05
    result = task.result(outputs, targets) | {"word_counts": {"accuracy": counted, "low": low, "high": high}}
    folder = _begin(path, data, tokeniser)
    _write(folder, system, data, tokeniser, lines, result, num_classes=2)
    return folder


def embed_run(path: Path) -> RunFolder:
    tokeniser = Tokeniser.train(SOURCES, "word", 90)
    words = tokeniser.tokens(tokeniser.ordinary)
    data = {"inputs": "text", "kind": "plain", "task": "embed", "split": {"how": "contiguous"}}
    lines = [{"name": word, "row": n, "neighbours": f"{words[0]} 0.93, b 0.12"} for n, word in enumerate(words)]
    result = {"metric": "ranking", "value": 0.81, "low": 0.8, "high": 0.82, "interval": "Wilson, 95 %", "majority": 0.5}
    folder = _begin(path, data, tokeniser)
    _write(folder, "word2vec", data, tokeniser, lines, {**result, "n": 4100, "ranking": 0.81})
    return folder


def _perplexity() -> dict:
    return {
        "metric": "perplexity",
        "value": 4.517,
        "low": 4.2,
        "high": 4.9,
        "interval": "bootstrap over sequences, 95 %",
    } | {
        "majority": 28.11,
        "token_accuracy": 0.52,
    }


def _begin(path: Path, data: dict, tokeniser: Tokeniser) -> RunFolder:
    """Fills up `data`, and writes what model and baseline share."""
    folder = RunFolder(path)
    shared = {"source": "texts.txt", "class_names": [], "target_names": [], "held_out": "test", "checksum": "0"}
    shared |= {"tokeniser": tokeniser.kind, "num_tokens": len(tokeniser), "max_length": 32, "notes": ["a note"]}
    data |= {**shared, "num_texts": {"train": 1000, "val": 70, "test": len(SOURCES)}, "broken": []} | data
    write_json(folder.data, data)
    tokeniser.save(folder.tokeniser)
    return folder


def _write(folder, system, data, tokeniser, lines, result, **arguments) -> None:
    arguments = {**SIZES[system], "num_tokens": len(tokeniser), "pad": tokeniser.pad, **arguments}
    torch.manual_seed(0)
    model = systems.create(system, **arguments)
    num_parameters = sum(p.numel() for p in model.parameters())
    describe_model(folder.best / "model.json", system, None, arguments, num_parameters)
    save_tensors(folder.best / "model.safetensors", model.state_dict())
    config = {"preset": "text", "data": {"source": data["source"]}, "system": {"name": system, "size": None}}
    config |= {"text": {"tokeniser": tokeniser.kind}, "train": {"steps": 30, "seed": 3, "balanced": False}}
    write_text(folder.config, yaml.safe_dump(config))
    write_text(folder.predictions, csv_text(lines))
    counted = {"num_parameters": num_parameters, "seconds_training": 61.5, "samples_seen": 1920, "steps": 30}
    told = {"split": "test", "inputs": data["inputs"], "task": data["task"], "n": len(lines), "loss": 1.5}
    write_json(folder.result, {**told, **counted, "best_step": 20, **result})
    metric = result["metric"]
    values = np.linspace(0.5, 1, 3) * result["value"]
    folder.write_metrics(
        [
            {"step": 10 * n, "epoch": n / 2, "seconds": 20.0 * n, "train_loss": 2 / n, "val_loss": 1.5 / n}
            | {f"val_{metric}": value}
            for n, value in enumerate(values.tolist(), start=1)
        ]
    )
