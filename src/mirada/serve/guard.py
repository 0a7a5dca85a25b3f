"""What stands between the network and the addresses of a server.

In this order: a Host header that is not ours (DNS rebinding) gets 400, a missing or wrong token 401, a request from the
page of another site 403, a body over the limit 413. Every answer carries the headers that keep browsers from guessing,
framing and telling, and leaves one line in the log and its time in the metrics. What fails unexpectedly becomes 500 in
one sentence; where it failed is in the log.
"""

from __future__ import annotations

import hmac
import time
import uuid
from collections.abc import Callable, Sequence
from urllib.parse import parse_qs, urlsplit

from fastapi import FastAPI, HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mirada.errors import MiradaError
from mirada.serve.metrics import SECONDS, Metrics
from mirada.serve.refusals import Refused, answer_failures, error_answer
from mirada.serve.request_log import log_failure, log_request

LOOPBACK = ("localhost", "127.0.0.1", "::1")
READING = ("GET", "HEAD")
PAGES = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; frame-ancestors 'self'; object-src 'none'; "
    "base-uri 'none'"
)
NO_PAGES = "default-src 'none'; frame-ancestors 'none'"


def is_loopback(host: str) -> bool:
    """Whether a server bound to this host is reached from this machine only."""
    return host.strip("[]").lower() in LOOPBACK or host.startswith("127.")


def require_token(host: str, token: str | None) -> None:
    """A server that others can reach wants a token, and one that headers can carry."""
    if token is None and not is_loopback(host):
        raise MiradaError(
            f"{host}: others can reach this address, so requests need a token; set MIRADA_TOKEN or give --token."
        )
    if token is not None and not all("!" <= letter <= "~" for letter in token):
        raise MiradaError("the token has spaces or letters beyond ASCII, which headers cannot carry; give another.")


def add_guard(
    app: FastAPI,
    *,
    token: str | None,
    max_body: int,
    hosts: list[str] | None,
    page_policy: bool,
    is_open: Callable[[str], bool] = lambda path: False,
) -> Metrics:
    """Guards all addresses of an app; its metrics are those in `app.state.metrics`, or new ones.

    token         what requests must carry as `Authorization: Bearer …`; reading may also say `?token=`
    max_body      bytes of a request
    hosts         names that the Host header may have (with any port); None for all
    page_policy   whether browsers may show what comes from here as pages, with scripts and styles of here only
    is_open       of a path, whether it may be read without the token: scripts of a page cannot carry one
    """
    metrics: Metrics = getattr(app.state, "metrics", None) or Metrics()
    metrics.counter("mirada_requests_total", "Requests that were answered.")
    metrics.histogram("mirada_request_seconds", "Seconds until a request was answered.", SECONDS)
    app.state.metrics = metrics
    answer_failures(app)
    policy = PAGES if page_policy else NO_PAGES
    app.add_middleware(
        Guard, token=token, max_body=max_body, hosts=hosts, policy=policy, metrics=metrics, is_open=is_open
    )
    return metrics


