"""What the addresses answer, as OpenAPI shows it. The numbers are those of `mirada predict` and of explain.json."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

Answer = TypeVar("Answer")


class Failed(BaseModel):
    """Why there is no answer, in one sentence."""

    error: str


class Answers(BaseModel, Generic[Answer]):
    """One per input, in their order."""

    answers: list[Answer]


class Named(BaseModel):
    name: str = Field(description="name of the uploaded file")


class Classes(BaseModel):
    predicted: str = Field(description="the likeliest class; of several labels those that apply, between semicolons")
    confidence: float
    probabilities: dict[str, float]


class ClassesOfImage(Classes, Named):
    pass


class ValuesOfImage(Named):
    values: dict[str, float]


class LikelihoodOfImage(Named):
    nats_per_pixel: float
    bits_per_dimension: float


class SharesOfImage(Named):
    shares: dict[str, float] = Field(description="of the pixels of the image")


class Translated(BaseModel):
    text: str
    score: float = Field(description="log-probability with the penalty of its length")
    log_probability: float
    is_finished: bool


class Filling(BaseModel):
    token: str
    probability: float
    text: str


class Filled(BaseModel):
    blanks: list[list[Filling]] = Field(description="for every blank the likeliest tokens, best first")


class Continued(BaseModel):
    text: str = Field(description="what follows the given text, without it")


class Near(BaseModel):
    word: str
    cosine: float


class Neighbours(BaseModel):
    neighbours: list[Near]


class PredictedPlace(BaseModel):
    longitude: float
    latitude: float
    prediction: float | None
    numbers: dict[str, float] = Field(description="the interval, the spread of the members, how unlike training it is")
    area: str | None = Field(description="inside or outside the area of applicability")
    error: str | None = Field(description="why there is no prediction")


class Node(BaseModel):
    node: str


class ClassesOfNode(Classes, Node):
    pass


class Faithfulness(BaseModel):
    """Areas under the curves of deletion and insertion, beside those of a random order."""

    baseline: str
    deletion: float
    insertion: float
    random_deletion: float
    random_insertion: float


class ImageMap(BaseModel):
    relevance: list[list[float]] = Field(description="rows of cells, from above")
    faithfulness: Faithfulness | None = None


class TokenMap(BaseModel):
    relevance: list[float] = Field(description="one number per token")


class ExplainedImage(Named):
    target: str = Field(description="what the maps explain")
    answers: dict[str, float]
    maps: dict[str, ImageMap]


class ExplainedText(BaseModel):
    target: str
    answers: dict[str, float]
    tokens: list[str]
    maps: dict[str, TokenMap]


class ExplainedPlace(PredictedPlace):
    maps: dict[str, ImageMap] = Field(description="of the pixels around the place")


class ExplainedNode(ClassesOfNode):
    maps: dict[str, dict[str, float]] = Field(description="relevance of nodes by name; the others have none")


class Explained(BaseModel, Generic[Answer]):
    explanations: list[Answer]
    notes: list[str] = Field(description="methods that were left out, and why")


class Health(BaseModel):
    status: str
    run: str
    version: str


class Card(BaseModel):
    """What the served model is."""

    run: str
    system: str
    size: str | None
    task: str
    inputs: str
    num_parameters: int
    classes: list[str]
    image_size: list[int] | None = Field(description="height and width")
    in_channels: int | None
    vocabulary: int | None = Field(description="tokens that a model of text knows")
    needs: list[str] = Field(description="covariates and bands that a model of places looks at")
    media_type: str = Field(description="of what is posted to /predict and /explain")
    device: str
    engine: str = Field(description="torch, onnx or openvino")
    precision: str
    result: dict[str, Any] = Field(description="what was measured on held-out data")
    limits: dict[str, float]


def classes_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The columns of `mirada predict` with the probabilities by class."""
    probabilities = {key[2:]: value for key, value in answer.items() if key not in ("predicted", "confidence")}
    return {"predicted": answer["predicted"], "confidence": answer["confidence"], "probabilities": probabilities}
