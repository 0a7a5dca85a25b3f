"""How order or place enters attention: added to the tokens, added to the logits, or turning queries and keys."""

from mirada.core.position.added import Appended, Learned, Sinusoidal, resize_grid, sinusoidal_table
from mirada.core.position.geographic import Geographic, Located, PaperWaves, Sphere, Waves
from mirada.core.position.relative import BiasTable, Decomposed, GivenBias, Relative, Shaw
from mirada.core.position.rotary import Rotary, rotate

__all__ = [
    "Appended",
    "BiasTable",
    "Decomposed",
    "Geographic",
    "GivenBias",
    "Learned",
    "Located",
    "PaperWaves",
    "Relative",
    "Rotary",
    "Shaw",
    "Sinusoidal",
    "Sphere",
    "Waves",
    "resize_grid",
    "rotate",
    "sinusoidal_table",
]
