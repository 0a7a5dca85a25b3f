"""What is odd about a text or a pair of them, each as a small yes or no."""

from __future__ import annotations

import re

MAX_RATIO = 4.0  # of the characters of one side to those of the other
SLACK = 20  # characters: short sentences may differ by more than the ratio
FEWEST_WORDS = 4  # fewer may well be the same in two languages
MOSTLY = 0.8

# U+FFFD stands for bytes that were lost; the others are control characters and those of private fonts.
ODD_CHARACTER = re.compile("[\ufffd\x00-\x08\x0b-\x1f\x7f-\x9f\ue000-\uf8ff]")
REPLACEMENT = "\ufffd"

# 'Ã±' for 'ñ': UTF-8 that was once read as Latin-1.
_MISREAD = re.compile("[\u00c2\u00c3][\u0080-\u00bf]")


def same_text(text: str) -> str:
    """What two texts have in common that differ only in case and spaces."""
    return " ".join(text.casefold().split())


def is_odd_length(source: str, target: str) -> bool:
    """One side is empty, or far longer than the other."""
    short, long = sorted((len(source), len(target)))
    return (short == 0) != (long == 0) or long > MAX_RATIO * short + SLACK


def is_untranslated(source: str, target: str) -> bool:
    """Most of the words of the target are those of the source."""
    words = re.findall(r"\w+", target.casefold())
    if len(words) < FEWEST_WORDS:
        return False
    known = set(re.findall(r"\w+", source.casefold()))
    return sum(word in known for word in words) >= MOSTLY * len(words)


def is_misread(text: str) -> bool:
    return _MISREAD.search(text) is not None
