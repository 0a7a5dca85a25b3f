"""The one exception type that users see."""


class MiradaError(Exception):
    """Something the user can put right.

    The message is one sentence: what was given, where, what was expected, what to do.
    Our own invariants are `assert`s, not this.
    """
