"""How much sooner is an accuracy reached? Our presets beside a tutorial's recipe and beside a published small ViT.

    python benchmarks/time_to_accuracy.py --calibrate   time the steps of all, in turns, on an idle machine
    python benchmarks/time_to_accuracy.py               everything that is missing: some 130 minutes on two cores
    python benchmarks/time_to_accuracy.py --table       only print what there is

tutorial      The ViT of benchmarks/small_data.py as most tutorials have it trains for 12 minutes, the preset for 3, on
              CIFAR-10, Fashion-MNIST and Pets at 64 px; 2 seeds.
cct           CCT-2/3×2 (283,722 parameters), by its published recipe, trains for 20 epochs on CIFAR-10, the preset for
              a fifth of that time; 2 seeds.
preset-adamw  The preset as it was before Muon, for the same 3 minutes; 2 seeds.

The presets were chosen on 5 minutes of CIFAR-10 and of Pets (small_data.py); Fashion-MNIST they had not seen. Jobs and
results are those of small_data.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import small_data
from benchmarks.jobs import RESULTS, read_lines, run_all, told, write_whole
from benchmarks.small_data_table import Group, grouped
from mirada.train.files import read_json

SLOW, FAST = 12.0, 3.0  # minutes
EPOCHS, SHARE = 20, 5  # of CCT, and the part of its time that the preset gets
SEEDS = (0, 1)
BEFORE = "preset-adamw"
IMAGES = 19_000  # of CIFAR-10's 20,000, without those that choose the weights
BATCH = 128  # of CCT
TIMED = {
    "cifar10": ["preset", BEFORE, "tutorial", "cct", "cnn-micro", "cnn-micro-adamw"],
    "pets": ["preset", BEFORE, "tutorial"],
    "fashion": ["preset", BEFORE, "tutorial"],
}
PAIRS_FILE = RESULTS / "time_to_accuracy.json"
FILE = small_data.RESULTS_FILE.name


@dataclass(frozen=True)
class Pair:
    """A contender, and the preset that has a part of its minutes."""

    dataset: str
    contender: str
    minutes: float
    preset_minutes: float


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=2, help="trainings at a time, one thread each")
    parser.add_argument("--calibrate", action="store_true", help="time the steps and stop")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    args = parser.parse_args(words)
    if not args.table:
        # Minutes become steps on one machine, all contenders of a data set in turns, so that their ratio holds.
        there = {dataset: contenders for dataset, contenders in TIMED.items() if small_data.is_there(dataset)}
        for dataset, contenders in there.items():
            (small_data.time_steps if args.calibrate else small_data.calibrate)(dataset, contenders)
        write_pairs(list(there))
        if not args.calibrate:
            run_all(small_data.__file__, [key for key in keys() if not small_data.is_done(key)], args.at_once)
    print(table(read_pairs(), small_data.read_jobs()))


def write_pairs(datasets: list[str]) -> None:
    pairs = [Pair(dataset, "tutorial", SLOW, FAST) for dataset in datasets]
    if "cifar10" in datasets:
        key = small_data.steps_key(small_data.key_of("cifar10", "cct", 0, 0))
        minutes = round(EPOCHS * (IMAGES // BATCH) * small_data.calibrated()[key]["seconds_per_step"] / 60, 2)
        pairs.append(Pair("cifar10", "cct", minutes, round(minutes / SHARE, 2)))
    pairs += [Pair(dataset, BEFORE, FAST, FAST) for dataset in datasets]
    write_whole(PAIRS_FILE, {"pairs": [vars(pair) for pair in pairs]})


def read_pairs(file: Path = PAIRS_FILE) -> list[Pair]:
    return [Pair(**pair) for pair in read_json(file)["pairs"]] if file.exists() else []


def keys() -> list[dict]:
    """Each once, one data set after the other; the opponents before what the preset was."""
    found = []
    for seed in SEEDS:
        for pair in read_pairs():
            found.append(small_data.key_of(pair.dataset, pair.contender, pair.minutes, seed))
            found.append(small_data.key_of(pair.dataset, "preset", pair.preset_minutes, seed))
    each_once = [key for number, key in enumerate(found) if key not in found[:number]]
    order = list(TIMED)
    return sorted(each_once, key=lambda key: (key["contender"] == BEFORE, key["seed"], order.index(key["dataset"])))


def table(pairs: list[Pair], jobs: list[dict]) -> str:
    groups = {(group.dataset, group.contender, group.minutes): group for group in grouped(jobs)}
    lines = ["| data | contender | its minutes | its accuracy | minutes of the preset | its accuracy | as good |"]
    lines.append("| --- " * 7 + "|")
    for pair in pairs:
        slow = groups.get((pair.dataset, pair.contender, pair.minutes))
        fast = groups.get((pair.dataset, "preset", pair.preset_minutes))
        if slow is not None and fast is not None:
            theirs, ours = [f"{pair.minutes:.3g}", slow.accuracy], [f"{pair.preset_minutes:.3g}", fast.accuracy]
            cells = [pair.dataset, pair.contender, *theirs, *ours, verdict(slow, fast)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def time_to_accuracy_text(results: Path) -> str:
    """The section of the page; nothing before there are results."""
    rows = table(read_pairs(results / PAIRS_FILE.name), read_lines(results / FILE))
    if rows.count("\n") < 2:
        return ""
    adamw = f", `{BEFORE}` the preset by AdamW at the rate that it had before Muon" if f"| {BEFORE} |" in rows else ""
    return (
        "## Time to the same accuracy\n\n`python benchmarks/time_to_accuracy.py`: test accuracy in %, mean over the "
        "seeds and 95 % interval of the mean, of a contender and of our preset in less or the same time. `cct` is "
        f"CCT-2/3×2 by its published recipe for {EPOCHS} epochs, in our loop and with crops, turns, colours and "
        f"erasing in place of AutoAugment{adamw}. "
        "Steps were timed once, in turns, on the idle machine.\n\n"
        f"{rows}\n"
    )


def compared_groups(results: Path) -> dict[str, list[Group]]:
    """By data set, those of every pair that is complete: what the pictures show."""
    groups = {(group.dataset, group.contender, group.minutes): group for group in grouped(read_lines(results / FILE))}
    found: dict[str, list[Group]] = {}
    for pair in read_pairs(results / PAIRS_FILE.name):
        both = [(pair.dataset, pair.contender, pair.minutes), (pair.dataset, "preset", pair.preset_minutes)]
        if all(key in groups for key in both):
            shown = found.setdefault(pair.dataset, [])
            shown += [groups[key] for key in both if groups[key] not in shown]
    return found


def verdict(slow: Group, fast: Group) -> str:
    """Whether every seed of the preset is at least as good as the best seed of the other."""
    if min(fast.accuracies) >= max(slow.accuracies):
        return "yes, every seed" if len(fast.jobs) > 1 else "yes, one seed"
    return "on average" if sum(fast.accuracies) / len(fast.jobs) >= sum(slow.accuracies) / len(slow.jobs) else "no"


if __name__ == "__main__":
    told(main)
