"""Everything Mirada logs goes into the log.txt of the run, with time and level."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirada.errors import MiradaError


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Within this context INFO and above are appended to the file."""
    logger = logging.getLogger("mirada")
    try:
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise MiradaError(f"{path}: cannot be written ({error.strerror}); choose another folder.") from error
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
