"""From the labels people write to targets: the task and the classes are inferred, and said."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mirada.data.table import TASKS, Task
from mirada.errors import MiradaError

SEPARATORS = (";", "|")


@dataclass(frozen=True, eq=False)
class Labels:
    """Encoded targets, in the layout that ImageTable describes."""

    task: Task
    targets: np.ndarray
    class_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def clean_name(name: str) -> str:
    """Class names without outer spaces and in one Unicode form (macOS writes accents in another one)."""
    return unicodedata.normalize("NFC", name).strip()


def check_task(task: str | None) -> None:
    if task is not None and task not in TASKS:
        raise MiradaError(f"task is {task!r}, expected one of {', '.join(TASKS)}.")


def sort_names(names: set[str]) -> tuple[str, ...]:
    """Numbers by value ('2' before '10'), everything else alphabetically."""
    if all(_as_integer(name) is not None for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


def encode_text(values: Sequence[str], task: Task | None, where: str, column: str) -> Labels:
    """One column of text. `where` names the file in messages."""
    inferred = task or _infer_task(values)
    if inferred == "regression":
        numbers = [[_number(value, where, column, row)] for row, value in enumerate(values)]
        note = () if task else (f"column {column!r} of {where} holds many different numbers: taken as a regression.",)
        return Labels("regression", np.array(numbers, np.float32), (), (column,), note)
    if inferred == "multi-label":
        return _encode_sets([_split_labels(value) for value in values])
    names = [_tidy_number(clean_name(value)) for value in values]
    if "" in names:
        raise MiradaError(
            f"{where}: {names.count('')} rows have an empty {column!r} (first: row {names.index('') + 1}); "
            "fill them in or remove those rows."
        )
    merged = len(set(values)) - len(set(names))
    notes = (f"{where}: labels that differ only by outer spaces or number format were merged.",) if merged else ()
    return encode_names(names, notes)


def encode_names(names: Sequence[str], notes: tuple[str, ...] = ()) -> Labels:
    """One class name per image."""
    class_names = sort_names(set(names))
    index = {name: i for i, name in enumerate(class_names)}
    return Labels("single-label", np.array([index[n] for n in names], np.int64), class_names, (), notes)


def encode_columns(names: Sequence[str], columns: Sequence[Sequence[str]], task: Task | None, where: str) -> Labels:
    """Several columns: 0/1 for each label, or numbers to predict together."""
    matrix = np.array(
        [[_number(v, where, name, row) for row, v in enumerate(c)] for name, c in zip(names, columns, strict=True)],
        dtype=np.float32,
    ).T
    binary = bool(np.isin(matrix, (0, 1)).all())
    if task == "regression" or (task is None and not binary):
        return Labels("regression", matrix, (), tuple(names))
    if not binary:
        raise MiradaError(f"{where}: columns {', '.join(names)} hold other numbers than 0 and 1, expected for {task}.")
    return encode_indicators(matrix, tuple(clean_name(n) for n in names), task, where)


def encode_indicators(matrix: np.ndarray, class_names: tuple[str, ...], task: Task | None, where: str) -> Labels:
    """A matrix of 0 and 1: one-hot rows are single-label, anything else is multi-label."""
    one_hot = bool((matrix.sum(axis=1) == 1).all())
    if task == "multi-label" or not one_hot:
        if task == "single-label":
            raise MiradaError(f"{where}: some rows have no label or several, expected exactly one; use multi-label.")
        return Labels("multi-label", matrix.astype(np.float32), class_names)
    note = () if task else (f"{where}: every row has exactly one label: taken as single-label.",)
    return Labels("single-label", matrix.argmax(axis=1).astype(np.int64), class_names, (), note)


def encode_array(values: np.ndarray, class_names: Sequence[str] | None, task: Task | None, where: str) -> Labels:
    """A label array: integers or text (N,), indicators (N, K), or floats to predict (N,) or (N, K)."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.dtype.kind not in "iufbUS" or values.ndim not in (1, 2):
        raise MiradaError(f"{where}: labels are {values.dtype} of shape {values.shape}, expected numbers or text (N,).")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise MiradaError(f"{where}: labels contain NaN or infinity; remove those rows.")
    if values.dtype.kind == "U":
        return encode_text(values.tolist(), task, where, "labels")
    if values.ndim == 2:
        binary = bool(np.isin(values, (0, 1)).all())
        if task == "regression" or not binary:
            names = tuple(class_names or (f"y{i}" for i in range(values.shape[1])))
            return Labels("regression", values.astype(np.float32), (), names)
        names = tuple(class_names or map(str, range(values.shape[1])))
        _check_count(names, values.shape[1], where)
        return encode_indicators(values, names, task, where)
    whole = values.dtype.kind in "iub" or bool((values == np.rint(values)).all())
    if task == "regression" or (task is None and not whole):
        return Labels("regression", values.astype(np.float32)[:, None], (), ("y",))
    if not whole:
        raise MiradaError(f"{where}: labels are fractions, expected whole class numbers; use regression.")
    return _encode_integers(values.astype(np.int64), class_names, where)


