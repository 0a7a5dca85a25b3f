"""`mirada compare`: any systems and settings on the same split with the same budget, several seeds each.

Every training is a run folder of its own below the folder of the comparison. What is finished is never done again, so
the same call continues a comparison that was stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mirada.compare.contest import Contest, ContestFolder, require_contest
from mirada.compare.outcome import Row, cells, figure, markdown, numbers, outcome
from mirada.config.load import LENGTHS, parse_settings
from mirada.errors import MiradaError
from mirada.machine.processes import require_one
from mirada.train.files import read_json, write_atomically, write_json, write_text
from mirada.train.folder import csv_text, new_run
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.contest_jobs import carry_out_beside, carry_out_here, unfinished
from mirada.verbs.contest_steps import measure_steps
from mirada.verbs.stages import Watcher
from mirada.verbs.train import DEFAULT_MINUTES


@dataclass(frozen=True)
class Comparison:
    """The folder, and a row for every entrant that is through."""

    folder: Path
    rows: list[Row]

    @property
    def table(self) -> str:
        """Markdown."""
        return markdown(cells(self.rows))


def compare(
    entrants: Iterable[str] = (),
    data: str | Path | None = None,
    *,
    seeds: int = 3,
    minutes: float | None = None,
    settings: Iterable[str] = (),
    preset: str | None = None,
    out: str | Path | None = None,
    at_once: int = 1,
    watcher: Watcher | None = None,
    stop: StopRequest | None = None,
) -> Comparison:
    """Train every entrant ("vit", "cnn:mini", "linear: vit:micro system.arguments.stem=linear") with every seed.

    `minutes` become steps once, before the first training, for every entrant by its own speed. `settings` hold for all.
    Without entrants, `out` is the folder of an earlier comparison, which is continued. `at_once` trainings run at a
    time, in processes that share the cores.
    """
    require_one("mirada.compare")
    if at_once < 1:
        raise MiradaError(f"--at-once {at_once}: must be 1 or more.")
    watcher = watcher or Watcher()
    folder = open_contest(
        entrants, data, seeds=seeds, minutes=minutes, settings=settings, preset=preset, out=out, watcher=watcher
    )
    contest = folder.read()
    jobs = unfinished(folder, contest)
    rows: list[Row] = []
    try:
        through = (
            carry_out_here(jobs, watcher, stop) if at_once == 1 else carry_out_beside(jobs, at_once, watcher, stop)
        )
        for _ in through:
            rows = write_outcome(folder)
    except Stopped as stopped:
        words = f"Stopped. Nothing is lost: `mirada compare --out {folder.path}` goes on from here."
        raise Stopped(words, stopped.exit_code) from None
    return Comparison(folder.path, rows or write_outcome(folder))


def open_contest(
    entrants: Iterable[str] = (),
    data: str | Path | None = None,
    *,
    seeds: int = 3,
    minutes: float | None = None,
    settings: Iterable[str] = (),
    preset: str | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> ContestFolder:
    """The folder of a comparison with the budget of every entrant in steps; nothing is trained yet."""
    contest = _asked(list(entrants), data, seeds, minutes, tuple(settings), preset, out)
    return _opened(contest, out, watcher or Watcher())


def _asked(
    entrants: list[str],
    data: str | Path | None,
    seeds: int,
    minutes: float | None,
    settings: tuple[str, ...],
    preset: str | None,
    out: str | Path | None,
) -> Contest:
    """The comparison that was described, or else the one that is in `out`."""
    if not entrants:
        if out is None or not ContestFolder(Path(out)).definition.exists():
            raise MiradaError("nothing to compare: name two systems or more, or with --out an earlier comparison.")
        return ContestFolder(Path(out)).read()
    if data is None:
        raise MiradaError("no data is named; say --data and a folder, a table or a sample set, such as --data digits.")
    lengths = sorted(set(LENGTHS) & set(parse_settings(settings).get("train", {})))
    if lengths and (minutes is not None or lengths == ["minutes"]):
        raise MiradaError(f"train.{lengths[0]}: the budget of all is --minutes, or else train.steps or train.epochs.")
    minutes = DEFAULT_MINUTES if minutes is None and not lengths else minutes
    contest = Contest(str(data), tuple(entrants), seeds, settings, preset, minutes)
    require_contest(contest)
    return contest


def _opened(contest: Contest, out: str | Path | None, watcher: Watcher) -> ContestFolder:
    """The folder of this comparison; a new one is made only when all entrants were found possible."""
    folder = None if out is None else ContestFolder(Path(out))
    if folder is not None and folder.definition.exists():
        if folder.read() != contest:
            raise MiradaError(
                f"{out}: holds another comparison; give another folder, or `mirada compare --out {out}` without "
                "systems to continue that one."
            )
        if folder.steps.exists():
            return folder
    elif folder is not None and folder.path.exists() and any(folder.path.iterdir()):
        raise MiradaError(f"{out}: already exists and is not empty; give another folder.")
    steps = measure_steps(contest, watcher)
    folder = folder or ContestFolder(new_run(Path("runs"), f"compare-{Path(contest.source).stem}").path)
    folder.write(contest)
    write_json(folder.steps, steps)
    return folder


def write_outcome(folder: ContestFolder) -> list[Row]:
    """Table and figure of what is there; again after every training."""
    rows = outcome(folder, folder.read(), read_json(folder.steps))
    if rows:
        write_text(folder.path / "table.md", markdown(cells(rows)))
        write_text(folder.path / "table.csv", csv_text(numbers(rows)))
        drawing = figure(rows)
        write_atomically(folder.path / "comparison.png", lambda partial: partial.write_bytes(drawing.light))
    return rows
