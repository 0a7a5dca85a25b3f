"""What long measurements share: the data, an idle machine for timing, trainings in processes of their own, the log."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.loop import Progress
from mirada.train.stopping import Stopped
from mirada.verbs.stages import Watcher

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("MIRADA_TEST_DATA", ROOT.parent / "shared" / "data"))
CIFAR10 = DATA / "images" / "cifar10_20k_5k.npz"
PETS = DATA / "masks" / "pets_sub160.tar"
RESULTS = ROOT / "benchmarks" / "results"
RUNS = ROOT / "benchmarks" / "runs"  # run folders that measurements go on from; not in git
IDLE = 0.1


def require_idle() -> float:
    """End here if others use the machine: a step that is timed now would be too slow."""
    busy = busy_share()
    if busy > IDLE:
        sys.exit(f"The machine is {100 * busy:.0f} % busy: a step cannot be timed now. Wait until it is idle.")
    return busy


def busy_share() -> float:
    """Share of all cores' time that others use, over two seconds."""
    if not Path("/proc/stat").exists():
        return 0.0
    samples = []
    for _ in range(2):
        numbers = [int(number) for number in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        samples.append((sum(numbers), numbers[3] + numbers[4]))
        time.sleep(2)
    (total_before, idle_before), (total_after, idle_after) = samples
    return 1 - (idle_after - idle_before) / (total_after - total_before)


def run_all(script: str, jobs: list[dict], at_once: int) -> None:
    """`script --job JSON` for each job, in its own process with one thread, `at_once` of them at a time."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    waiting, running, num_failed = list(jobs), list[subprocess.Popen](), 0
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                command = [sys.executable, script, "--job", json.dumps(waiting.pop(0))]
                running.append(subprocess.Popen(command, env=environment))
            time.sleep(1)
            num_failed += sum(bool(process.poll()) for process in running)
            running = [process for process in running if process.poll() is None]
    finally:
        for process in running:
            process.kill()
    if num_failed:
        sys.exit(f"{num_failed} of {len(jobs)} jobs failed, as said above; start again for those that are missing.")


def told(main: Callable[[], None]) -> None:
    """Run a script: what went wrong, or that it was stopped, is one sentence."""
    try:
        main()
    except (MiradaError, Stopped) as reason:
        sys.exit(str(reason))


class Lines(Watcher):
    """What a training says, after its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def says(self, sentence: str) -> None:
        print(f"{self.name}: {sentence}", flush=True)

    def advances(self, progress: Progress) -> None:
        if progress.is_evaluated and progress.evaluation is not None:
            accuracy = progress.evaluation["val_accuracy"]
            left = progress.seconds / progress.step * (progress.steps - progress.step)
            self.says(f"{progress.step}/{progress.steps} val {accuracy:.4f}, {left:.0f} s left")


def unpack_pets(folder: Path) -> Path:
    """The tar as images and a table of breeds: the breed is the file name up to the last underscore."""
    with tarfile.open(PETS) as tar:
        tar.extractall(folder / "pets", filter="data")
    rows = []
    for split in ("train", "test"):
        images = sorted((folder / "pets").rglob(f"{split}/images/*.jpg"))
        rows += [{"path": str(p), "label": p.stem.rsplit("_", 1)[0], "split": split} for p in images]
    table = io.StringIO()
    writer = csv.DictWriter(table, ["path", "label", "split"])
    writer.writeheader()
    writer.writerows(rows)
    (folder / "pets.csv").write_text(table.getvalue())
    return folder / "pets.csv"


def read_lines(path: Path) -> list[dict]:
    """A file with one JSON object per line; none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def version() -> str:
    """Of the code that is measured: the commit, with a + where the sources differ from it; empty outside git."""

    def git(*words: str) -> str:
        command = ["git", "--no-optional-locks", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--", "src"))
    except OSError:
        return ""


VERSION = version()  # as it is when the measurement begins


def append_line(path: Path, content: dict) -> None:
    """One short line, with the version that it is of: two processes may append."""
    path.parent.mkdir(exist_ok=True)
    with open(path, "a") as file:
        file.write(json.dumps({**content, "version": VERSION}) + "\n")


def write_whole(path: Path, content: dict) -> None:
    """Never half of it; where it names its machine, each part gets the version that it is of."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    if "machine" in content:
        former = json.loads(path.read_text()) if path.exists() else {}
        content = {**content, "versions": versions_of(content, former)}
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)


def versions_of(content: dict, former: dict) -> dict[str, str]:
    """Of parts that are as they were, the version that they had."""
    known = former.get("versions", {})
    parts = [
        name for name, part in content.items() if isinstance(part, dict | list) and name not in ("machine", "versions")
    ]
    return {name: known.get(name, "") if content[name] == former.get(name) else VERSION for name in parts}
