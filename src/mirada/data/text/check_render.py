"""An inspection of texts as text for a terminal."""

from __future__ import annotations

from mirada.data.check_text import class_lines, sentences
from mirada.data.text.check import TextInspection

_WHAT = {"plain": "lines of text", "pairs": "pairs of texts", "labelled": "labelled texts"}


def render_text(found: TextInspection) -> str:
    """Counts and lengths, then problems and warnings."""
    lines = [f"{found.source}: {found.num_rows:,} {_WHAT[found.kind]}"]
    if list(found.split_counts) != ["all"]:
        lines.append("split     " + ", ".join(f"{name} {count:,}" for name, count in found.split_counts.items()))
    width = max(9, *map(len, found.lengths))
    for name, side in found.lengths.items():
        size = (
            f"{side.num_words:,} words, {side.num_characters:,} characters ({side.num_different_characters} different)"
        )
        lengths = f"words per row: median {side.median}, 95 % up to {side.most}, longest {side.longest:,}"
        lines.append(f"{name:<{width}} {size}; {lengths}")
    lines.append(f"{'empty':<{width}} {found.num_empty:,} " + ("lines" if found.kind == "plain" else "rows, left out"))
    lines.append(f"{'copies':<{width}} {found.num_copies:,} rows")
    if found.class_counts:
        lines += ["", f"{len(found.class_counts)} classes", *class_lines(found.class_counts)]
    if found.examples:
        lines += ["", *(f"{what}: {', '.join(names)}" for what, names in found.examples.items())]
    lines += sentences(found.problems, found.warnings, found.notes)
    return "\n".join(lines if found.problems else [*lines, "", "ready to train"])
