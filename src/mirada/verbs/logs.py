"""Everything Mirada logs goes into the log.txt of the run, with time and level."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import why_unwritable


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Within this context INFO and above are appended to the file."""
    logger = logging.getLogger("mirada")
    try:
        handler = LogFile(path, encoding="utf-8")
    except OSError as error:
        raise MiradaError(why_unwritable(path, error)) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    former = logger.level
    logger.setLevel(min(former or logging.INFO, logging.INFO))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(former)
        handler.close()
    if handler.failure is not None:
        logger.warning("%s: its last lines could not be written (%s).", path, handler.failure.strerror)


class LogFile(logging.FileHandler):
    """Lines that a full disk refuses wait in the buffer; what ends the run is a file that matters, not its log."""

    failure: OSError | None = None

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            self.failure = error
