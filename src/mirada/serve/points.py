"""Questions about places: JSON with a list of points, in degrees, with the covariates that the model knows."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, create_model

from mirada.data.geo.batches import layers_of
from mirada.explain.chips import KNOWN, explain_chips
from mirada.serve import answers as say
from mirada.serve.refusals import Refused
from mirada.serve.served import REFUSED_QUESTIONS, OneOf, Served, asked_of_model, taking
from mirada.verbs.maps.trained import TrainedPlots

MEDIA_TYPE = "application/json"
NAME = "points.csv"


class Place(BaseModel):
    """A point of EPSG:4326."""

    model_config = ConfigDict(extra="forbid")
    longitude: float = Field(ge=-180, le=180)
    latitude: float = Field(ge=-90, le=90)


def routes(served: Served) -> APIRouter:
    router, trained, limits = APIRouter(), served.trained, served.limits
    assert isinstance(trained, TrainedPlots)
    names = trained.needs.covariates
    covariates: dict[str, Any] = {f"covariate_{n}": _covariate(name) for n, name in enumerate(names)}
    Point = create_model("Point", __base__=Place, **covariates)
    Question = _question("Points", Point, limits.points)
    Explaining = _question("PointsToExplain", Point, limits.explained)

    @router.post("/predict", response_model=say.Answers[say.PredictedPlace], responses=REFUSED_QUESTIONS)
    @taking(Question)
    async def predict(question: Any) -> Any:
        """What the model predicts at places, with its interval; bands are read from the rasters of the run."""
        predicted = lambda: asked_of_model(lambda: _predicted(trained, question.points))  # noqa: E731
        return {"answers": await served.turns.alone(predicted)}

    @router.post("/explain", response_model=say.Explained[say.ExplainedPlace], responses=REFUSED_QUESTIONS)
    @taking(Explaining)
    async def explain_places(
        question: Any,
        method: Annotated[list[Annotated[str, OneOf(KNOWN)]] | None, Query(min_length=1)] = None,
    ) -> Any:
        """Which pixels around places their predictions rest on."""
        methods = list(dict.fromkeys(method or KNOWN[:1]))
        work = lambda: asked_of_model(lambda: _explained(trained, question.points, methods))  # noqa: E731
        return {"explanations": await served.turns.alone(work), "notes": []}

    return router


def _covariate(name: str) -> tuple[Any, Any]:
    return (float | None, Field(None, alias=name, allow_inf_nan=False, description="read from rasters if left out"))


def _question(name: str, point: type[BaseModel], most: int) -> Any:
    points = (list[point], Field(min_length=1, max_length=most))  # type: ignore[valid-type]
    return create_model(name, __config__=ConfigDict(extra="forbid"), points=points)


def _predicted(trained: TrainedPlots, points: list[Place]) -> list[dict]:
    with TemporaryDirectory(prefix="mirada-serve-") as folder:
        rows = trained.rows(_written(points, Path(folder)))
    return [_worded(trained, point, row) for point, row in zip(points, rows, strict=True)]


def _explained(trained: TrainedPlots, points: list[Place], methods: list[str]) -> list[dict]:
    if not trained.needs.bands:
        raise Refused(409, "this model sees no rasters around places, so there are no pixels to explain.")
    predicted = _predicted(trained, points)
    if lost := next((one["error"] for one in predicted if one["error"]), None):
        raise Refused(409, lost)
    with TemporaryDirectory(prefix="mirada-serve-") as folder:
        plots = trained.points(_written(points, Path(folder))).plots
    trained.model.eval()
    layers = trained.scale.apply(layers_of(plots)).to(trained.device)
    maps: list[dict] = [{} for _ in points]
    for method in methods:
        relevance_BHW = explain_chips(trained.model, layers, len(trained.needs.bands), method=method).relevance_BHW
        for place, relevance_HW in zip(maps, torch.nan_to_num(relevance_BHW.double()).cpu(), strict=True):
            place[method] = {"relevance": relevance_HW.tolist()}
    return [{**one, "maps": found} for one, found in zip(predicted, maps, strict=True)]


def _written(points: list[Place], folder: Path) -> Path:
    """The table that the verbs read. A covariate that no point has is no column: it is taken from the rasters."""
    known = [
        (field, info.alias)
        for field, info in type(points[0]).model_fields.items()
        if info.alias and any(getattr(point, field) is not None for point in points)
    ]
    with open(folder / NAME, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["longitude", "latitude", *(alias for _, alias in known)])
        for point in points:
            cells = [getattr(point, field) for field, _ in known]
            writer.writerow(
                [repr(point.longitude), repr(point.latitude), *("" if c is None else repr(c) for c in cells)]
            )
    return folder / NAME


def _worded(trained: TrainedPlots, point: Place, row: dict) -> dict:
    predicted = f"predicted_{trained.field.target_name}"
    other = ("name", "longitude", "latitude", predicted, "area", "error")
    return {
        "longitude": point.longitude,
        "latitude": point.latitude,
        "prediction": row.get(predicted),
        "numbers": {key: value for key, value in row.items() if key not in other and value is not None},
        "area": row.get("area"),
        "error": row["error"],
    }
