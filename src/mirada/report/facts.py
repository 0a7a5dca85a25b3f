"""What was trained, on what, with which settings, and how to do it again."""

from __future__ import annotations

import os
import platform
import shlex
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from matplotlib.figure import Figure

from mirada import __version__, systems
from mirada.data.graphs import SETTINGS_OF_IMAGES
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.plots_facts import NOT_OF_PLOTS, plot_rows, short_settings
from mirada.report.style import Drawing, Theme, draw, plain_labels
from mirada.report.texts_facts import NOT_OF_TEXT, SHORT_OF_TEXT, text_kind, text_rows
from mirada.report.wording import duration, percent, shortened

SIDES = {"train": "Training", "val": "Validation", "test": "Test"}
PACKAGES = ("torch", "accelerate", "numpy", "scipy", "scikit-learn", "pillow", "tokenizers", "sacrebleu")
MAX_BARS_NAMED = 40
MAX_BROKEN_SHOWN = 10
LENGTHS = ("epochs", "steps", "minutes")
UNUSED_OF_INPUTS = {"graph": SETTINGS_OF_IMAGES, "plots": NOT_OF_PLOTS}


def data_facts(run: Contents) -> dict:
    data = run.data
    targets = data.get("target_names") if run.task == "regression" else data.get("class_names")
    broken = data.get("broken", [])
    num = f"{len(targets or [])}"
    own = text_rows(run) if run.is_text else ROWS_OF_INPUTS.get(run.inputs, image_rows)(data)
    no_classes = run.inputs == "plots" or (run.is_text and not targets)
    return {
        "rows": [
            ("Source", data["source"]),
            ("Kind", text_kind(run) if run.is_text else f"{data.get('kind', '–')}, {run.task}"),
            (
                run.nouns.capitalize(),
                " · ".join(f"{SIDES[side]} {num:,}" for side, num in run.counts.items() if num),
            ),
            *own,
            *([("Colours of the palette", f"{data['num_colours']:,}")] if run.inputs == "pixels" else []),
            *([] if no_classes else [("Targets" if run.task == "regression" else "Classes", num)]),
            ("Checksum", str(data.get("checksum", "–"))[:16]),
        ],
        "notes": data.get("notes", []),
        "num_broken": len(broken),
        "broken": broken[:MAX_BROKEN_SHOWN],
        "drawing": class_counts(data, run.nouns) if data.get("class_counts") else None,
    }


def image_rows(data: dict) -> list[tuple[str, str]]:
    height, width = data["image_size"]
    fits = {"crop": "cropped", "squash": "squashed", "pad": "padded", "tile": "cut into tiles"}
    return [
        ("Size", f"{height} × {width} pixels (height × width), {_channels(data)}"),
        ("Other shapes are", fits.get(data.get("fit", ""), "–")),
    ]


def graph_rows(data: dict) -> list[tuple[str, str]]:
    graph = data["graph"]
    same = graph.get("same_class")
    return [
        ("Graph", f"{graph['nodes']:,} nodes ({graph['isolated']:,} isolated), {graph['edges']:,} edges"),
        ("Neighbours", f"{graph['mean_degree']:.3g} per node, and the node itself"),
        ("Edges within a class", "–" if same is None else percent(same)),
        ("Left out", f"{graph['self_loops']:,} self loops, {graph['duplicates']:,} edges listed again"),
        ("Features of a node", f"{data['in_channels']:,}"),
        ("Nodes without a label", f"{graph['unlabelled']:,}"),
    ]


ROWS_OF_INPUTS = {"graph": graph_rows, "plots": plot_rows}


def _channels(data: dict) -> str:
    number = data.get("in_channels", 0)
    return {1: "grey", 3: "colour"}.get(number, f"{number} channels")


