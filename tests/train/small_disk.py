"""A real file system of a few kilobytes, in a mount namespace of its own: nothing stays behind when its holder ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path


class SmallDisk:
    """`path` is the folder that is the disk; other processes reach it through the holder's view of the files."""

    def __init__(self, folder: Path, kilobytes: int) -> None:
        self.mounted = folder / "mounted"
        self.mounted.mkdir()
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        self.holder = subprocess.Popen(
            ["unshare", "--mount", *rights, "sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            self._say(f"mount -t tmpfs -o size={kilobytes}k tmpfs '{self.mounted}'")
        except OSError:
            self.close()
            raise
        self.path = folder / "disk"
        self.path.symlink_to(f"/proc/{self.holder.pid}/root{self.mounted}", target_is_directory=True)

    def resize(self, kilobytes: int) -> None:
        self._say(f"mount -o remount,size={kilobytes}k '{self.mounted}'")

    def lock(self) -> None:
        self._say(f"mount -o remount,ro '{self.mounted}'")

    def close(self) -> None:
        self.holder.communicate()

    def _say(self, command: str) -> None:
        """Raises OSError with what the shell answered, if it failed."""
        assert self.holder.stdin is not None and self.holder.stdout is not None
        self.holder.stdin.write(f"{command}; echo ended $?\n")
        self.holder.stdin.flush()
        answer = ""
        for line in self.holder.stdout:
            if line == "ended 0\n":
                return
            answer += line
            if line.startswith("ended "):
                break
        raise OSError(f"{command}: {answer}")


def fill(filler: Path, spare: int = 0) -> None:
    """So many bytes (whole pages) are left on the disk of this file; removing it makes space again."""
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
        file.truncate(file.tell() - spare)
