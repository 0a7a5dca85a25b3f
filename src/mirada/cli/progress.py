"""What a run shows while it trains: a live bar on a terminal, a line now and then elsewhere, nothing if quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from mirada.config import Config
from mirada.systems import card
from mirada.train.folder import RunFolder
from mirada.train.loop import Progress as Step
from mirada.verbs.train import Watcher

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_EVALUATIONS = 1.0  # small models are evaluated many times a second
NOUNS = {"graph": "nodes", "text": "texts", "pairs": "pairs", "plots": "plots"}
NOUNS |= dict.fromkeys(("image", "pixels", "masks"), "images")


@contextmanager
def watcher(quiet: bool) -> Iterator[Watcher]:
    """The watcher that suits where the output goes."""
    if quiet:
        yield Watcher()
    elif sys.stdout.isatty():
        with Bars() as bars:
            yield bars
    else:
        yield Lines()


class Pace:
    """Images (or nodes) per second and time left, from the moment training (again) started."""

    def __init__(self, what: str = "images") -> None:
        self.what = what
        self.started = time.monotonic()
        self.first: Step | None = None

    def describe(self, step: Step) -> str:
        """'812 images/s, 1:05 left'; the first step only sets the clock."""
        if self.first is None:
            self.first, self.started = step, time.monotonic()
            return "starting"
        num_steps, elapsed = step.step - self.first.step, max(time.monotonic() - self.started, 1e-9)
        training = max(step.seconds - self.first.seconds, 1e-9)
        left = (step.steps - step.step) * elapsed / max(num_steps, 1)
        return f"{(step.samples - self.first.samples) / training:,.0f} {self.what}/s, {clock(left)} left"


class Lines(Watcher):
    """Plain lines: at evaluations, and about every ten seconds between them."""

    what = "images"

    def __init__(self) -> None:
        self.pace = Pace()
        self.spoken = time.monotonic()

    def says(self, sentence: str) -> None:
        self._print(sentence)

    def loads(self, done: int, total: int) -> None:
        if time.monotonic() - self.spoken > SECONDS_BETWEEN_LINES:
            self._print(f"read {done:,} of {total:,} images")

    def resolved(self, config: Config, folder: RunFolder) -> None:
        self.what = NOUNS[card(config.system.name).inputs]

    def starts(self, what: str, steps: int) -> None:
        self.pace = Pace(self.what)
        self._print(f"training {what} for {steps:,} steps")

    def advances(self, progress: Step) -> None:
        pace = self.pace.describe(progress)
        silence = time.monotonic() - self.spoken
        is_last = progress.step == progress.steps
        if is_last or silence > (SECONDS_BETWEEN_EVALUATIONS if progress.is_evaluated else SECONDS_BETWEEN_LINES):
            loss = f"train loss {progress.train_loss:.4f}"
            watched = f", {describe_evaluation(progress.evaluation)}" if progress.is_evaluated else ""
            self._print(f"step {progress.step:,}/{progress.steps:,}: {loss}{watched} ({pace})")

    def _print(self, line: str) -> None:
        print(line, flush=True)
        self.spoken = time.monotonic()


class Bars(Watcher):
    """One bar per stage, with rate, time left, training loss and the latest validation."""

    what = "images"

    def __init__(self) -> None:
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            TextColumn("{task.fields[words]}"),
            console=Console(),
            refresh_per_second=4,
        )
        self.loading: TaskID | None = None
        self.training: TaskID | None = None
        self.pace = Pace()

    def __enter__(self) -> Bars:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def says(self, sentence: str) -> None:
        self.bars.console.print(escape(sentence), highlight=False)

    def loads(self, done: int, total: int) -> None:
        if self.loading is None:
            self.loading = self.bars.add_task("reading images", total=total, words="")
        self.bars.update(self.loading, completed=done)

    def resolved(self, config: Config, folder: RunFolder) -> None:
        self.what = NOUNS[card(config.system.name).inputs]

    def starts(self, what: str, steps: int) -> None:
        self.pace = Pace(self.what)
        self.training = self.bars.add_task(escape(what), total=steps, words="starting")

    def advances(self, progress: Step) -> None:
        assert self.training is not None
        watched = f" · {describe_evaluation(progress.evaluation)}" if progress.evaluation else ""
        words = f"{self.pace.describe(progress)} · train loss {progress.train_loss:.3f}{watched}"
        self.bars.update(self.training, completed=progress.step, words=words)

    def ends(self, what: str, result: dict) -> None:
        if self.training is not None:
            self.bars.update(self.training, completed=self.bars.tasks[self.training].total)


def describe_evaluation(row: dict | None) -> str:
    """'val loss 0.3521, val accuracy 0.9012'; rows that a resumed run read from its file hold text."""
    watched = {name: value for name, value in (row or {}).items() if name.startswith("val_")}
    return ", ".join(f"{name.replace('_', ' ')} {float(value):.4f}" for name, value in watched.items())


def clock(seconds: float) -> str:
    """1:05, or 2:00:07."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