def _encode_integers(values: np.ndarray, class_names: Sequence[str] | None, where: str) -> Labels:
    if class_names is None:
        distinct, targets = np.unique(values, return_inverse=True)
        return Labels("single-label", targets.astype(np.int64), tuple(str(v) for v in distinct))
    if values.min() < 0 or values.max() >= len(class_names):
        raise MiradaError(
            f"{where}: labels span {values.min()}..{values.max()} but there are {len(class_names)} class names, "
            f"expected 0..{len(class_names) - 1}."
        )
    return Labels("single-label", values, tuple(clean_name(str(n)) for n in class_names))


def _check_count(names: tuple[str, ...], expected: int, where: str) -> None:
    if len(names) != expected:
        raise MiradaError(f"{where}: {len(names)} class names for {expected} label columns; give one per column.")


def _encode_sets(labels: list[list[str]]) -> Labels:
    class_names = sort_names({name for row in labels for name in row})
    index = {name: i for i, name in enumerate(class_names)}
    targets = np.zeros((len(labels), len(class_names)), np.float32)
    for row, names in enumerate(labels):
        targets[row, [index[name] for name in names]] = 1
    return Labels("multi-label", targets, class_names)


def _split_labels(value: str) -> list[str]:
    for separator in SEPARATORS[1:]:
        value = value.replace(separator, SEPARATORS[0])
    return [_tidy_number(clean_name(part)) for part in value.split(SEPARATORS[0]) if part.strip()]


def _infer_task(values: Sequence[str]) -> Task:
    if any(separator in value for value in values for separator in SEPARATORS):
        return "multi-label"
    numbers = [_as_float(value) for value in values]
    if not numbers or None in numbers:
        return "single-label"
    distinct = len(set(numbers))
    if any(number is not None and number != int(number) for number in numbers):
        return "regression" if distinct > min(10, len(numbers) / 2) else "single-label"
    # Whole numbers are classes, unless there are so many that a class would have under four images.
    return "regression" if distinct > max(20, len(numbers) / 4) else "single-label"


def _number(value: str, where: str, column: str, row: int) -> float:
    number = _as_float(value)
    if number is None:
        raise MiradaError(
            f"{where}: {value!r} in column {column!r}, row {row + 1}, is not a finite number; correct or remove it."
        )
    return number


def _as_float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        try:
            number = float(text.replace(",", "."))  # decimal comma, as many spreadsheets write it
        except ValueError:
            return None
    return number if math.isfinite(number) else None


def _as_integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _tidy_number(name: str) -> str:
    """'3.0' -> '3': spreadsheets turn integer labels into floats when a cell is empty."""
    return name[:-2] if name.endswith(".0") and name[:-2].isdigit() else name
