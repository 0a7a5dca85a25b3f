"""Before a body is read: what cannot be answered, or not now, is refused at once; what takes too long is given up."""

from __future__ import annotations

import asyncio
from email.message import Message as Header

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mirada.serve.limits import Limits
from mirada.serve.metrics import Metrics
from mirada.serve.refusals import Refused, error_answer

ASKING = ("/predict", "/explain")
RETRY = {"Retry-After": "1"}


class Door:
    """A middleware of the addresses that ask the model something, which is done by POST."""

    def __init__(self, app: ASGIApp, *, limits: Limits, media_type: str, metrics: Metrics) -> None:
        self.app, self.limits, self.media_type, self.metrics = app, limits, media_type, metrics
        self.inside = 0
        metrics.counter("mirada_refused_total", "Requests that were refused because too many were waiting.")
        metrics.counter("mirada_given_up_total", "Requests that took longer than the limit.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in ASKING:
            await self.app(scope, receive, send)
            return
        refused = self._refusal(Headers(scope=scope))
        if refused is not None:
            await error_answer(refused.status, str(refused), refused.headers)(scope, receive, send)
            return
        self.inside += 1
        try:
            await self._in_time(scope, receive, send)
        finally:
            self.inside -= 1

    def _refusal(self, headers: Headers) -> Refused | None:
        if media_type_of(headers) != self.media_type:
            return Refused(415, f"this model is asked by {self.media_type}; /openapi.json says what to put there.")
        if self.inside >= self.limits.waiting:
            self.metrics.count("mirada_refused_total")
            return Refused(503, f"{self.inside} requests are waiting already; try again in a moment.", RETRY)
        return None

    async def _in_time(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await asyncio.wait_for(self.app(scope, receive, noted), self.limits.seconds)
        except asyncio.TimeoutError:
            if has_begun:
                raise
            self.metrics.count("mirada_given_up_total")
            sentence = f"no answer was found within {self.limits.seconds:g} seconds; ask for less, or try again."
            await error_answer(503, sentence, RETRY | {"Connection": "close"})(scope, receive, send)


def media_type_of(headers: Headers) -> str:
    header = Header()
    header["content-type"] = headers.get("content-type", "")
    return header.get_content_type() if headers.get("content-type") else ""
