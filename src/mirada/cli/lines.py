"""Lines of text from files or from whoever writes into our stdin, in groups."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterable, Iterator

END = None


def groups(words: Iterable[str], most: int) -> Iterator[list[str]]:
    """Lines of the files in groups of `most`; of "-" (stdin) as they come, so that an answer never waits for more."""
    for word in words:
        yield from groups_of_stdin(most) if word == "-" else groups_of_file(word, most)


def groups_of_file(name: str, most: int) -> Iterator[list[str]]:
    from mirada.verbs.text.lines import lines_of

    lines = list(lines_of([name]))
    yield from (lines[start : start + most] for start in range(0, len(lines), most))


def groups_of_stdin(most: int) -> Iterator[list[str]]:
    """The first line is waited for; what has come with it by then goes along."""
    waiting: queue.Queue[str | None] = queue.Queue(maxsize=10 * most)
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    while (line := waiting.get()) is not END:
        group = [line]
        while len(group) < most and not waiting.empty():
            following = waiting.get()
            if following is END:
                yield group
                return
            group.append(following)
        yield group


def _read(waiting: queue.Queue[str | None]) -> None:
    for raw in sys.stdin.buffer:
        waiting.put(raw.decode("utf-8", errors="replace").rstrip("\r\n"))
    waiting.put(END)