class Guard:
    """The middleware of `add_guard`; plain ASGI, so that answers may stream."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None,
        max_body: int,
        hosts: list[str] | None,
        policy: str,
        metrics: Metrics,
        is_open: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self.is_open = is_open
        self.app, self.token, self.max_body, self.policy, self.metrics = app, token, max_body, policy, metrics
        self.hosts = None if hosts is None else {host.strip("[]").lower() for host in hosts}
        self.in_progress = 0
        metrics.gauge("mirada_requests_in_progress", "Requests that are being answered.", lambda: self.in_progress)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await _Exchange(self, scope, receive, send).run()
        elif scope["type"] == "websocket":  # nothing here speaks it, and it would pass by the checks
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self.app(scope, receive, send)

    def refusal(self, scope: Scope) -> Refused | None:
        """Why a request goes no further, from its headers alone."""
        headers, method = Headers(scope=scope), scope["method"]
        if self.hosts is not None:
            given = headers.getlist("host")
            if len(given) != 1 or _name_of(given[0]) not in self.hosts:
                return Refused(400, "the Host header names another server; ask by the address that was printed.")
        if self.token is not None and not self._has_token(headers, scope):
            return Refused(
                401, "send the token of this server as `Authorization: Bearer …`.", {"WWW-Authenticate": "Bearer"}
            )
        if method not in READING and _is_foreign(headers):
            return Refused(403, "requests from pages of other sites are refused.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.max_body:
            return _too_large(self.max_body)
        return None

    def _has_token(self, headers: Headers, scope: Scope) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        found = [given.strip().encode("latin-1")] if scheme.lower() == "bearer" else []
        if scope["method"] in READING and self.is_open(scope["path"].removeprefix(scope.get("root_path", ""))):
            return True
        if scope["method"] in READING:  # images and frames of a page cannot send headers
            found += [one.encode() for one in parse_qs(scope["query_string"].decode("latin-1")).get("token", [])[:1]]
        assert self.token is not None
        return any(hmac.compare_digest(one, self.token.encode()) for one in found)


class _Exchange:
    """One request and its answer."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard, self.scope, self._receive, self._send = guard, scope, receive, send
        self.id = uuid.uuid4().hex[:12]
        self.status, self.received, self.sent = 0, 0, 0

    async def run(self) -> None:
        start = time.perf_counter()
        self.scope.setdefault("state", {})["request_id"] = self.id
        self.guard.in_progress += 1
        try:
            refused = self.guard.refusal(self.scope)
            if refused is None:
                await self._answered()
            else:
                await self._refuse(refused)
        finally:
            self.guard.in_progress -= 1
            self._note(time.perf_counter() - start)

    async def _answered(self) -> None:
        try:
            await self.guard.app(self.scope, self.receive, self.send)
        except Exception as error:
            log_failure(self.id, error)
            if self.status:  # half of the answer is gone: the server breaks the connection off
                raise
            sentence = f"the server failed on this request, which is its own fault; its log has more under {self.id}."
            await error_answer(500, sentence)(self.scope, self.receive, self.send)

    async def _refuse(self, refused: Refused) -> None:
        given, headers = Headers(scope=self.scope), refused.headers
        if given.get("content-length", "0") != "0" or "transfer-encoding" in given:
            headers |= {"Connection": "close"}  # the body is not read, so the next request cannot follow it
        await error_answer(refused.status, str(refused), headers)(self.scope, self.receive, self.send)

    async def receive(self) -> Message:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        if self.received > self.guard.max_body:
            refused = _too_large(self.guard.max_body)
            # FastAPI's own class: what else fails while it reads a body becomes 400.
            raise HTTPException(refused.status, str(refused), {"Connection": "close"})
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.id
            headers.setdefault("Content-Security-Policy", self.guard.policy)
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Referrer-Policy", "no-referrer")
        self.sent += len(message.get("body", b""))
        await self._send(message)

    def _note(self, seconds: float) -> None:
        scope, status = self.scope, self.status or 499  # nobody waited for the answer
        # The pattern of the address, not the address: a crawler must not be able to fill the memory with labels.
        path = getattr(scope.get("route"), "path", None) or _known(scope)
        method = scope["method"] if scope["method"] in (*READING, "POST", "PUT", "PATCH", "DELETE") else "other"
        self.guard.metrics.count("mirada_requests_total", method=method, path=path, status=str(status))
        self.guard.metrics.observe("mirada_request_seconds", seconds, path=path)
        log_request(
            request=self.id,
            method=scope["method"],
            path=scope["path"],
            status=status,
            ms=1000 * seconds,
            received=self.received,
            sent=self.sent,
        )


def _known(scope: Scope) -> str:
    """The address of a request that was refused on its way to it."""
    paths = (getattr(route, "path", None) for route in getattr(scope.get("app"), "routes", ()))
    return scope["path"] if scope["path"] in paths else "other"


def _too_large(max_body: int) -> Refused:
    return Refused(413, f"the body is over the limit of {max_body:,} bytes; send less at a time.")


def _name_of(host: str) -> str | None:
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return None
    return name.lower() if name else None


def _is_foreign(headers: Headers) -> bool:
    """Whether a browser sends this on behalf of a page that is not from here."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and _place(origin) != _place(f"//{headers.get('host', '')}")


def _place(address: str) -> Sequence[str]:
    try:
        return (urlsplit(address).netloc.lower(),)
    except ValueError:
        return ()
