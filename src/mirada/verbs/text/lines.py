"""Lines of text files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mirada.errors import MiradaError


def lines_of(files: Iterable[str]) -> Iterator[str]:
    """The lines of text files, without their ends."""
    for name in files:
        try:
            yield from Path(name).read_text("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise MiradaError(f"{name}: is not UTF-8 at byte {error.start:,}; convert it by iconv.") from error
        except OSError as error:
            raise MiradaError(f"{name}: cannot be read ({error.strerror}); give text files.") from error
