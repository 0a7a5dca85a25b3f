"""Ctrl-C and SIGTERM end training after the current step, with everything saved; a second Ctrl-C ends it at once.

Processes of torchrun hear of one Ctrl-C twice, from the terminal and from torchrun, which ends what takes too long.
"""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType, TracebackType

from mirada.machine.processes import started


class Stopped(Exception):
    """Training was asked to stop and did, with all its state saved."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StopRequest:
    """Within this context SIGINT and SIGTERM only set a flag. Outside the main thread signals stay as they are."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._former: dict[int, object] = {}

    @property
    def is_requested(self) -> bool:
        return self.signal is not None

    def request(self, number: int = signal.SIGINT) -> None:
        self.signal = number

    def exception(self, folder: Path) -> Stopped:
        assert self.signal is not None
        return Stopped(f"Stopped. Nothing is lost: `mirada resume {folder}` goes on from here.", 128 + self.signal)

    def __enter__(self) -> StopRequest:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._former[number] = signal.signal(number, self._on_signal)
            except ValueError:  # not the main thread
                break
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._former.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested and number == signal.SIGINT and started().count == 1:
            raise KeyboardInterrupt
        self.request(number)
