"""What the studio's server takes and answers, field by field as frontend/src/api.ts has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Floats = str  # base64 of little-endian float32
Kind = Literal["image", "masks", "text", "pairs", "graph", "plots", "pixels"]
PageName = Literal["look", "read", "map"]
Text = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(max_length=200)]


class Score(BaseModel):
    name: str
    value: float
    low: float | None
    high: float | None


class BaselineScore(Score):
    system: str


class RunSummary(BaseModel):
    name: str
    status: Literal["training", "stopped", "finished", "failed"]
    system: str
    size: str | None
    task: str
    kind: Kind
    source: str
    score: Score | None
    baseline: BaselineScore | None
    num_parameters: int | None
    seconds: float | None
    changed: str
    has_report: bool
    pages: list[PageName]
    is_ours: bool


class Runs(BaseModel):
    folder: str
    version: str
    runs: list[RunSummary]


class Progress(BaseModel):
    what: str
    step: int
    steps: int
    epoch: int
    samples: int
    seconds: float
    seconds_left: float
    samples_per_second: float
    train_loss: float
    learning_rate: float


Metrics = dict[str, list[float | None]]


class RunDetail(RunSummary):
    config_yaml: str
    metrics: Metrics
    baseline_metrics: Metrics
    progress: Progress | None
    log: list[str]
    failure: str | None
    classes: list[str]
    image_size: tuple[int, int] | None
    num_held_out: int


class SystemCard(BaseModel):
    name: str
    sizes: list[str]
    summary: str
    kinds: list[str]


class Preset(BaseModel):
    name: str
    summary: str


class Choices(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    of_config: dict[str, Any] = Field(alias="schema")
    systems: list[SystemCard]
    presets: list[Preset]
    samples: list[str]


class NewTraining(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, Field(min_length=1, max_length=4096)]
    system: Name | None = None
    preset: Name | None = None
    settings: dict[str, Any] | None = None


class Started(BaseModel):
    name: str


class Method(BaseModel):
    name: str
    title: str
    is_not: str
    cost: str


class HeldOut(BaseModel):
    index: int
    name: str
    truth: str | None
    answer: str | None
    is_right: bool | None


class HeldOutItems(BaseModel):
    total: int
    items: list[HeldOut]


class Strip(BaseModel):
    fractions: Floats
    deletion: Floats
    insertion: Floats
    random_deletion: Floats
    random_insertion: Floats
    deletion_auc: float
    insertion_auc: float
    random_deletion_auc: float
    random_insertion_auc: float
    baseline: str
    beats: list[Literal["deletion", "insertion"]]
    verdict: str
    picture: str | None


class MapResult(BaseModel):
    method: str
    title: str
    is_not: str
    cost: str
    grid: tuple[int, int]
    cell: tuple[float, float]
    values: Floats
    strip: Strip | None


class Lattice(BaseModel):
    size: list[int]
    extra: int
    cell: tuple[float, float] | None


class LayerInfo(BaseModel):
    name: str
    kind: Literal["self", "target", "cross"]
    asker: str
    shape: tuple[int, int, int]
    queries: Lattice
    keys: Lattice


class TextLayerInfo(LayerInfo):
    labels: tuple[list[str], list[str]]


class Look(BaseModel):
    id: str
    run: str
    name: str
    size: tuple[int, int]
    picture: str
    answers: list[tuple[str, float]]
    target: str
    classes: list[str]
    maps: list[MapResult]
    layers: list[LayerInfo]
    methods: list[Method]
    command: str
    notes: list[str]


class Weights(BaseModel):
    shape: list[int]
    values: Floats


class TokenMap(BaseModel):
    method: str
    title: str
    is_not: str
    cost: str
    values: Floats
    of_target: Floats | None


class Translation(BaseModel):
    text: str
    score: float
    alignment: Floats | None


class Reading(BaseModel):
    id: str
    run: str
    task: str
    tokens: list[str]
    source: list[str] | None
    answers: list[tuple[str, float]]
    target: str
    maps: list[TokenMap]
    layers: list[TextLayerInfo]
    methods: list[Method]
    translation: Translation | None
    command: str
    notes: list[str]


class ToRead(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Text
    at: int | None = None
    target: Name | None = None
    method: Annotated[list[Name], Field(max_length=32)] | None = None


class NextToken(BaseModel):
    text: str
    token: str
    probability: float


class NextTokens(BaseModel):
    tokens: list[str]
    top: list[NextToken]
    is_end: bool


class WhatNext(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Text
    written: Text = ""
    count: Annotated[int, Field(ge=1, le=100)] = 10
