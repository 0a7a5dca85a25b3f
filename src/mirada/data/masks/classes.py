"""Which codes of a mask are which classes: as given, or as found.

Found codes are classes in their order. 0 is the background, and the only other code the foreground; beside others, 255
is a border that is ignored, as in Pascal VOC, unless it has a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mirada.errors import MiradaError

IGNORED = 255  # the number of pixels that count for nothing
BACKGROUND = "background"
MAX_FOUND = 64  # codes of masks whose classes nobody named
Given = Mapping[str | int, str] | Mapping[str, str] | Sequence[str]
Code = str | int


def is_background(name: str) -> bool:
    return name.casefold() == BACKGROUND


def judged_of(names: Sequence[str]) -> tuple[int, ...]:
    """The classes that count in a mean over classes: all but the background, unless there is nothing else."""
    found = tuple(number for number, name in enumerate(names) if not is_background(name))
    return found or tuple(range(len(names)))


@dataclass(frozen=True)
class MaskClasses:
    """names[i] is what pixels with codes[i] show; those with a code in `ignored` count for nothing."""

    codes: tuple[int, ...]
    names: tuple[str, ...]
    ignored: tuple[int, ...] = ()
    are_colours: bool = False

    def numbered(self, codes_HW: np.ndarray, where: str) -> np.ndarray:
        """uint8 numbers of classes, IGNORED where it counts for nothing."""
        known = np.array([*self.codes, *self.ignored], dtype=np.int64)
        numbers = np.array([*range(len(self.codes)), *[IGNORED] * len(self.ignored)], dtype=np.uint8)
        order = known.argsort()
        position_HW = np.searchsorted(known[order], codes_HW).clip(max=len(known) - 1)
        is_known_HW = known[order][position_HW] == codes_HW
        if not is_known_HW.all():
            unknown = code_text(int(codes_HW[~is_known_HW][0]), self.are_colours)
            listed = ", ".join(code_text(code, self.are_colours) for code in self.codes)
            raise MiradaError(
                f"{where}: {(~is_known_HW).sum():,} pixels have {unknown}, which is no class ({listed}); "
                "correct the mask, add it to data.classes, or to data.ignore."
            )
        return numbers[order][position_HW]

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict) -> MaskClasses:
        return cls(tuple(saved["codes"]), tuple(saved["names"]), tuple(saved["ignored"]), saved["are_colours"])


def code_text(code: int, is_colour: bool) -> str:
    return f"#{code:06x}" if is_colour else str(code)


def code_of(text: str | int, are_colours: bool, key: str) -> int:
    """'#ff0000' or '255,0,0' of colours, '3' of numbers; `key` is the setting that has it."""
    words = str(text).strip()
    try:
        if not are_colours:
            return int(words)
        if "," in words:
            red, green, blue = (int(part) for part in words.split(","))
            return (red << 16) | (green << 8) | blue
        if re.fullmatch("#?[0-9a-fA-F]{6}", words):
            return int(words.removeprefix("#"), 16)
    except ValueError:
        pass
    wanted = "a colour such as '#ff0000'" if are_colours else "a whole number such as 3"
    raise MiradaError(f"{key}: {words!r} names no code of these masks, expected {wanted}.")


def names_colours(given: Given | None, ignore: Sequence[Code] | None) -> bool:
    """Codes are given as colours: so are meant greys, too."""
    codes = [*(given if isinstance(given, Mapping) else ()), *(ignore or ())]
    return any(str(code).strip().startswith("#") or "," in str(code) for code in codes)


def resolve_classes(
    pixels_of: Mapping[int, int],
    are_colours: bool,
    given: Given | None,
    ignore: Sequence[Code] | None,
    source: str,
) -> tuple[MaskClasses, tuple[str, ...]]:
    """The classes of masks in which each code has so many pixels, and what was decided."""
    left_out = tuple(code_of(code, are_colours, "data.ignore") for code in ignore or ())
    found = [code for code in sorted(pixels_of) if code not in left_out]
    if pixels_of and not found:
        listed = ", ".join(code_text(code, are_colours) for code in sorted(pixels_of))
        raise MiradaError(
            f"{source}: all pixels of the masks count for nothing, as data.ignore has {listed}; expected at least two "
            "classes, so leave some of these out of data.ignore."
        )
    if isinstance(given, Mapping):
        named = {code_of(key, are_colours, "data.classes"): name for key, name in given.items()}
        codes = {code: name for code, name in named.items() if code not in left_out}
        _require_different(list(codes.values()), source)
        return MaskClasses(tuple(codes), tuple(codes.values()), left_out, are_colours), ()
    notes: tuple[str, ...] = ()
    one_has_no_name = given is None or len(given) == len(found) - 1
    if one_has_no_name and ignore is None and not are_colours and 255 in found and set(found) - {0, 255}:
        left_out, found = (255,), [code for code in found if code != 255]
        notes = (
            "255 beside other numbers is taken as a border that counts for nothing (data.ignore=[] if it counts).",
        )
    if len(found) > MAX_FOUND:
        kind = "colours" if are_colours else "different numbers"
        raise MiradaError(
            f"{source}: the masks have {len(found):,} {kind}, expected one for each class; masks saved as JPEG have "
            "blurred ones (save PNG), and data.classes says which count."
        )
    if len(found) < 2:
        raise MiradaError(
            f"{source}: the masks show {len(found)} class ({', '.join(code_text(c, are_colours) for c in found)}), "
            "expected at least two, one of which may be the background."
        )
    if given is not None and len(given) != len(found):
        listed = ", ".join(code_text(code, are_colours) for code in found)
        raise MiradaError(f"data.classes names {len(given)} classes, but the masks have {len(found)}: {listed}.")
    if given is not None:
        _require_different(given, source)
    names = tuple(given) if given is not None else tuple(_name(code, found, are_colours) for code in found)
    return MaskClasses(tuple(found), names, left_out, are_colours), notes


def _require_different(names: Sequence[str], source: str) -> None:
    if len(names) >= IGNORED:
        raise MiradaError(f"{source}: {len(names)} classes are named, expected at most {IGNORED - 1}.")
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise MiradaError(f"{source}: two classes are called {twice!r}; give each a name of its own.")


def _name(code: int, found: Sequence[int], are_colours: bool) -> str:
    if code == 0:
        return BACKGROUND
    return "foreground" if len(found) == 2 and found[0] == 0 else code_text(code, are_colours)
