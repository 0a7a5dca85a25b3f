"""How order or place enters attention: added to the tokens, added to the logits, or turning queries and keys."""

from mirada.core.position.added import Appended, Geographic, Learned, Sinusoidal, resize_grid, sinusoidal_table
from mirada.core.position.relative import BiasTable, Decomposed, GivenBias, Relative, Shaw
from mirada.core.position.rotary import Rotary, rotate

__all__ = [
    "Appended",
    "BiasTable",
    "Decomposed",
    "Geographic",
    "GivenBias",
    "Learned",
    "Relative",
    "Rotary",
    "Shaw",
    "Sinusoidal",
    "resize_grid",
    "rotate",
    "sinusoidal_table",
]
