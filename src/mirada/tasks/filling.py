"""Filling in hidden words: a model of masked tokens says what stands where. Shape letters: N tokens, T vocabulary."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError

BLANK = re.compile(r"\[MASK\]|_{3,}|<mask>")


@dataclass(frozen=True)
class Filled:
    """One way to fill a blank, its probability, and the text with it."""

    token: str
    probability: float
    text: str


class Filler:
    """A trained masked model with its tokeniser."""

    def __init__(self, model: nn.Module, tokeniser: Tokeniser, device: torch.device) -> None:
        self.model, self.tokeniser, self.device = model.eval(), tokeniser, device

    def fill(self, text: str, k: int = 5) -> list[list[Filled]]:
        """For every blank ([MASK], <mask> or ___) of the text, the `k` likeliest tokens, or all of fewer, best first.

        The blanks are filled independently; the text of an answer has the best token in the others.
        """
        tokens, blanks = self._read(text)
        logits_NT = self.logits(tokens)
        probability_NT = (logits_NT - logits_NT.logsumexp(-1, keepdim=True)).exp()
        num_best = min(k, len(self.tokeniser.ordinary))
        best = [probability_NT[place].topk(num_best) for place in blanks]
        chosen = {place: int(top.indices[0]) for place, top in zip(blanks, best, strict=True)}
        return [
            [
                Filled(
                    self.tokeniser.tokens([token])[0],
                    probability,
                    self._text(tokens, chosen | {place: token}),
                )
                for token, probability in zip(top.indices.tolist(), top.values.tolist(), strict=True)
            ]
            for place, top in zip(blanks, best, strict=True)
        ]

    @torch.inference_mode()
    def logits(self, tokens: list[int]) -> Tensor:
        """(N, T) of the ordinary tokens; special ones, and vectors that no token uses, are never an answer."""
        logits_NT = self.model(torch.tensor([tokens], device=self.device))[0].float().cpu()
        is_ordinary_T = torch.zeros(len(self.tokeniser), dtype=torch.bool)
        is_ordinary_T[self.tokeniser.ordinary] = True
        return logits_NT[:, : len(self.tokeniser)].masked_fill(~is_ordinary_T, -torch.inf)

    def _read(self, text: str) -> tuple[list[int], list[int]]:
        """Tokens of the text between start and end, and where its blanks are."""
        pieces = BLANK.split(text)
        if len(pieces) == 1:
            raise MiradaError(f"{text!r}: has no blank to fill in; write [MASK] or ___ where a word is missing.")
        tokens = [self.tokeniser.start, *self.tokeniser.encode_blanks(pieces), self.tokeniser.end]
        return tokens, [place for place, token in enumerate(tokens) if token == self.tokeniser.mask]

    def _text(self, tokens: list[int], chosen: dict[int, int]) -> str:
        return self.tokeniser.decode([chosen.get(place, token) for place, token in enumerate(tokens)][1:-1])
