"""Weights from elsewhere and for elsewhere: layouts of other libraries, reading, adapting, writing."""

from mirada.weights.adapt import Adapted, load_adapted
from mirada.weights.checkpoint import Checkpoint
from mirada.weights.inflate import inflated
from mirada.weights.layout import KERNEL, SAME, TABLE, TOKENS, TRANSPOSED, Change, Entry, Layout
from mirada.weights.read import read_checkpoint
from mirada.weights.registered import LAYOUTS, layout_for, layout_of

__all__ = [
    "KERNEL",
    "LAYOUTS",
    "SAME",
    "TABLE",
    "TOKENS",
    "TRANSPOSED",
    "Adapted",
    "Change",
    "Checkpoint",
    "Entry",
    "Layout",
    "inflated",
    "layout_for",
    "layout_of",
    "load_adapted",
    "read_checkpoint",
]
