"""What we want of Mirada's speed, and what was found: `python benchmarks/goals.py`.

It measures nothing: every line is read from what the other benchmarks wrote into benchmarks/results/, and is first on
the page of measurements. What was not measured is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.jobs import RESULTS, read_lines
from benchmarks.page_speed import p50s, paired
from benchmarks.small_data_table import grouped
from benchmarks.time_to_accuracy import BEFORE, read_pairs
from mirada.compare.outcome import markdown

EQUAL = 1e-5  # float32 by another engine or by several processes is the same up to this
LINEAR = 1.1  # as an exponent
PLAIN_MEMORY = "mirada, usual memory"  # in the training step's table, no other library


@dataclass(frozen=True)
class Line:
    """One goal: in words, in numbers, and whether what was found reaches it."""

    goal: str
    wanted: str
    found: str
    is_reached: bool


def at_least(goal: str, wanted: float, ratio: list[float], opponent: str = "") -> Line:
    """Of a ratio's median; its quartiles are told beside it."""
    median, low, high = ratio
    found = f"{median:.2f}× ({low:.2f}–{high:.2f}){f', {opponent}' if opponent else ''}"
    return Line(goal, f"≥ {wanted:g}×", found, median >= wanted)


def at_most(goal: str, wanted: float, number: float, unit: str = "", digits: str = ".3g") -> Line:
    return Line(goal, f"≤ {wanted:g}{unit}", f"{number:{digits}}{unit}", number <= wanted)


# Each takes the folder of results.


def time_to_accuracy(results: Path) -> Iterable[Line]:
    trained = grouped(read_lines(results / "small_data.jsonl"))
    groups = {(group.dataset, group.contender, group.minutes): group for group in trained}
    for pair in read_pairs(results / "time_to_accuracy.json"):
        theirs = groups.get((pair.dataset, pair.contender, pair.minutes))
        ours = groups.get((pair.dataset, "preset", pair.preset_minutes))
        if pair.contender == BEFORE or theirs is None or ours is None:
            continue
        lengths = f"after {pair.minutes:g} minutes, after {pair.preset_minutes:g}"
        goal = f"{pair.dataset}: what `{pair.contender}` has {lengths}"
        found = f"{min(ours.accuracies):.1f} %, worst of {len(ours.jobs)} seeds"
        wanted = max(theirs.accuracies)
        yield Line(goal, f"≥ {wanted:.1f} %", found, min(ours.accuracies) >= wanted)


def training(results: Path) -> Iterable[Line]:
    found = read(results, "throughput")
    for shape, row in found.get("step", {}).get("shapes", {}).items():
        others = {name: ratio for name, ratio in row["faster_than"].items() if name != PLAIN_MEMORY}
        name, (median, low, high) = min(others.items(), key=lambda other: other[1][0])
        said = f"{median:.2f}× ({low:.2f}–{high:.2f}), {name}"
        yield Line(f"training step beside the fastest library, {shape}", "not slower", said, high >= 1)
    for preset, profile in found.get("profile", {}).items():
        yield at_most(
            f"share of an epoch outside forward, backward and optimiser, {preset}", 3, 100 * profile["outside"], " %"
        )


def precision(results: Path) -> Iterable[Line]:
    for label, row in read(results, "precision").get("models", {}).items():
        median, low, high = row["bfloat16_faster"] if row["chosen"] == "bfloat16" else (1.0, 1.0, 1.0)
        said = f"{row['chosen']}, {median:.2f}× ({low:.2f}–{high:.2f})"
        yield Line(f"`train.precision=auto` beside float32, {label}", "not slower", said, median >= 1)


def prediction(results: Path) -> Iterable[Line]:
    found = read(results, "engines")
    if small := found.get("small"):
        equal = [name for name, difference in small["difference"].items() if difference <= EQUAL]
        yield best("one image, small ViT, float32 equal to 1e-5, beside timm", 1.4, small, equal)
    if large := found.get("large"):
        yield best("one image, ViT-B, int8, beside timm", 1.8, large, ["onnx int8"])
    if files := found.get("files"):
        names = list(files["faster_than_timm"])
        told = f"{files['num_files']:,} JPEG files of {files['size']} px"
        yield best(f"{told}, float32, beside timm", 1.3, files, [name for name in names if name.endswith("float32")])
        yield best(f"{told}, int8, beside timm", 1.8, files, [name for name in names if name.endswith("int8")])
    if start := found.get("start"):
        exported = start["used"]["mirada predict, exported folder"]
        yield at_most("first answer of an exported run, CPU time", 0.6, exported["cpu_seconds"], " s")
        yield at_most("first answer of an exported run, memory", 150, exported["peak_mb"], " MB")
        yield at_most("`import mirada`, CPU time", 0.15, start["used"]["import mirada"]["cpu_seconds"], " s")


