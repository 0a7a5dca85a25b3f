"""A request that is refused: one sentence with its HTTP status, and how every failure becomes JSON."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from mirada.errors import MiradaError

# Of what Starlette refuses by itself, with an HTTP phrase instead of a sentence.
SENTENCES = {
    404: "there is nothing at this address; /openapi.json lists what there is.",
    405: "this address does not take this method; /openapi.json lists what it takes.",
}


class Refused(MiradaError):
    """A request that cannot be answered, with the status that says so."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = dict(headers or {})


def error_answer(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """{"error": "one sentence"}: what every refusal looks like."""
    # Halves of surrogate pairs, which JSON can escape and UTF-8 cannot write, may come with what is quoted.
    writable = sentence.encode("utf-8", "replace").decode("utf-8")
    return JSONResponse({"error": writable}, status, headers=dict(headers or {}))


def answer_failures(app: FastAPI) -> None:
    """Failures that are known become JSON with one sentence; what is unexpected is for the guard."""
    app.add_exception_handler(MiradaError, _of_mirada)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)


def sentence_of(errors: list[Any]) -> str:
    """What is wrong with the first value that does not fit, and where it is."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return "the body is not JSON; send an object as /openapi.json describes it."
    place = ".".join(str(part) for part in first["loc"])[:200]
    reason = str(first["msg"])[:300].rstrip(".")
    more = f" ({len(errors) - 1} more like this)" if len(errors) > 1 else ""
    return f"{place}: {reason[:1].lower()}{reason[1:]}{more}."


def _of_mirada(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Refused):
        return error_answer(error.status, str(error), error.headers)
    return error_answer(400, str(error))


def _of_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return error_answer(422, sentence_of(list(error.errors())))


def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    sentence = str(error.detail)
    if sentence == HTTPStatus(error.status_code).phrase:
        sentence = SENTENCES.get(error.status_code, f"{sentence.lower()}.")
    return error_answer(error.status_code, sentence, error.headers)
