"""Start or resume a run as one of several processes: `one_of_several.py FOLDER SOURCE SETTING…`.

It leaves its number in FOLDER.<rank>. Where FOLDER.slow exists it takes its time, so that a signal lands inside
training, and the first process is told to stop after the step that is written in FOLDER.stop.
"""

import os
import signal
import sys
import time
from pathlib import Path

import typer

from mirada.cli.failures import told
from mirada.train.folder import RunFolder
from mirada.verbs import stages
from mirada.verbs.train import Watcher, resume, train

stages.build_report = lambda path: path  # reports have their own tests


class Slow(Watcher):
    def __init__(self, folder: str) -> None:
        stop = Path(f"{folder}.stop")
        self.is_slow, self.last = Path(f"{folder}.slow").exists(), int(stop.read_text()) if stop.exists() else 0

    def advances(self, progress) -> None:
        if self.is_slow:
            time.sleep(0.3)
        if progress.step == self.last and os.environ["RANK"] == "0":
            os.kill(os.getpid(), signal.SIGTERM)


def main(folder: str, source: str, *settings: str) -> None:
    Path(f"{folder}.{os.environ['RANK']}").write_text(str(os.getpid()))
    if RunFolder(Path(folder)).config.exists():
        resume(folder, watcher=Slow(folder))
    else:
        train(source, settings=settings, out=folder, watcher=Slow(folder))


if __name__ == "__main__":
    main.__name__ = "train"
    try:
        told(main)(*sys.argv[1:])
    except typer.Exit as end:
        sys.exit(end.exit_code)
