"""`mirada fill`: what could stand where words are missing."""

from __future__ import annotations

from pathlib import Path

from mirada.tasks.filling import Filled
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained
from mirada.verbs.text.trained import text_run


def fill(run: str | Path | RunFolder | Trained, text: str, *, k: int = 5, device: str = "auto") -> list[list[Filled]]:
    """For every blank ([MASK], <mask> or ___) of the text its `k` likeliest fillings, best first."""
    return text_run(run, device).filler.fill(text, k)
