"""The command line, while somebody else fills the disk: `python crowded_disk.py STEP FILLER train digits …`."""

import sys
from pathlib import Path

from mirada.cli import main, progress
from tests.train.small_disk import fill

if __name__ == "__main__":
    step, filler = int(sys.argv[1]), Path(sys.argv[2])
    say = progress.Lines.advances

    def say_and_fill(self, reached) -> None:
        say(self, reached)
        if reached.step == step:
            fill(filler)

    progress.Lines.advances = say_and_fill
    sys.argv = ["mirada", *sys.argv[3:]]
    main()
