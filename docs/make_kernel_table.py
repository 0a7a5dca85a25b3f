"""Writes docs/kernels.md: which kernel computes which combination of parts, and why others do not.

    python docs/make_kernel_table.py

The combinations are those over which the tests compare every kernel with the reference.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "kernels.md"
sys.path.insert(0, str(ROOT))

from tests.core import crossproduct  # noqa: E402
from tests.core.onnx_cases import NOT_EXPRESSED, count  # noqa: E402

from mirada.core import kernels, line, plane  # noqa: E402
from mirada.core.kernels.call import Call  # noqa: E402

AXES = {
    "score": tuple(crossproduct.SCORES),
    "neighbours": tuple(crossproduct.NEIGHBOURS),
    "position": tuple(crossproduct.POSITIONS),
    "mixing": tuple(crossproduct.MIXES),
    "padding": tuple(crossproduct.PADDINGS),
}
PLAIN = {"score": "scaled dot", "neighbours": "full", "position": "none", "mixing": "none", "padding": "no padding"}
NEEDS_A_PLANE = {"decomposed"}

Names = tuple[str, ...]


def exists(names: Names) -> bool:
    """Decomposed positions live on a plane; on a line the tests put another position in their place."""
    _, neighbours, position, *_ = names
    return position not in NEEDS_A_PLANE or neighbours in crossproduct.ON_A_PLANE


def combinations() -> list[Names]:
    return [names for names in product(*AXES.values()) if exists(names)]


def call_of(**changed: str) -> Call:
    return crossproduct.make_call(*{**PLAIN, **changed}.values())


def chosen(call: Call) -> str:
    return kernels.choose(call).name


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = list(head)
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def score_by_neighbours() -> Iterator[str]:
    def row(neighbours: str) -> Iterator[str]:
        yield neighbours
        yield from (chosen(call_of(score=score, neighbours=neighbours)) for score in AXES["score"])

    yield from table(("neighbours \\ score", *AXES["score"]), map(row, AXES["neighbours"]))


def position_by_neighbours() -> Iterator[str]:
    positions = [position for position in AXES["position"] if position != "none"]

    def row(neighbours: str) -> Iterator[str]:
        yield neighbours
        for position in positions:
            names = {**PLAIN, "neighbours": neighbours, "position": position}
            yield chosen(call_of(**names)) if exists(tuple(names.values())) else "–"

    yield from table(("neighbours \\ position", *positions), map(row, AXES["neighbours"]))


def other_places(neighbours: str) -> dict[str, Call]:
    """The same combination where tokens are not simply all tokens of a line or plane."""
    call = call_of(neighbours=neighbours)
    on_plane = neighbours in crossproduct.ON_A_PLANE
    height, width = crossproduct.PLANE
    num_tokens = height * width
    with_extra = plane(height - 1, width, num_extra=width)
    calls = {
        "a memory of other tokens": replace(call, keys=plane(height, width) if on_plane else line(num_tokens)),
        "a plane with extra tokens": replace(call, queries=with_extra, keys=with_extra),
    }
    if not on_plane:
        last = replace(call, q_BHNK=call.q_BHNK[..., -1:, :], queries=line(1, start=num_tokens - 1))
        calls["one new token, the rest cached"] = last
    return calls


def places_by_neighbours() -> Iterator[str]:
    columns = list(other_places(PLAIN["neighbours"]))
    reasons: dict[str, list[str]] = {column: [] for column in columns}

    def row(neighbours: str) -> Iterator[str]:
        yield neighbours
        usual = kernels.choose(call_of(neighbours=neighbours))
        calls = other_places(neighbours)
        for column in columns:
            yield chosen(calls[column]) if column in calls else "–"
            if column in calls and (reason := usual.refuses(calls[column])):
                reasons[column].append(f"{usual.name}: {reason}")

    yield from table(("neighbours \\ tokens", *columns), map(row, AXES["neighbours"]))
    yield ""
    yield "Why not the kernel of the first table:"
    yield ""
    for column, found in reasons.items():
        yield from (f"- {column}, {reason}" for reason in dict.fromkeys(found))


def refusals(kernel: kernels.Kernel, names: list[Names]) -> Iterator[str]:
    """What a kernel serves, then every combination it refuses, gathered by reason."""
    by_reason: dict[str | None, list[Names]] = {}
    for combination in names:
        call = crossproduct.make_call(*combination)
        by_reason.setdefault(kernel.refuses(call), []).append(combination)
    served = by_reason.pop(None, [])
    yield f"### {kernel.name}: {len(served)} of {len(names)}"
    yield ""
    if not by_reason:
        yield "Serves everything."
        return
    rows = [(reason or "", str(len(found)), described(found)) for reason, found in by_reason.items()]
    yield from table(("does not serve", "combinations", "because"), ([what, n, why] for why, n, what in rows))


def described(found: list[Names]) -> str:
    """The combinations as one choice per axis: exact, or an error here."""
    choices = [{names[axis] for names in found} for axis in range(len(AXES))]
    everything = [names for names in product(*choices) if exists(names)]
    assert sorted(everything) == sorted(found), "these combinations are not a product of choices"
    parts = []
    for (axis, members), choice in zip(AXES.items(), choices, strict=True):
        left_out = [member for member in members if member not in choice]
        if left_out and len(left_out) < len(choice):
            parts.append(f"{axis}: all but {in_a_row(left_out)}")
        elif left_out:
            parts.append(f"{axis}: {in_a_row(member for member in members if member in choice)}")
    return "; ".join(parts)


def in_a_row(members: Iterable[str]) -> str:
    return ", ".join(f"*{member}*" for member in members)


def check_the_footnotes(names: list[Names]) -> None:
    for score, neighbours, position, mixing, _ in names:
        of_padding = {chosen(crossproduct.make_call(score, neighbours, position, mixing, p)) for p in AXES["padding"]}
        assert len(of_padding) == 1, "padding changes the kernel"
        assert mixing == "none" or of_padding == {"reference"}, "mixing does not always run on the reference"


def page() -> str:
    names = combinations()
    check_the_footnotes(names)
    docstring = kernels.__doc__ or ""
    lines = [
        "# Kernels",
        "",
        "<!-- Written by docs/make_kernel_table.py: do not edit. -->",
        "",
        *docstring.strip().splitlines(),
        "",
        "All equal the reference, output and gradient, in float32 and float64, on every combination below that they",
        "serve (`tests/core/test_kernels.py`). `mirada.core.kernels.choose` takes the first that serves a call.",
        "",
        "## Chosen by score and neighbours",
        "",
        *score_by_neighbours(),
        "",
        "Padding changes nothing here. Re-attention mixes the weights of all heads: it always runs on the reference.",
        "Bands run block by block where they are narrow against the length, else as full attention under a mask.",
        "",
        "## Chosen with a position on the logits (scaled dot)",
        "",
        *position_by_neighbours(),
        "",
        "Rotary and added positions act before the kernel and change nothing. Decomposed positions need a plane.",
        "",
        "## Chosen where tokens are not simply all tokens of a line or plane (scaled dot)",
        "",
        *places_by_neighbours(),
        "",
        "## What each kernel does not serve, and why",
        "",
        f"{len(names)} combinations: {', '.join(f'{len(members)} {axis}' for axis, members in AXES.items())},",
        "less those of decomposed positions on a line.",
        "",
    ]
    for kernel in kernels.TABLE:
        lines += [*refusals(kernel, names), ""]
    lines += ["## Golden cases of ONNX", ""]
    lines += [f"- {count(module)[-1]}" for module in ("attention", "rotaryembedding")]
    lines += [f"- not expressed: {name}: {reason}" for name, reason in NOT_EXPRESSED.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
