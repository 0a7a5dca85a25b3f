"""What a live demo is: a statement of a lecture, what is right, inputs to change, and numbers computed when asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from mirada.errors import MiradaError
from mirada.verbs.learn.parts import within


@dataclass(frozen=True)
class Text:
    en: str
    es: str


def same(text: str) -> Text:
    """Symbols, which need no translation."""
    return Text(text, text)


@dataclass(frozen=True)
class Input:
    """A number between two limits, or one of several choices."""

    name: str
    label: Text
    value: float | str
    low: float = 0
    high: float = 0
    step: float = 1
    choices: tuple[str, ...] = ()


Mark = Literal["right", "wrong", ""]  # whether a number shows the right form or the mistaken one


@dataclass(frozen=True)
class Number:
    label: Text
    value: float
    mark: Mark = ""


@dataclass(frozen=True)
class Matrix:
    title: Text
    rows: list[str]
    columns: list[str]
    values: list[list[float]]
    digits: int = 2
    kind: Literal["matrix"] = "matrix"


@dataclass(frozen=True)
class Lines:
    title: Text
    x_label: Text
    x: list[float]
    series: dict[str, list[float]]  # by English label
    labels: dict[str, Text]
    log_x: bool = False
    log_y: bool = False
    marker: float | None = None  # a place on the x axis
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class Points:
    """Vectors of two channels; the last one is the mixture of the others by their weights."""

    title: Text
    names: list[str]
    places: list[list[float]]
    weights: list[float]
    kind: Literal["points"] = "points"


Picture = Matrix | Lines | Points


@dataclass(frozen=True)
class Answer:
    numbers: list[Number]
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class Demo:
    name: str
    items: tuple[str, ...]  # of the list of errata and items, "E33"
    title: Text
    given: str  # as the lecture has it, in its language
    right: Text
    see: Text
    inputs: tuple[Input, ...]
    run: Callable[..., Answer]

    def __call__(self, given: Mapping[str, Any] | None = None) -> Answer:
        return self.run(**checked_inputs(self, given or {}))


def checked_inputs(demo: Demo, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given and, for the rest, what the demo starts with; whole numbers as such."""
    names = {one.name for one in demo.inputs}
    for name in given:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise MiradaError(f"the demo {demo.name!r} has no input {str(name)[:40]!r}: there are {known}")
    return {one.name: _checked(one, given.get(one.name, one.value)) for one in demo.inputs}


def _checked(one: Input, value: Any) -> Any:
    if one.choices:
        if value not in one.choices:
            raise MiradaError(f"{one.name} is {str(value)[:40]!r}: must be one of {', '.join(one.choices)}")
        return value
    within(value, one.low, one.high, one.name)
    is_whole = all(float(number).is_integer() for number in (one.step, one.low))
    if is_whole and not float(value).is_integer():
        raise MiradaError(f"{one.name} is {value}: must be a whole number")
    return int(value) if is_whole else float(value)


def matrix(title: Text, values: Tensor, rows: Sequence[object], columns: Sequence[object], digits: int = 2) -> Matrix:
    return Matrix(title, [str(row) for row in rows], [str(column) for column in columns], values.tolist(), digits)


def lines(title: Text, x_label: Text, x: Sequence[float], series: Mapping[Text, Sequence[float]],
          **options: Any) -> Lines:  # fmt: skip
    return Lines(
        title,
        x_label,
        [float(at) for at in x],
        {label.en: [float(y) for y in values] for label, values in series.items()},
        {label.en: label for label in series},
        **options,
    )
