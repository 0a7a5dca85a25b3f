"""Answers of `mirada predict` on the terminal. Only the standard library: they are shown as soon as they are there."""

from __future__ import annotations

import sys
import unicodedata

SHOWN_REASONS = 5
SHOWN_CHARACTERS = 80  # of a cell: whole texts are for files


def show_answers(rows: list[dict], without: str) -> None:
    """One line per image, text or point; `without` an answer it says so. The shares of single classes are for files."""
    columns = [name for name in rows[0] if not name.startswith("p_") and name != "error"]
    lines = [[name.replace("_", " ") for name in columns]]
    for row in rows:
        cells = [row[name] for name in columns]
        if row["error"]:
            cells[1] = without
        lines.append([_one_line("" if cell is None else cell) for cell in cells])
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["─" * (sum(widths) + 3 * (len(widths) - 1))])
    print("\n".join(("   ".join(map(_padded, line, widths))).rstrip() for line in lines))


def tell_failures(rows: list[dict], things: str = "images") -> None:
    """Of some the reason, and how many there are."""
    failed = [row for row in rows if row["error"]]
    for row in failed[:SHOWN_REASONS]:
        print(f"mirada: {row['error']}", file=sys.stderr)
    if failed:
        fate = "could not be read" if things == "images" else "have no answer"
        print(f"mirada: {len(failed)} of {len(rows)} {things} {fate}.", file=sys.stderr)


def _one_line(cell: object) -> str:
    line = " ".join(str(cell)[: 2 * SHOWN_CHARACTERS].splitlines())
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "…"


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(text: str) -> int:
    """Columns of a terminal: letters of East Asia take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
