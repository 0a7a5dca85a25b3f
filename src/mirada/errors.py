"""The one exception type that users see, and the nearest name for what they mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MiradaError(Exception):
    """Something the user can put right.

    The message is one sentence: what was given, where, what was expected, what to do.
    Our own invariants are `assert`s, not this.
    """


def nearest(name: object, names: Iterable[str]) -> str:
    """' (did you mean …?)' if one of the names is close, else nothing."""
    lower = {other.lower(): other for other in names}
    close = difflib.get_close_matches(str(name).lower(), lower, n=1)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""
