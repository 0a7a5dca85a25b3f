"""The studio's server: the pages, and the addresses they ask (`frontend/src/api.ts` has the shapes)."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI

from mirada.serve.guard import add_guard
from mirada.serve.models import Models
from mirada.studio import learn, maps
from mirada.studio.state import Studio

MAX_BODY = 32 * 2**20
MAX_MODELS = 4


def create_app(folder: str | Path, *, token: str | None = None, hosts: list[str] | None = None) -> FastAPI:
    """Of the runs below `folder`, which need not exist yet. A sentence about a mistake is {"error": "…"}."""
    state = Studio(Path(folder), Models(MAX_MODELS))
    app = FastAPI(title="Mirada studio")
    for part in (maps, learn):
        app.include_router(part.routes(state), prefix="/api")
    add_guard(app, token=token, max_body=MAX_BODY, hosts=hosts, page_policy=True)
    return app
