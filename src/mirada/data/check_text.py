"""An inspection as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from mirada.data.check import Inspection

SHOWN = 12


def render(inspection: Inspection) -> str:
    """Counts, sizes, what is broken, then problems and warnings."""
    found = inspection
    lines = [f"{found.source}: {found.num_images} images ({found.kind}), {found.task}"]
    if list(found.split_counts) != ["all"]:
        lines.append("split     " + ", ".join(f"{name} {count}" for name, count in found.split_counts.items()))
    if found.median:
        lines += _size_lines(found)
    if found.class_counts:
        lines += ["", f"{len(found.class_counts)} classes", *class_lines(found.class_counts)]
    for name, (low, mean, high) in found.target_ranges.items():
        lines.append(f"target    {name}: {low:g} .. {high:g}, mean {mean:g}")
    lines += _listed("cannot be read", [broken.reason for broken in found.broken])
    lines += _listed("identical images", [" = ".join(group) for group in found.duplicates])
    lines += _listed("nearly identical images", [" ~ ".join(pair) for pair in found.near_duplicates or ()])
    lines += sentences(found.problems, found.warnings, found.notes)
    if found.image_size and not found.problems:
        height, width = found.image_size
        lines += [
            "",
            f"ready to train at {width} x {height}, {found.channels} channel(s), {found.megabytes:g} MB in memory",
        ]
    return "\n".join(lines)


def _size_lines(found: Inspection) -> list[str]:
    extent = [f"{width} x {height}" for height, width in filter(None, (found.smallest, found.median, found.largest))]
    if found.num_sizes == 1:
        size = f"all {extent[0]}"
    else:
        variety = f"{found.num_sizes} sizes, {found.num_not_square} not square"
        size = f"{extent[0]} .. {extent[2]}, median {extent[1]} ({variety})"
    return [f"size      {size}", "mode      " + ", ".join(f"{mode} {count}" for mode, count in found.modes.items())]


def class_lines(class_counts: dict[str, dict[str, int]]) -> list[str]:
    """A bar per class; `class_counts` is class -> split ('all' when none is given) -> how many."""
    totals = {name: sum(counts.values()) for name, counts in class_counts.items()}
    width = min(30, max(map(len, totals)))
    most = max([*totals.values(), 1])
    lines = []
    for name, counts in list(class_counts.items())[:SHOWN]:
        bar = "█" * max(1 if totals[name] else 0, round(20 * totals[name] / most))
        by_split = "" if "all" in counts else "  (" + ", ".join(f"{k} {v}" for k, v in counts.items()) + ")"
        lines.append(f"  {name[:30]:<{width}}  {totals[name]:>6}  {bar}{by_split}")
    hidden = len(totals) - SHOWN
    return lines + ([f"  ... and {hidden} more classes"] if hidden > 0 else [])


def sentences(problems: Iterable[str], warnings: Iterable[str], notes: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for title, found in (("problem", problems), ("warning", warnings), ("note", notes)):
        said = [f"{title}: {sentence}" for sentence in found]
        lines += ["", *said] if said else []
    return lines


def _listed(title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    more = [f"  ... and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return ["", f"{title} ({len(items)})", *(f"  {item}" for item in items[:SHOWN]), *more]
