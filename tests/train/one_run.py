"""Start or resume a run: `python one_run.py FOLDER SETTING…`, slowed down so that kills land inside training too."""

import sys
import time
from pathlib import Path

from mirada.train.folder import RunFolder
from mirada.verbs import stages
from mirada.verbs.train import Watcher, resume, train

stages.build_report = lambda path: path  # reports have their own tests


class Slow(Watcher):
    def advances(self, progress) -> None:
        time.sleep(0.3)


if __name__ == "__main__":
    folder, *settings = sys.argv[1:]
    if RunFolder(Path(folder)).config.exists():
        resume(folder, watcher=Slow())
    else:
        train("digits", settings=settings, out=folder, watcher=Slow())
