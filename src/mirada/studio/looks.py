"""The addresses that look into images: what a model answers, what the answer rests on, and where its tokens look."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, File, Form, Query, UploadFile

from mirada.errors import MiradaError
from mirada.explain.methods import METHODS
from mirada.report.explained import ExplainedImage
from mirada.report.explained_json import told_floats, told_item, told_map
from mirada.serve.refusals import Refused
from mirada.serve.uploads import pixels_of_upload, plain_name
from mirada.studio.answers import Look, MapResult, Method, Name, Weights
from mirada.studio.state import Studio
from mirada.train.folder import RunFolder
from mirada.verbs.held_out import held_out_path, held_out_pixels
from mirada.verbs.looks import another_map, look_at_image
from mirada.verbs.runs import facts_of

MAX_PIXELS = 64_000_000
MAX_UPLOAD = 24 * 2**20


def routes(state: Studio) -> APIRouter:
    router = APIRouter(tags=["looks"])

    @router.post("/runs/{name}/looks")
    def look(
        name: str,
        image: Annotated[UploadFile | None, File()] = None,
        held_out: Annotated[int | None, Form(ge=0)] = None,
        method: Annotated[list[Name] | None, Form(max_length=32)] = None,
        target: Annotated[Name | None, Form()] = None,
        faithfulness: Annotated[bool, Form()] = True,
    ) -> Look:
        """Explain an image that is sent, or a held-out one by its number."""
        run = state.run(name)
        called, pixels, path = _image_of(run, image, held_out)
        with state.model(run) as trained:
            looked = look_at_image(
                trained,
                called,
                pixels,
                method=method or None,
                target=target or None,
                faithfulness=faithfulness,
                path=path,
            )
        told = told_item(looked.item)
        return Look(
            id=state.looks.add(run, looked),
            run=run.path.name,
            classes=facts_of(run).classes,
            methods=all_methods(),
            command=looked.command,
            notes=looked.notes,
            **_fields(told, "name", "size", "picture", "answers", "target", "maps", "layers"),
        )

    @router.get("/looks/{look}/map")
    def further_map(
        look: str,
        method: Name,
        target: Name | None = None,
        at: Annotated[str | None, Query(pattern=r"^\d{1,6},\d{1,6}$", description="row,column of a token")] = None,
        layer: Annotated[int, Query(ge=-1000, le=1000)] = -1,
        head: Annotated[int | None, Query(ge=0, le=10_000)] = None,
        faithfulness: bool | None = None,
    ) -> MapResult:
        """The same image by another method, layer or head, or as one token has seen it."""
        kept = state.looks.get(look)
        item = kept.looked.item
        if not isinstance(item, ExplainedImage):
            raise Refused(400, "maps are of images; read the text again with another method.")
        row_column = None if at is None else tuple(int(part) for part in at.split(","))
        with state.model(kept.run) as trained:
            found = another_map(
                trained,
                kept.looked,
                method,
                target=target,
                layer=layer,
                head=head,
                at=row_column,  # type: ignore[arg-type]
                faithfulness=at is None if faithfulness is None else faithfulness,
            )
        return MapResult(**told_map(item, found))

    @router.get("/looks/{look}/weights")
    def weights(
        look: str,
        layer: Annotated[int, Query(ge=0)],
        query: Annotated[int | None, Query(ge=0)] = None,
        key: Annotated[int | None, Query(ge=0)] = None,
        head: Annotated[int | None, Query(ge=0)] = None,
    ) -> Weights:
        """Where one token looks (heads, keys), who looks at it (heads, queries), or all of one head (queries, keys)."""
        kept = state.looks.get(look)
        shapes = [one.weights_HNM.shape for one in kept.looked.item.layers]
        if layer >= len(shapes):
            raise MiradaError(f"layer {layer}: there are {len(shapes)}, from 0.")
        given = {"head": head, "query": query, "key": key}
        asked = [(axis, what, number) for axis, (what, number) in enumerate(given.items()) if number is not None]
        if len(asked) != 1:
            raise MiradaError("give one of query, key and head.")
        ((axis, what, number),) = asked
        if number >= shapes[layer][axis]:
            raise MiradaError(f"{what} {number}: layer {layer} has {shapes[layer][axis]}, from 0.")
        if kept.is_whole:
            weights_HNM = kept.looked.item.layers[layer].weights_HNM
        else:
            with state.model(kept.run) as trained:
                weights_HNM = kept.weights(trained, layer)
        chosen = weights_HNM.take(number, axis=axis)
        return Weights(shape=list(chosen.shape), values=told_floats(chosen))

    return router


def all_methods() -> list[Method]:
    return [Method(name=one.name, title=one.title, is_not=one.is_not, cost=one.cost) for one in METHODS.values()]


def _image_of(run: RunFolder, image: UploadFile | None, index: int | None) -> tuple[str, np.ndarray, str | None]:
    """What to call it, its pixels, and its file if it has one here."""
    if (image is None) == (index is None):
        raise Refused(422, "send either an image or the number of a held-out one.")
    if index is not None:
        called, pixels = held_out_pixels(run, index)
        return called, pixels, held_out_path(run, index)
    assert image is not None
    content = image.file.read(MAX_UPLOAD + 1)
    if len(content) > MAX_UPLOAD:
        raise Refused(413, f"the image is over {MAX_UPLOAD // 2**20} MB; send a smaller one.")
    name = plain_name(image.filename)
    return name, pixels_of_upload(content, name, max_pixels=MAX_PIXELS), name


def _fields(told: dict, *names: str) -> dict[str, Any]:
    return {name: told[name] for name in names}
