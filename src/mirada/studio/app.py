"""The studio's server: the pages, and the addresses they ask (`frontend/src/api.ts` has the shapes)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from mirada import __version__
from mirada.serve.guard import add_guard
from mirada.serve.models import Models
from mirada.studio import learn, looks, maps, pages, readings, runs, trainings
from mirada.studio.processes import Trainings
from mirada.studio.state import REFUSALS, Studio

MAX_BODY = 32 * 2**20
MAX_MODELS = 4


def create_app(
    folder: str | Path,
    *,
    token: str | None = None,
    hosts: list[str] | None = None,
    at_once: int = 1,
    static: Path = pages.STATIC,
    root_path: str = "",
) -> FastAPI:
    """Of the runs below `folder`, which need not exist yet. A mistake is answered with {"error": "one sentence"}.

    token       what requests must carry, see `add_guard`; the pages themselves are for everybody
    at_once     how many trainings may run
    static      where the built pages are
    root_path   under which a proxy shows the server
    """
    state = Studio(Path(folder), Models(MAX_MODELS), Trainings(at_once))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(state.trainings.close)

    app = FastAPI(
        title="Mirada studio",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # both load their scripts from elsewhere
        redoc_url=None,
    )
    app.root_path = root_path
    app.state.studio = state
    for part in (runs, trainings, looks, readings, maps, learn):
        app.include_router(part.routes(state), prefix="/api", responses=REFUSALS)
    app.include_router(pages.routes(static))
    add_guard(app, token=token, max_body=MAX_BODY, hosts=hosts, page_policy=True, is_open=pages.is_page)
    return app