def class_counts(data: dict, nouns: str = "images") -> Drawing:
    """How many per class and split, as stacked bars."""
    names = data["class_names"]
    sides = [side for side in SIDES if data["class_counts"].get(side) and sum(data["class_counts"][side])]
    counts = {side: np.array(data["class_counts"][side]) for side in sides}
    total = sum(counts.values(), np.zeros(len(names), dtype=int))

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        places, left = np.arange(len(names)), np.zeros(len(names))
        for side, colour in zip(sides, (theme.model, theme.baseline, theme.third), strict=False):
            axes.barh(places, counts[side], 0.75, left=left, color=colour, label=SIDES[side].lower())
            left = left + counts[side]
        named = places if len(names) <= MAX_BARS_NAMED else places[:: -(-len(names) // MAX_BARS_NAMED)]
        axes.set_yticks(named, [shortened(names[place]) for place in named])
        plain_labels(axes.get_yticklabels())
        axes.tick_params(axis="y", labelcolor=theme.ink, length=0)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(nouns)
        figure.legend(loc="outside upper left", ncols=3)

    alt = f"{nouns.capitalize()} per class: from {int(total.min()):,} to {int(total.max()):,} in {len(names)} classes."
    return draw("classes", alt, paint, 5.4, 1.3 + 0.26 * min(len(names), MAX_BARS_NAMED))


def model_facts(run: Contents) -> dict:
    result, description = run.result or {}, run.model or {}
    size = description.get("size") or run.section("system").get("size")
    rows = [("System", run.system)]
    parts: dict[str, str] = {}
    summary = when = None
    try:
        card = systems.card(run.system)
        size = size or f"{card.default_size} (the default)"
        rows = [("System", f"{card.title} ({card.name})"), ("Paper", card.paper)]
        parts, summary, when = dict(card.parts), card.summary, card.when_to_use
    except MiradaError:
        summary = "This version does not know the system, so its card is missing."
    num = description.get("num_parameters") or result.get("num_parameters")
    arguments = description.get("arguments") or {}
    rows += [
        ("Size", size or "–"),
        ("Parameters", f"{num:,}" if num else "–"),
        ("Arguments", ", ".join(f"{key}={_plain(value)}" for key, value in arguments.items()) or "–"),
    ]
    if not run.is_text or "seconds_per_image" in result:
        rows.append((f"Time per held-out {run.noun}", duration(result.get("seconds_per_image"))))
    return {"rows": rows, "parts": parts, "summary": summary, "when": when}


def training_facts(run: Contents) -> dict:
    result = run.result or {}
    rows = [
        ("Training time", duration(result.get("seconds_training"))),
        ("Steps", f"{result['steps']:,}, best weights at step {result['best_step']:,}" if "steps" in result else "–"),
        (f"{run.samples.capitalize()} seen", f"{result['samples_seen']:,}" if "samples_seen" in result else "–"),
    ]
    teacher = run.section("distil").get("teacher")
    rows += [("Teacher", str(teacher))] if teacher else []
    own_section = "text" if run.is_text else "maps" if run.inputs == "plots" else "augment"
    names = ("train", own_section, "data", "system", "baseline", *(("distil",) if teacher else ()))
    sections = {name: run.section(name) for name in names}
    unused = NOT_OF_TEXT if run.is_text else UNUSED_OF_INPUTS.get(run.inputs, {})
    settings = {
        name: [
            (key, _plain(value))
            for key, value in section.items()
            if value not in (None, {}, []) and key not in unused.get(name, ())
        ]
        for name, section in sections.items()
    }
    return {"rows": rows, "settings": {name: entries for name, entries in settings.items() if entries}}


def repeat_facts(run: Contents) -> dict:
    """The saved settings repeat the run exactly; the short command does so as long as the preset stays what it is."""
    source = shlex.quote(str(run.section("data").get("source") or run.data["source"]))
    config = shlex.quote(str(run.folder.config))
    return {
        "exact": f"mirada train {source} --config {config}",
        "short": " ".join(["mirada train", source, *_options(run)]),
        "versions": [("mirada", __version__), ("Python", platform.python_version()), *_installed()],
        "machine": f"{platform.system()} on {platform.machine()}, {os.cpu_count()} processor cores",
    }


def _options(run: Contents) -> list[str]:
    system, train = run.section("system"), run.section("train")
    name = ":".join(filter(None, [run.system, system.get("size")]))
    options = ["--system", shlex.quote(name)]
    if run.config.get("start"):
        options += ["--from", shlex.quote(str(run.config["start"]))]
    distil = run.section("distil")
    if distil.get("teacher"):
        options += ["--teacher", shlex.quote(str(distil["teacher"]))]
        options += [f"distil.{key}={_plain(distil[key])}" for key in ("kind", "weight", "temperature")]
    if run.config.get("preset"):
        options += ["--preset", shlex.quote(str(run.config["preset"]))]
    if run.is_text:
        asked = {"data.task": run.section("data").get("task")}
        asked |= {f"text.{key}": run.section("text").get(key) for key in SHORT_OF_TEXT}
        options += _given(asked)
    if run.inputs == "plots":
        options += _given(short_settings(run.section("data"), run.section("maps")))
    options += [f"train.{key}={_plain(train[key])}" for key in (*LENGTHS, "seed") if train.get(key) is not None]
    options += [
        shlex.quote(f"system.arguments.{key}={_plain(value)}") for key, value in (system.get("arguments") or {}).items()
    ]
    return options


def _given(settings: dict[str, object]) -> list[str]:
    return [shlex.quote(f"{key}={_plain(value)}") for key, value in settings.items() if value not in (None, [])]


def _installed() -> list[tuple[str, str]]:
    found = []
    for package in PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return found


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_plain, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