def best(goal: str, wanted: float, found: dict, names: list[str]) -> Line:
    """The fastest of these engines."""
    name = max(names, key=lambda name: found["faster_than_timm"][name][0])
    return at_least(goal, wanted, found["faster_than_timm"][name], name)


def rounding(results: Path) -> Iterable[Line]:
    for model in read_lines(results / "rounding.jsonl"):
        goal = f"points lost by int8, {model['dataset']}, {model['contender']}, {model['num_parameters']:,} parameters"
        yield at_most(goal, 0.5, 100 * (model["float32"] - model["int8"]), digits=".2f")


def busy(results: Path) -> Iterable[Line]:
    if found := read(results, "busy"):
        alone, beside = (p50s(found["predict"]["mirada"][count]) for count in "02")
        yield at_most("one image beside two busy neighbours, of its time alone", 1.6, paired(alone, beside)[0], "×")
        ours, torchs = (p50s(found["train"][policy]["2"]) for policy in ("mirada", "torch"))
        yield at_least("a training step beside them, against torch's threads", 1.5, paired(ours, torchs))


def decoding(results: Path) -> Iterable[Line]:
    for label, row in read(results, "decoding").get("rows", {}).items():
        faster = row["int8_faster_than"]
        if label.startswith("writing"):
            yield at_least(
                f"{label}, int8, beside transformers", 3 if label.endswith("8") else 2.5, faster["transformers"]
            )
            yield at_least(f"{label}, int8, beside CTranslate2 int8", 1, faster["CTranslate2 int8"])
            same = row["same_tokens"]["transformers"]
            yield Line(f"{label}, float32: texts as transformers writes them", "all", f"{100 * same:.0f} %", same == 1)
        else:
            yield at_least(f"{label}, int8, beside transformers", 2, faster["transformers"])
            loops = {name: ratio for name, ratio in faster.items() if name.endswith("without a cache")}
            if loops:
                name, ratio = min(loops.items(), key=lambda loop: loop[1][0])
                yield at_least(f"{label}, int8, beside the fastest loop without a cache", 8, ratio, name)


def windows(results: Path) -> Iterable[Line]:
    if not (found := read(results, "core").get("window", {}).get("backward")):
        return
    row = next(row for row in found["rows"] if row["length"] == 8192)
    title = "window of ±128 among 8,192, forward and backward, beside"
    yield at_least(f"{title} dense attention", 10, row["faster_than"]["SDPA, full"])
    yield at_least(f"{title} causal attention", 6, row["faster_than"]["SDPA, causal"])
    longest = f"up to {found['rows'][-1]['length']:,} tokens, exponent of"
    yield at_most(f"window, {longest} time", 1.2, found["time_exponent"]["window"])
    yield at_most(f"window, {longest} memory", LINEAR, found["memory_exponent"])


def several_processes(results: Path) -> Iterable[Line]:
    found = read(results, "scale_out")
    for part in ("train", "large"):
        if part in found:
            what = f"two processes beside one, a step of {found[part]['batch']} images"
            yield at_least(what, 1.7, found[part]["ratio"])
            yield at_most(f"{what}: difference of their losses", EQUAL, found[part]["difference"], digits=".0e")


GOALS: tuple[tuple[Callable[[Path], Iterable[Line]], str], ...] = (
    (time_to_accuracy, "small_data_steps"),
    (training, "throughput"),
    (precision, "precision"),
    (prediction, "engines"),
    (rounding, ""),
    (busy, "busy"),
    (decoding, "decoding"),
    (windows, "core"),
    (several_processes, "scale_out"),
)


def goals_text(results: Path) -> str:
    """The first section of the page; nothing before there are results."""
    rows = [
        {
            "goal": line.goal,
            "wanted": line.wanted,
            "found": line.found,
            "reached": "yes" if line.is_reached else "**no**",
            "on": processor,
        }
        for lines, file in GOALS
        for processor in [processor_of(results, file)]
        for line in lines(results)
    ]
    if not rows:
        return ""
    num_reached = sum(row["reached"] == "yes" for row in rows)
    return (
        f"## Goals of speed\n\n`python benchmarks/goals.py`, from the measurements below: {num_reached} of {len(rows)} "
        "are reached. A ratio is the median of pairs that were timed in turns, with their quartiles; it is judged by "
        "its median, but not slower is also what ties.\n\n"
    ) + markdown(rows)


def processor_of(results: Path, file: str) -> str:
    """That of the results, or all that its parts were measured on."""
    found = read(results, file) if file else {}
    parts = [found] if "machine" in found else found.values()
    return ", ".join(dict.fromkeys(part["machine"]["processor"] for part in parts if "machine" in part))


def read(results: Path, name: str) -> dict:
    path = results / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


if __name__ == "__main__":
    print(goals_text(RESULTS))
