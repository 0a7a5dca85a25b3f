"""A setting that holds inside a `with` block, in the thread or task that opened it and in no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Scoped(Generic[T]):
    """`with setting.of(value):` makes `setting.get()` the value; outside of every block it is the default."""

    def __init__(self, name: str, default: T) -> None:
        self.default = default
        self._value = ContextVar(name, default=default)
        self._num_open = 0
        self._lock = Lock()

    def get(self) -> T:
        # torch.compile cannot trace a ContextVar and would cut the model at every layer: none is read unless in use.
        return self.default if self._num_open == 0 else self._value.get()

    @contextmanager
    def of(self, value: T) -> Iterator[None]:
        with self._lock:
            self._num_open += 1
        token = self._value.set(value)
        try:
            yield
        finally:
            self._value.reset(token)
            with self._lock:
                self._num_open -= 1
