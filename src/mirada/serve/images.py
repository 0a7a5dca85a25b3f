"""Questions about images: multipart with one or several parts called `image`."""

import asyncio
import dataclasses
import io
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, File, Query, Response, UploadFile
from pydantic import WithJsonSchema

from mirada.data.resize import match_channels
from mirada.explain.methods import METHODS
from mirada.serve import answers as say
from mirada.serve.refusals import Refused
from mirada.serve.served import PNG, REFUSED_QUESTIONS, OneOf, Served, asked_of_model, png_of, require_one, with_png
from mirada.serve.uploads import pixels_of_upload, plain_name
from mirada.verbs.engines.exported import Exported
from mirada.verbs.explain import Explanations, explain
from mirada.verbs.images import NamedImage, read_or_reason
from mirada.verbs.masks.output import picture_of
from mirada.verbs.masks.trained import TrainedMasks

MEDIA_TYPE = "multipart/form-data"
Upload = Annotated[UploadFile, WithJsonSchema({"type": "string", "contentMediaType": "image/*", "format": "binary"})]


def routes(served: Served) -> APIRouter:
    router = APIRouter()
    if isinstance(served.trained, TrainedMasks):
        _add_masks(router, served, served.trained)
    else:
        _add_predict(router, served)
    _add_explain(router, served)
    return router


def _add_predict(router: APIRouter, served: Served) -> None:
    trained, limits = served.trained, served.limits
    kind, words = _wording(trained.data["task"])

    def answers(pixels: list[np.ndarray]) -> list[dict]:
        return trained.of_pixels(np.stack(pixels))

    def read(file: UploadFile) -> np.ndarray:
        """uint8 (C, H, W) as `mirada predict` reads it."""
        pixels = _pixels(served, file)
        found = read_or_reason(NamedImage(plain_name(file.filename), pixels), trained.target)
        if isinstance(found, str):
            raise Refused(415, found)
        return found

    @router.post("/predict", response_model=say.Answers[kind], responses=REFUSED_QUESTIONS)  # type: ignore[valid-type]
    async def predict(
        image: Annotated[list[Upload], File(min_length=1, max_length=limits.images, description="image files")],
    ) -> Any:
        """What the model says of images; those of several requests go through it together."""
        pixels = await asyncio.gather(*(served.beside(read, file) for file in image))
        found = await served.turns.together(answers, list(pixels))
        named = zip(image, found, strict=True)
        return {"answers": [{"name": plain_name(file.filename), **words(answer)} for file, answer in named]}


def _add_masks(router: APIRouter, served: Served, trained: TrainedMasks) -> None:
    limits = served.limits

    def read(file: UploadFile) -> np.ndarray:
        return match_channels(_pixels(served, file, whole=True), trained.data["in_channels"])

    @router.post("/predict", response_model=say.Answers[say.SharesOfImage], responses=with_png(REFUSED_QUESTIONS))
    async def predict(
        image: Annotated[list[Upload], File(min_length=1, max_length=limits.images, description="image files")],
        format: Annotated[Literal["json", "png"], Query(description="png: the mask of one image")] = "json",
    ) -> Any:
        """The share of every class in images, or the mask of one as a PNG with the number of a class in every pixel."""
        if format == "png":
            require_one(len(image))
        pixels = await asyncio.gather(*(served.beside(read, file) for file in image))
        check = served.deadline()
        masks = await served.turns.alone(lambda: [trained.segment_pixels(one, check) for one in pixels])
        if format == "png":
            stream = io.BytesIO()
            picture_of(masks[0], trained.data["class_names"]).save(stream, "PNG")
            return Response(stream.getvalue(), media_type=PNG)
        return {
            "answers": [
                {"name": plain_name(file.filename), "shares": _without("share_", trained.shares(mask))}
                for file, mask in zip(image, masks, strict=True)
            ]
        }


def _add_explain(router: APIRouter, served: Served) -> None:
    trained, limits = served.trained, served.limits
    names = [str(name) for name in trained.data.get("class_names", trained.data.get("target_names", ()))]
    classes = OneOf(names) if names else OneOf([""])

    @router.post("/explain", response_model=say.Explained[say.ExplainedImage], responses=with_png(REFUSED_QUESTIONS))
    async def explain_images(
        image: Annotated[list[Upload], File(min_length=1, max_length=limits.explained, description="image files")],
        method: Annotated[
            list[Annotated[str, OneOf(list(METHODS))]] | None,
            Query(description="by default three of them", min_length=1),
        ] = None,
        target: Annotated[str, classes] | None = None,
        faithfulness: Annotated[
            bool, Query(description="whether to measure how far the answer depends on maps")
        ] = True,
        format: Annotated[Literal["json", "png"], Query(description="png: the picture of one image")] = "json",
    ) -> Any:
        """What the answers about images rest on: a number for every cell of the image, by every method."""
        if isinstance(trained, Exported):
            raise Refused(409, f"explanations need torch, and this server computes by {trained.engine}.")
        if format == "png":
            require_one(len(image))
        pixels = await asyncio.gather(*(served.beside(_pixels, served, file) for file in image))
        check = served.deadline()

        def explained() -> Explanations:
            found = explain(
                trained, pixels, method=method, target=target or None, faithfulness=faithfulness, progress=check
            )
            if found.failures:
                raise Refused(415, found.failures[0])
            items = [
                dataclasses.replace(item, name=plain_name(file.filename))
                for item, file in zip(found.items, image, strict=True)
            ]
            return dataclasses.replace(found, items=items)

        if format == "png":
            drawn = await served.turns.alone(lambda: asked_of_model(lambda: png_of(explained().items[0])))
            return Response(drawn, media_type=PNG)
        found = await served.turns.alone(lambda: asked_of_model(explained))
        return {"explanations": found.numbers(), "notes": found.notes}


def _pixels(served: Served, file: UploadFile, whole: bool = False) -> np.ndarray:
    """With `whole`, at the size of the file; else a large JPEG may be decoded smaller, as `mirada predict` does."""
    size = None if whole else served.trained.target.decoded_size
    content = file.file.read()
    return pixels_of_upload(content, file.filename or "", max_pixels=served.limits.pixels, size=size)


def _wording(task: str) -> tuple[type, Callable[[dict], dict]]:
    if task == "regression":
        return say.ValuesOfImage, lambda answer: {"values": _without("predicted_", answer)}
    if task == "pixels":
        return say.LikelihoodOfImage, dict
    return say.ClassesOfImage, say.classes_of


def _without(prefix: str, answer: dict) -> dict:
    return {key.removeprefix(prefix): value for key, value in answer.items()}
