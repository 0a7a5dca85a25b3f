"""The addresses that start, stop and resume trainings."""

from __future__ import annotations

from fastapi import APIRouter

from mirada.studio.answers import NewTraining, RunDetail, Started
from mirada.studio.runs import detail_of
from mirada.studio.state import Studio
from mirada.verbs.request import requested


def routes(state: Studio) -> APIRouter:
    router = APIRouter(tags=["trainings"])

    @router.post("/trainings", status_code=201)
    def train(what: NewTraining) -> Started:
        """Start a training; its folder is named at once."""
        given = requested(what.source, what.system, what.preset, what.settings)
        return Started(name=state.trainings.start(state.folder, given).path.name)

    @router.post("/runs/{name}/stop")
    def stop(name: str) -> RunDetail:
        """Stop a training of this studio, with everything saved."""
        run = state.run(name)
        state.trainings.stop(run)
        return detail_of(state, run)

    @router.post("/runs/{name}/resume")
    def resume(name: str) -> RunDetail:
        """Go on with a run that was stopped or that failed."""
        run = state.run(name)
        state.trainings.resume(run)
        return detail_of(state, run)

    return router
