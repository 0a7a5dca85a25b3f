"""Models whose next token depends on the whole source and the whole text so far, and all that they can say."""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

PAD, START, END = 0, 1, 2
Logits = Callable[[tuple[int, ...], tuple[int, ...]], Sequence[float]]


class Rows:
    """A state that remembers in words what was read: one (source, text so far) per row."""

    def __init__(self, sources: list[tuple[int, ...]]) -> None:
        self.sources, self.texts = sources, [()] * len(sources)

    def reorder(self, index_B: Tensor) -> None:
        self.sources = [self.sources[row] for row in index_B.tolist()]
        self.texts = [self.texts[row] for row in index_B.tolist()]


class Tabled:
    """logits = f(source without padding, text so far without its start); counts its steps and its rows."""

    pad = PAD

    def __init__(self, logits: Logits, dtype: torch.dtype = torch.float64) -> None:
        self.logits, self.dtype = logits, dtype
        self.rows_per_step: list[int] = []

    def begin(self, source_BM: Tensor) -> Rows:
        return Rows([tuple(token for token in row if token != PAD) for row in source_BM.tolist()])

    def next_logits(self, read_BN: Tensor, state: Rows, num_last: int | None = None) -> Tensor:
        assert len(read_BN) == len(state.texts)
        self.rows_per_step.append(len(read_BN))
        steps = []
        for column in read_BN.T.tolist():
            state.texts = [(*text, token) for text, token in zip(state.texts, column, strict=True)]
            rows = zip(state.sources, state.texts, strict=True)
            steps.append([list(self.logits(source, text[1:])) for source, text in rows])
        return torch.tensor(steps, dtype=self.dtype).transpose(0, 1)[:, -(num_last or len(steps)) :]


def scattered(num_tokens: int, sharpness: float = 1.0, seed: int = 0) -> Logits:
    """Logits that have nothing to do with each other, always the same for the same source and text."""

    def logits(source: tuple[int, ...], text: tuple[int, ...]) -> list[float]:
        numbers = random.Random(repr((seed, source, text)))
        return [numbers.gauss(0, sharpness) for _ in range(num_tokens)]

    return logits


def log_probability(logits: Logits, source: Sequence[int], tokens: Sequence[int]) -> float:
    """Σ log p(token | those before it): what teacher forcing gives."""
    total = 0.0
    for n, token in enumerate(tokens):
        total += (
            torch.tensor(logits(tuple(source), tuple(tokens[:n])), dtype=torch.float64).log_softmax(0)[token].item()
        )
    return total


def all_texts(words: Sequence[int], max_length: int) -> Iterator[tuple[int, ...]]:
    """All texts of these words, without their end, that have at most `max_length` tokens with it."""
    for length in range(max_length):
        yield from itertools.product(words, repeat=length)


def padded(sources: Sequence[Sequence[int]], width: int | None = None) -> Tensor:
    width = max(map(len, sources)) if width is None else width
    return torch.tensor([[*source, *[PAD] * (width - len(source))] for source in sources])
