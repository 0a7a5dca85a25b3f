"""What is printed when a run or an evaluation ends."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from mirada.cli.progress import NOUNS, clock
from mirada.cli.tables import print_table
from mirada.train.files import read_json
from mirada.train.folder import RunFolder

TRIVIAL = {
    "regression": "mean of the training images",
    "pixels": "frequencies of colours",
    "field": "mean of the held-out plots",
    "translate": "the source as it is",
    "generate": "frequencies of tokens",
    "fill": "frequencies of tokens",
    "embed": "chance",
}
COUNTED = {"translate": "sentences", "generate": "passages", "fill": "lines", "embed": "neighbours"}
MODELS = {
    "model": "model",
    "knn": "nearest plots",
    "random_forest": "random forest",
    "gradient_boosting": "boosting",
}
SIDES = {"test": "test {what}", "val": "validation {what} (the data has no test {what})"}


def show_run(run: RunFolder) -> None:
    """The model beside its baseline and the trivial answer, with intervals, and where the report is."""
    result = run.read_result()
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    side = SIDES.get(result["split"], result["split"]).format(what=counted(result))
    table.title = f"{result['metric']} on {result['n']:,} {side}"
    for heading in ("model", "parameters", result["metric"], "95 % interval", "training time"):
        table.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
    table.add_row(*row_of(result))
    if run.baseline.is_finished:
        table.add_row(*row_of(run.baseline.read_result(), " (baseline)"))
    trivial = TRIVIAL.get(result["task"], "most frequent answer")
    table.add_row(trivial, "", f"{result['majority']:.4f}", "", "")
    print_table(table)
    for line in further_lines(result):
        print(line)
    if run.validation.exists():
        show_validation(read_json(run.validation))
    print(f"run     {run.path}")
    if run.report.exists():
        print(f"report  {run.report}")


def further_lines(result: dict) -> list[str]:
    """What else is worth knowing at once; the report has everything."""
    lines = []
    if "probe_accuracy" in result:
        shares = f"{result['probe_accuracy']:.4f} (most frequent class: {result['probe_majority']:.4f})"
        lines.append(f"accuracy of a linear probe on the middle layer: {shares}")
    if "word_counts" in result:
        counts = result["word_counts"]
        interval = f"{counts['low']:.4f} – {counts['high']:.4f}"
        lines.append(f"accuracy of a linear model of word counts: {counts['accuracy']:.4f} ({interval})")
    if "bleu_signature" in result:
        lines.append(f"BLEU {result['bleu']:.2f}  {result['bleu_signature']}")
        lines.append(f"chrF {result['chrf']:.2f}  {result['chrf_signature']}")
    if "bits_per_character" in result:
        lines.append(f"bits per character: {result['bits_per_character']:.4f}")
    return lines


def show_validation(found: dict) -> None:
    """R² of the model and of simple ones by every way to hold plots out, and whether intervals held."""
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.title = "R² of models trained on the other folds (95 % interval over blocks)"
    schemes = found["schemes"]
    for heading in ("held out", *(MODELS.get(name, name) for name in next(iter(schemes.values()))["models"])):
        table.add_column(heading, justify="left" if heading == "held out" else "right", no_wrap=True)
    for scheme, entry in schemes.items():
        cells = [_with_interval(model) for model in entry["models"].values()]
        table.add_row(f"{scheme}, {entry['folds']} folds", *cells)
    print_table(table)
    for scheme, entry in schemes.items():
        if "coverage" in entry:
            measured = entry["coverage"]
            promised, rows, blocks = (f"{100 * measured[key]:.3g} %" for key in ("promised", "rows", "blocks"))
            print(f"{promised} intervals held {rows} of the plots, {blocks} of a block on average ({scheme})")
        else:
            print(f"no intervals ({scheme}): {entry['no_intervals']}")


def _with_interval(model: dict) -> str:
    low, high = model["intervals"]["r2"]
    return f"{model['scores']['r2']:.3f} ({low:.3f} – {high:.3f})"


def counted(result: dict) -> str:
    """images, nodes of a graph, or what a task about text is asked about"""
    return COUNTED.get(result.get("task", "")) or NOUNS[result.get("inputs", "image")]


def row_of(result: dict, note: str = "") -> tuple[str, ...]:
    size = f":{result['size']}" if result.get("size") else ""
    return (
        f"{result['system']}{size}{note}",
        f"{result['num_parameters']:,}",
        f"{result['value']:.4f}",
        f"{result['low']:.4f} – {result['high']:.4f}",
        clock(result["seconds_training"]),
    )


def show_evaluation(result: dict, files: list[Path]) -> None:
    """The metric with its interval, the other numbers, and the files that were written."""
    interval = f"{result['low']:.4f} – {result['high']:.4f}, {result['interval']}"
    measured = f"{result['n']:,} {counted(result)} of {result['source']}"
    print(f"{result['metric']} {result['value']:.4f} ({interval}) on {measured}")
    shown = {"metric", "value", "low", "high", "n", result["metric"], "seconds_per_image"}
    others = {name: value for name, value in result.items() if isinstance(value, float) and name not in shown}
    print(", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in others.items()))
    for file in files:
        print(f"wrote {file}")
