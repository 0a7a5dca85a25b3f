"""Weights from elsewhere and for elsewhere: layouts of other libraries, reading, adapting, writing.

A system's layouts are in a file of its name; the tuple here is all there is to registering them.
"""

from mirada.weights import vit
from mirada.weights.layout import KERNEL, SAME, TABLE, TOKENS, TRANSPOSED, Change, Entry, Layout

LAYOUTS: tuple[Layout, ...] = (*vit.LAYOUTS,)

__all__ = ["KERNEL", "LAYOUTS", "SAME", "TABLE", "TOKENS", "TRANSPOSED", "Change", "Entry", "Layout"]
