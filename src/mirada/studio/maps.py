"""The addresses of maps of a run."""

from __future__ import annotations

from fastapi import APIRouter

from mirada.studio.state import Studio


def routes(state: Studio) -> APIRouter:
    return APIRouter()
