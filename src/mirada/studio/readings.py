"""The addresses that read: what tokens look at, a translation with its alignment, and what would come next."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from mirada.report.explained_json import told_floats, told_item
from mirada.studio.answers import NextTokens, Reading, ToRead, Translation, WhatNext
from mirada.studio.looks import all_methods
from mirada.studio.state import Studio
from mirada.verbs.looks import LookedAt, alignment_of, read_again
from mirada.verbs.next_tokens import next_tokens
from mirada.verbs.text.trained import TrainedText


def routes(state: Studio) -> APIRouter:
    router = APIRouter(tags=["readings"])

    @router.post("/runs/{name}/readings")
    def read(name: str, what: ToRead) -> Reading:
        """Explain a text: its class, the token that comes next, a blank, or a word of its translation."""
        run = state.run(name)
        with state.model(run) as trained:
            looked = read_again(trained, what.text, method=what.method or None, target=what.target, at=what.at)
            assert isinstance(trained, TrainedText)
            translation = _translation(trained, what.text, looked)
            task = trained.does
        told = told_item(looked.item)
        return Reading(
            id=state.looks.add(run, looked),
            run=run.path.name,
            task=task,
            methods=all_methods(),
            translation=translation,
            command=looked.command,
            notes=looked.notes,
            **{field: told[field] for field in ("tokens", "source", "answers", "target", "maps", "layers")},
        )

    @router.post("/runs/{name}/next")
    def what_comes_next(name: str, what: WhatNext) -> NextTokens:
        """The likeliest tokens after a text, after a part of its translation, or in its first blank."""
        run = state.run(name)
        with state.model(run) as trained:
            found = next_tokens(trained, what.text, written=what.written, count=what.count)
        return NextTokens(**asdict(found))

    return router


def _translation(trained: TrainedText, text: str, looked: LookedAt) -> Translation | None:
    found = looked.translation
    if found is None:
        return None
    weights_NM = alignment_of(trained, text, found)
    alignment = None if weights_NM is None else told_floats(weights_NM)
    return Translation(text=found.text, score=found.score, alignment=alignment)
