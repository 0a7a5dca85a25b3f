"""What the addresses of a server share: the model, its turns, the limits, and how to ask within a time."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pydantic_core import core_schema

from mirada.errors import MiradaError
from mirada.machine.threads import num_cores
from mirada.report.explained import Item, save_png
from mirada.serve.answers import Failed
from mirada.serve.limits import Limits
from mirada.serve.refusals import Refused
from mirada.serve.turns import Turns
from mirada.verbs.engines.exported import Exported
from mirada.verbs.load import Trained

Found = TypeVar("Found")

PNG = "image/png"
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Failed, "description": "The request cannot be read, or names another host."},
    401: {"model": Failed, "description": "The token is missing or wrong."},
    403: {"model": Failed, "description": "A page of another site asks."},
    404: {"model": Failed, "description": "There is nothing at this address, or what is asked about is not known."},
    500: {"model": Failed, "description": "The server failed; its log has more."},
}
REFUSED_QUESTIONS: dict[int | str, dict[str, Any]] = {
    **REFUSALS,
    409: {"model": Failed, "description": "What is asked does not fit this model."},
    413: {"model": Failed, "description": "The body, an image or a text is over the limit."},
    415: {"model": Failed, "description": "The body, or a file in it, is not of a kind that this model takes."},
    422: {"model": Failed, "description": "The body does not look as described here."},
    429: {"model": Failed, "description": "Too many requests; a proxy in front may say so."},
    503: {"model": Failed, "description": "Too many requests wait, or this one took too long; try again."},
}


@dataclass(frozen=True)
class Served:
    trained: Trained | Exported
    turns: Turns
    limits: Limits
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(num_cores(), "mirada-reading"))

    async def beside(self, work: Callable[..., Found], *given: Any) -> Found:
        """work(*given) in a thread beside the one of the model: reading and decoding."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *given)

    def deadline(self) -> Callable[..., None]:
        """To be called now and then by long work: it ends it when nobody waits for it any more."""
        until = time.monotonic() + self.limits.seconds

        def check(*_: Any) -> None:
            if time.monotonic() > until:
                raise Refused(503, f"no answer was found within {self.limits.seconds:g} seconds.")

        return check

    def close(self) -> None:
        self.turns.close()
        self.pool.shutdown()


class OneOf:
    """In `Annotated[str, OneOf(names)]`: one of these words, and OpenAPI lists them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema(self.names)


def taking(model: Any) -> Callable[[Found], Found]:
    """The body `question` of an address is of a model that is made for this run, where no type checker can look."""

    def taken(address: Found) -> Found:
        address.__annotations__["question"] = model
        return address

    return taken


def with_png(refusals: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    """What an address answers that can also answer with a picture."""
    return {**refusals, 200: {"content": {PNG: {"schema": {"type": "string", "format": "binary"}}}}}


def require_one(number: int) -> None:
    if number != 1:
        raise Refused(409, f"a picture shows one input and {number} are given; send one, or ask for JSON.")


def asked_of_model(work: Callable[[], Found]) -> Found:
    """What the model cannot be asked is not the fault of the body."""
    try:
        return work()
    except Refused:
        raise
    except MiradaError as error:
        raise Refused(409, without_folders(error)) from error


def without_folders(error: MiradaError) -> str:
    """Where files of this machine lie is nothing to those who ask."""
    return re.sub(r"(?<![\w.:/])/(?:[^\s/:,]+/)+", "", str(error))


def png_of(item: Item) -> bytes:
    with TemporaryDirectory(prefix="mirada-serve-") as folder:
        return save_png(item, Path(folder) / "explained.png").read_bytes()
