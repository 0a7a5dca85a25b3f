"""`mirada evaluate`: what a trained model is worth on what its run held out, or on other labelled data."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mirada.config.load import merge, parse_settings, resolve
from mirada.config.schema import DataConfig
from mirada.data.batches import evaluation_batches
from mirada.data.graphs import is_graph
from mirada.data.memory import MemoryImages
from mirada.data.sizing import ImageShape
from mirada.data.sources import open_source
from mirada.data.stream import StreamedImages, open_images
from mirada.data.table import ImageTable
from mirada.errors import MiradaError
from mirada.train.files import write_json, write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.train.outputs import outputs_of
from mirada.verbs.check import READING, reading_options
from mirada.verbs.evaluate_graph import questions_about_nodes
from mirada.verbs.evaluate_masks import judge_masks
from mirada.verbs.evaluate_plots import judge_plots
from mirada.verbs.evaluate_text import judge_text
from mirada.verbs.load import Progress, Trained, load
from mirada.verbs.load_graph import TrainedGraph
from mirada.verbs.maps.trained import TrainedPlots
from mirada.verbs.masks.trained import TrainedMasks
from mirada.verbs.prepare import EVALUATION_BATCH, open_table, prepare
from mirada.verbs.questions import Questions, positions, require_other_data, require_own_data
from mirada.verbs.text.trained import TrainedText

Store = MemoryImages | StreamedImages


@dataclass(frozen=True)
class Evaluation:
    """The numbers, a row per image, node, text or plot, and the files that hold them."""

    result: dict
    rows: list[dict]
    files: list[Path]


def evaluate(
    run: str | Path | RunFolder | Trained,
    source: str | Path | None = None,
    *,
    settings: Iterable[str] = (),
    device: str = "auto",
    progress: Progress | None = None,
) -> Evaluation:
    """Measure on what the run held out, or on all images, labelled nodes, texts or plots of another such source.

    `settings` such as "data.label_column=species" say how to read the other source.
    """
    trained = run if isinstance(run, Trained) else load(run, device=device)
    given = parse_settings(settings)
    if source is None and given:
        raise MiradaError("settings are for another source of data; give it, or leave the settings out.")
    if isinstance(trained, TrainedText):
        result, lines, side = judge_text(trained, None if source is None else str(source), given)
        return _written(trained.folder, side or _slug(str(source)), result, lines)
    if isinstance(trained, TrainedPlots):
        result, lines, side = judge_plots(trained, None if source is None else str(source), given)
        return _written(trained.folder, side or _slug(str(source)), result, lines)
    if isinstance(trained, TrainedMasks):
        result, lines, side = judge_masks(trained, None if source is None else str(source), given)
        return _written(trained.folder, side or _slug(str(source)), result, lines)
    ask = questions_about_nodes if isinstance(trained, TrainedGraph) else _questions_about_images
    asked = ask(trained, None if source is None else str(source), given, progress)
    started = time.monotonic()
    outputs, targets, found = outputs_of(asked.model, asked.batches, trained.device)
    seconds = time.monotonic() - started
    lines = [
        {"name": asked.name(row), "row": row, **target, **answer}
        for row, target, answer in zip(
            found.tolist(), trained.task.named(targets), trained.task.answers(outputs), strict=True
        )
    ]
    result = {
        "source": asked.title,
        "inputs": trained.data.get("inputs", "image"),
        "task": trained.data["task"],
        **trained.task.result(outputs, targets),
        "seconds_per_image": seconds / len(lines),
        "broken": asked.broken(),
    }
    return _written(trained.folder, asked.side if source is None else _slug(str(source)), result, lines)


def _written(folder: RunFolder, name: str, result: dict, lines: list[dict]) -> Evaluation:
    files = [folder.path / f"evaluation-{name}.{kind}" for kind in ("json", "csv")]
    write_json(files[0], result)
    write_text(files[1], csv_text(lines))
    return Evaluation(result, lines, files)


def _questions_about_images(trained: Trained, source: str | None, given: dict, progress: Progress | None) -> Questions:
    if source is None:
        store, rows, side = _held_out(trained, progress)
        title = f"{trained.data['source']} ({side} images)"
    else:
        store, rows = _other(trained, source, given, progress)
        side, title = "", source
        require_other_data(store.table.checksum(), trained, source)
    return Questions(
        trained.model,
        evaluation_batches(store, rows, batch_size=EVALUATION_BATCH, normalisation=trained.normalisation),
        store.table.name,
        title,
        side,
        lambda: [dataclasses.asdict(image) for image in store.broken],
    )


def _held_out(trained: Trained, progress: Progress | None) -> tuple[Store, np.ndarray, str]:
    require_own_data(trained)
    data = trained.config.data
    prepared = prepare(data, open_table(data), saved=trained.data, progress=progress)
    return prepared.store, prepared.split.rows(prepared.held_out), prepared.held_out


def _other(trained: Trained, source: str, given: dict, progress: Progress | None) -> tuple[Store, np.ndarray]:
    if is_graph(source):
        raise MiradaError(f"{source}: holds a graph, but the model was trained on images.")
    own = trained.config.data if trained.folder.config.exists() else resolve().data
    data = _data_config(own, source, given)
    table = _matched(open_source(source, **reading_options(data)), trained)
    height, width = trained.data["image_size"]
    shape = ImageShape((height, width), trained.data["in_channels"], "as trained")
    store = open_images(
        table,
        shape,
        fit=trained.data["fit"],
        workers=data.workers,
        on_broken=data.on_broken,
        progress=progress,
        memory_limit=int(data.memory_gb * 2**30),
    )
    return store, np.arange(len(store))


def _data_config(own: DataConfig, source: str, given: dict) -> DataConfig:
    """How the run read its own data, if this is of the same kind, and what is given now."""
    unknown = sorted(set(given) - {"data"})
    if unknown:
        raise MiradaError(f"setting {unknown[0]!r} has no meaning for evaluating; give data.… only.")
    same_kind = Path(source).suffix.lower() == Path(own.source).suffix.lower()
    kept = own.model_dump() if same_kind else own.model_dump(exclude=set(READING))
    kept.pop("image_root", None)  # the other images are elsewhere
    return resolve(merge({"data": kept}, given, {"data": {"source": source}})).data


def _matched(table: ImageTable, trained: Trained) -> ImageTable:
    """The table with targets numbered as the model's classes are."""
    data = trained.data
    if data["task"] == "pixels":
        return table  # its images are their own targets
    if table.task != data["task"]:
        raise MiradaError(f"{table.source}: holds a {table.task} task, but the model was trained for {data['task']}.")
    if table.task == "regression":
        columns = positions(table.target_names, data["target_names"], table.source, "targets")
        if len(columns) < len(data["target_names"]):
            missing = [name for name in data["target_names"] if name not in table.target_names]
            raise MiradaError(f"{table.source}: has no target {', '.join(missing)}, which the model was trained for.")
        targets = np.empty_like(table.targets)
        targets[:, columns] = table.targets
        return dataclasses.replace(table, targets=targets, target_names=tuple(data["target_names"]))
    numbers = positions(table.class_names, data["class_names"], table.source, "classes")
    if table.task == "multi-label":
        targets = np.zeros((len(table), len(data["class_names"])), dtype=table.targets.dtype)
        targets[:, numbers] = table.targets
    else:
        targets = np.asarray(numbers, dtype=np.int64)[table.targets]
    return dataclasses.replace(table, targets=targets, class_names=tuple(data["class_names"]))


def _slug(source: str) -> str:
    path = Path(source)
    return re.sub(r"[^\w.-]+", "-", path.resolve().name.removesuffix(path.suffix)).strip("-.") or "source"
