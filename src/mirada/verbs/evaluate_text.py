"""`mirada evaluate` of a model of text: on what its run held out, or on another text of the same kind."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from mirada.config.load import merge, resolve
from mirada.data.splits import Split
from mirada.data.text.sources import is_text, open_text
from mirada.data.text.table import TextTable
from mirada.errors import MiradaError
from mirada.verbs.questions import positions, require_other_data, require_own_data
from mirada.verbs.text.prepare import KINDS, kind_of, prepare_text, reading_options
from mirada.verbs.text.prepared import PreparedText
from mirada.verbs.text.trained import TrainedText
from mirada.verbs.text.translate import PreparedPairs

COLUMNS = ("source_column", "target_column", "text_column", "label_column")


def judge_text(trained: TrainedText, source: str | None, given: dict) -> tuple[dict, list[dict], str]:
    """Numbers, a row per text, and the side of the run's own split (empty for other data)."""
    prepared = own_texts(trained) if source is None else _other(trained, source, given)
    started = time.monotonic()
    task = prepared.task(trained.config)
    result, lines = prepared.judged(trained.folder, trained.model, task, trained.device)
    title = source or f"{trained.data['source']} ({prepared.held_out} texts)"
    result |= {"source": title, "seconds_per_image": (time.monotonic() - started) / max(len(lines), 1), "broken": []}
    return result, lines, prepared.held_out if source is None else ""


def own_texts(trained: TrainedText) -> PreparedText:
    """What the run was trained and judged on, divided and encoded as then."""
    require_own_data(trained)
    config = trained.config
    return _with_tokens(prepare_text(config.data, config.system, saved=trained.data), trained)


def _other(trained: TrainedText, source: str, given: dict) -> PreparedText:
    if not is_text(source):
        raise MiradaError(f"{source}: holds no text that can be read, but the model was trained on text.")
    if set(given) - {"data"}:
        first = sorted(set(given) - {"data"})[0]
        raise MiradaError(f"setting {first!r} has no meaning for evaluating; give data.… only.")
    own = trained.config
    kept = {name: getattr(own.data, name) for name in ("task", *COLUMNS)}
    table = _opened(source, merge({"data": kept}, given))
    sides = trained.data.get("sides")
    if sides and set(table.sides) == set(sides) and list(table.sides) != sides:  # the other way round
        columns = {"source_column": sides[0], "target_column": sides[1]}
        table = _opened(source, merge({"data": kept | columns}, given))
    require_other_data(table.checksum(), trained, source)
    wanted = trained.data["kind"]
    if table.kind != wanted:
        raise MiradaError(f"{source}: holds {table.kind} text, but the model was trained on {wanted} text.")
    if table.kind == "labelled":
        table = _renumbered(table, trained.data["class_names"])
    nothing = np.empty(0, dtype=np.int64)
    split = Split(nothing, nothing, np.arange(len(table)), "given", 0)
    return _with_tokens(KINDS[kind_of(trained.data["task"])](table, split), trained)


def _opened(source: str, layer: dict) -> TextTable:
    return open_text(source, **reading_options(resolve(merge(layer, {"data": {"source": source}})).data))


def _with_tokens(prepared: PreparedText, trained: TrainedText) -> PreparedText:
    """With the tokens of the run; a baseline has those of its parent."""
    known: dict = {"known_tokeniser": trained.tokeniser, "known_num_tokens": trained.data["num_tokens"]}
    if isinstance(prepared, PreparedPairs) and trained.target_tokeniser is not trained.tokeniser:
        known["known_target"] = trained.target_tokeniser
    if "token_counts" in trained.data:
        known["known_counts"] = tuple(trained.data["token_counts"])
    return dataclasses.replace(prepared, **known).ready(trained.config)


def _renumbered(table: TextTable, class_names: list[str]) -> TextTable:
    numbers = np.asarray(positions(table.class_names, class_names, table.source, "classes"), dtype=np.int64)
    assert table.labels is not None
    return dataclasses.replace(table, labels=numbers[table.labels], class_names=tuple(class_names))
