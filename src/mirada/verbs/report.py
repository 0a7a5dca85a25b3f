"""`mirada report`: the report of a finished run, written again."""

from __future__ import annotations

from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.folder import RunFolder, open_run


def report(run: str | Path | RunFolder) -> Path:
    """Write report.html of a finished run; returns its path."""
    folder = run if isinstance(run, RunFolder) else open_run(run)
    if not folder.is_finished:
        raise MiradaError(f"{folder.path}: has no result yet; finish it with `mirada resume {folder.path}`.")
    from mirada.report import build_report

    build_report(folder.path)
    return folder.report
