"""The built pages: index.html, and files whose names change with their content."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, Response

from mirada.serve.refusals import Refused
from mirada.studio.state import is_inside

STATIC = Path(__file__).parent / "static"
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Mirada studio</title>
<h1>The pages of the studio are not built</h1>
<p>This is a source checkout. <code>make studio</code> builds them (it needs Node 20), then reload this page.
What the pages would ask works already: see <a href="openapi.json">openapi.json</a>.</p></html>
"""
FOREVER = "public, max-age=31536000, immutable"


def routes(static: Path = STATIC) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def index() -> Response:
        if not (static / "index.html").is_file():
            return HTMLResponse(NOT_BUILT, headers={"Cache-Control": "no-store"})
        return FileResponse(static / "index.html", headers={"Cache-Control": "no-cache"})

    @router.get("/{path:path}")
    def file(path: str) -> Response:
        found = static / path
        if "\0" in path or not is_inside(found, static) or not found.is_file():
            raise Refused(404, "there is nothing at this address.")
        caching = FOREVER if path.startswith("assets/") else "no-cache"
        return FileResponse(found, headers={"Cache-Control": caching})

    return router


def is_page(path: str) -> bool:
    """What anybody may read: the same for all, and needed before a token can be sent."""
    return not path.startswith("/api/") and path != "/openapi.json"
