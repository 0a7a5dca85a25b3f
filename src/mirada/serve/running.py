"""An app on a port: bound before anything is promised, and after SIGTERM or Ctrl-C done when all are answered."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from types import FrameType

import torch
import uvicorn
from fastapi import FastAPI

from mirada.errors import MiradaError
from mirada.machine.threads import num_cores
from mirada.serve.request_log import log_to_stderr

SECONDS_KEPT = 15  # an idle connection


def run_server(
    app: FastAPI,
    host: str,
    port: int,
    *,
    seconds_to_finish: int,
    quiet: bool = False,
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """Serves until SIGTERM or Ctrl-C, then answers what is under way, for at most `seconds_to_finish`.

    port           0 for any that is free
    quiet          no line per request on stderr
    on_listening   called with the address as soon as requests are taken
    """
    listening = bound(host, port)
    torch.set_num_threads(min(torch.get_num_threads(), num_cores()))
    if not quiet:
        log_to_stderr()
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=SECONDS_KEPT,
        timeout_graceful_shutdown=seconds_to_finish,
    )
    try:
        _Server(config, on_listening, address_of(listening, host)).run(sockets=[listening])
    finally:
        listening.close()


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address, or one sentence why there is none."""
    name = host.strip("[]")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise MiradaError(f"{host}:{port}: is no address of this machine ({_reason(error)}); give another.") from error
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(place)
    except OSError as error:
        found.close()
        raise MiradaError(
            f"{host}:{port}: cannot be listened on ({_reason(error)}); give another with --port."
        ) from error
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """What to type into a browser."""
    name = host.strip("[]")
    return f"http://{f'[{name}]' if ':' in name else name}:{listening.getsockname()[1]}"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_listening: Callable[[str], None] | None, address: str) -> None:
        super().__init__(config)
        self._on_listening, self._address = on_listening, address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._on_listening is not None:
            self._on_listening(self._address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As uvicorn does, but the signal is not raised again afterwards: to be asked to stop is no failure."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
