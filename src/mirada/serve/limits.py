"""How much one request, and all of them together, may ask for."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mirada.data.decode import MAX_PIXELS
from mirada.errors import MiradaError


@dataclass(frozen=True)
class Limits:
    """What is over a limit is refused with a sentence; nothing is cut in silence."""

    body: int = 32 * 2**20  # bytes of a request
    pixels: int = 40_000_000  # of an image, known before it is decoded
    images: int = 32  # of a request
    texts: int = 64
    characters: int = 20_000  # of a text
    tokens: int = 2_048  # of a text, and to be written
    points: int = 1_000
    nodes: int = 1_000
    explained: int = 4  # inputs of a request: an explanation costs up to hundreds of answers
    seconds: float = 60.0  # of a request, waiting included
    waiting: int = 128  # requests at once, those that are being answered included

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise MiradaError(f"the limit of {name} is {value}, expected more than 0.")
        if self.pixels > MAX_PIXELS:
            raise MiradaError(f"the limit of pixels is {self.pixels:,}, expected at most {MAX_PIXELS:,}.")
