"""Lines of text from files or from whoever writes into our stdin, in groups."""

from __future__ import annotations

import codecs
import io
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from mirada.errors import MiradaError

END = None
BLOCK = 1 << 16  # bytes that are read at once

Waiting = queue.Queue[str | MiradaError | None]  # lines, perhaps why there are no more, and END


def groups(words: Iterable[str], most: int) -> Iterator[list[tuple[str, str]]]:
    """Lines of the files in groups of `most`, each after where it stands ("letter.txt: line 3").

    Those of "-" (stdin) as they come, so that an answer never waits for more.
    """
    for word in words:
        name, number = "stdin" if word == "-" else word, 0
        for lines in groups_of_stdin(most) if word == "-" else groups_of_file(word, most):
            yield [(f"{name}: line {number + i}", line) for i, line in enumerate(lines, start=1)]
            number += len(lines)


def groups_of_file(name: str, most: int) -> Iterator[list[str]]:
    from mirada.verbs.text.lines import lines_of

    lines = lines_of(name)
    yield from (lines[start : start + most] for start in range(0, len(lines), most))


def lines_of_stdin() -> list[str]:
    return [line for group in groups_of_stdin(1000) for line in group]


def groups_of_stdin(most: int) -> Iterator[list[str]]:
    """The first line is waited for; what has come with it by then goes along."""
    waiting: Waiting = queue.Queue(maxsize=10 * most)
    threading.Thread(target=_read, args=(_reader(), waiting), daemon=True).start()
    came: str | MiradaError | None = ""
    while came is not END:
        came = waiting.get()
        group: list[str] = []
        while isinstance(came, str):
            group.append(came)
            if len(group) == most or waiting.empty():
                break
            came = waiting.get()
        if group:
            yield group
        if isinstance(came, MiradaError):  # after the answers to what came before
            raise came


def _reader() -> Callable[[], bytes]:
    """Reads what is there, and waits if there is nothing.

    From the descriptor where there is one: a thread that waits in sys.stdin holds its lock, on which Python aborts when
    it ends.
    """
    if sys.stdin is None:
        raise MiradaError("stdin: is closed; pipe text into this command, or give files.")
    try:
        return partial(os.read, sys.stdin.fileno(), BLOCK)
    except io.UnsupportedOperation:
        return partial(sys.stdin.buffer.read1, BLOCK)  # type: ignore[union-attr]


def _read(read: Callable[[], bytes], waiting: Waiting) -> None:
    try:
        for number, line in enumerate(_lines(read), start=1):
            waiting.put(_decoded(line, number))
    except OSError as error:
        said = f"stdin: cannot be read ({error.strerror}); pipe text into this command, or give files."
        waiting.put(MiradaError(said))
    except MiradaError as error:
        waiting.put(error)
    finally:
        waiting.put(END)


def _lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    begun = b""
    while block := read():
        *lines, begun = (begun + block).split(b"\n")
        yield from lines
    if begun:
        yield begun


def _decoded(line: bytes, number: int) -> str:
    try:
        return (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise MiradaError(
            f"stdin: line {number} is not UTF-8 (0x{error.object[error.start]:02X}); if it is Latin-1, convert it by "
            "iconv -f latin1 -t utf-8."
        ) from None
