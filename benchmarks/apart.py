"""Candidates in processes of their own, each asked in its turn.

Threads of one library go on spinning for a while after their work (OpenMP's, ONNX Runtime's), and take the cores from
the next library's: in one process, CTranslate2 and torch each take up to twice as long beside the other as alone.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

PAUSE = 0.3  # seconds: longer than idle threads spin


@contextmanager
def apart(make: Callable[..., dict[str, Callable[[], Any]]], *args: Any) -> Iterator[dict[str, Callable[[], Any]]]:
    """Candidates by name, as `make(*args)`, a function of a module, makes them there; each says what it finds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs, make, args), daemon=True)
    process.start()
    theirs.close()
    try:
        yield {name: partial(_ask, ours, name) for name in ours.recv()}
    finally:
        ours.close()  # it ends when nobody asks any more
        process.join(10)
        process.kill()


def _ask(connection: Connection, name: str) -> Any:
    connection.send(name)
    return connection.recv()


def _answer(connection: Connection, make: Callable[..., dict[str, Callable[[], Any]]], args: tuple) -> None:
    candidates = make(*args)
    connection.send(list(candidates))
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        connection.send(candidates[name]())
