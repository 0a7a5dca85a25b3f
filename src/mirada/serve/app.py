"""The app of one run: what it is, what it says of inputs, what its answers rest on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from fastapi import APIRouter, FastAPI, Response

from mirada import __version__
from mirada.serve.answers import Card, Health
from mirada.serve.card import card_of
from mirada.serve.door import Door
from mirada.serve.guard import LOOPBACK, add_guard
from mirada.serve.limits import Limits
from mirada.serve.metrics import CONTENT_TYPE, Metrics
from mirada.serve.served import REFUSALS, Served
from mirada.serve.turns import Turns
from mirada.verbs.engines.exported import Exported
from mirada.verbs.engines.load import load
from mirada.verbs.load import Trained

WHAT = """Answers of one trained model. Post to `/predict` what it is to say something about, and to `/explain` what its
answers rest on. Every refusal is `{"error": "one sentence"}`; `/card` tells the limits."""


def create_app(
    run: str | Path | Trained | Exported,
    limits: Limits | None = None,
    token: str | None = None,
    *,
    hosts: list[str] | None = None,
    device: str = "auto",
    engine: str | None = None,
    precision: str | None = None,
) -> FastAPI:
    """A server of the best model of a run.

    token   what requests must carry as `Authorization: Bearer …`; None for no token
    hosts   names that this server may be called by; by default those of this machine, or any if there is a token
    engine, precision   as of mirada.load
    """
    limits = limits or Limits()
    trained = load(run, device=device, engine=engine, precision=precision) if isinstance(run, str | Path) else run
    if isinstance(trained, Trained):
        trained.model.eval()
    metrics = Metrics()
    served = Served(trained, Turns(metrics), limits)
    kind = _kind(trained)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        served.close()

    # No page of FastAPI's: it would load scripts from elsewhere.
    app = FastAPI(
        title=f"mirada serve {trained.folder.path.resolve().name}",
        version=__version__,
        description=WHAT,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.metrics = metrics
    app.include_router(_about(trained, limits, metrics, kind.MEDIA_TYPE))
    app.include_router(kind.routes(served))
    if token is not None:
        _describe_token(app)
    app.add_middleware(Door, limits=limits, media_type=kind.MEDIA_TYPE, metrics=metrics)
    named = [*LOOPBACK] if hosts is None and token is None else hosts
    add_guard(app, token=token, max_body=limits.body, hosts=named, page_policy=False)
    return app


def _about(trained: Trained | Exported, limits: Limits, metrics: Metrics, media_type: str) -> APIRouter:
    router = APIRouter(responses=REFUSALS)
    card = card_of(trained, limits, media_type)
    health = {"status": "ready", "run": card["run"], "version": __version__}

    @router.get("/", response_model=dict[str, str])
    async def addresses() -> Any:
        """Where to go on."""
        return {name.lstrip("/"): name for name in ("/card", "/health", "/metrics", "/openapi.json")}

    @router.get("/health", response_model=Health)
    async def is_ready() -> Any:
        """That the model is loaded and requests are taken."""
        return health

    @router.get("/card", response_model=Card)
    async def model_card() -> Any:
        """What the model is, what was measured, and the limits of this server."""
        return card

    text = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @router.get("/metrics", response_class=Response, responses={200: text})
    async def prometheus() -> Any:
        """Counts and times in the text format of Prometheus."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return router


def _kind(trained: Trained | Exported) -> ModuleType:
    """The questions that suit the inputs of the model."""
    inputs = trained.data.get("inputs", "image")
    if inputs in ("text", "pairs"):
        from mirada.serve import texts

        return texts
    if inputs == "plots":
        from mirada.serve import points

        return points
    if inputs == "graph":
        from mirada.serve import nodes

        return nodes
    from mirada.serve import images

    return images


def _describe_token(app: FastAPI) -> None:
    plain: Callable[[], dict[str, Any]] = app.openapi

    def described() -> dict[str, Any]:
        schema = plain()
        schema.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        return schema

    app.openapi = described  # type: ignore[method-assign]
