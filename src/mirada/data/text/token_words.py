"""What tokens look like to a reader, and which of them are parts of one word.

word_n = Σ_{m≤n} [token m begins a word] − 1

plain   niñ o       without marks
sharp   niñ# #o     with a # on both sides of every cut inside of a word
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import torch
from tokenizers import decoders
from torch import Tensor

from mirada.data.text.tokeniser_kinds import INSIDE, JOIN, LINE_END, SPACE
from mirada.errors import MiradaError

Style = Literal["plain", "sharp"]

VISIBLE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})
# Two neighbouring tokens are of one word if these agree where they meet.
ALONE, LETTERS, SIGNS, ANY = range(4)


@dataclass(frozen=True)
class Piece:
    """text: without the marks of its kind. begins, ends: what the token needs beside it to be of one word with it."""

    text: str
    begins: int
    ends: int


class TokenWords:
    """The pieces of a vocabulary; `special` tokens are never part of a word."""

    def __init__(self, vocabulary: Sequence[str], kind: str, special: frozenset[int]) -> None:
        read = READERS[kind]
        self.pieces = [
            Piece(token, ALONE, ALONE) if number in special else read(token) for number, token in enumerate(vocabulary)
        ]
        self._begins_T = torch.tensor([piece.begins for piece in self.pieces])
        self._ends_T = torch.tensor([piece.ends for piece in self.pieces])

    def words_of(self, token_BN: Tensor) -> Tensor:
        """(…, N) numbers of tokens ↦ (…, N) numbers of words, from 0 in every row."""
        begins_BN, ends_BN = self._begins_T[token_BN[..., 1:]], self._ends_T[token_BN[..., :-1]]
        agrees_BN = (begins_BN == ends_BN) | (begins_BN == ANY) | (ends_BN == ANY)
        is_new_BN = ~agrees_BN | (begins_BN == ALONE) | (ends_BN == ALONE)
        first_B1 = torch.zeros_like(token_BN[..., :1])
        return torch.cat([first_B1, is_new_BN.long()], -1).cumsum(-1)

    def show(self, tokens: Sequence[int], style: Style) -> list[str]:
        """The tokens as they are read; white space is made visible."""
        if style not in get_args(Style):
            raise MiradaError(f"tokens are shown in style {style!r}; expected one of {', '.join(get_args(Style))}.")
        texts = [self.pieces[token].text.translate(VISIBLE) or SPACE for token in tokens]
        if style == "plain" or not texts:
            return texts
        word = self.words_of(torch.tensor(tokens)).tolist()
        is_inside = [False, *(a == b for a, b in pairwise(word)), False]
        return ["#" * is_inside[n] + text + "#" * is_inside[n + 1] for n, text in enumerate(texts)]


def _spaced(text: str, space: str) -> Piece:
    """A token that begins a word has a space in front."""
    body = text.removeprefix(space)
    if not body:
        return Piece("", ALONE, ANY)
    return Piece(body, ALONE if body != text else _kind_of(body[0]), _kind_of(body[-1]))


def _kind_of(character: str) -> int:
    if character.isspace():
        return ALONE
    # The replacement character stands for a part of a letter that is not ASCII; the unknown one may be a letter.
    return LETTERS if unicodedata.category(character)[0] in "LMN" or character in "\ufffd⁇" else SIGNS


def _joined(token: str) -> Piece:
    if token.startswith(INSIDE) and token != INSIDE:
        return Piece(token.removeprefix(INSIDE), ANY, LETTERS)
    return Piece(token.strip(JOIN).replace(LINE_END, "\n") or token, ALONE, LETTERS)


_from_bytes = decoders.ByteLevel()

READERS: dict[str, Callable[[str], Piece]] = {
    "character": lambda token: Piece(token, _kind_of(token[0]), _kind_of(token[0])),
    "word": lambda token: Piece(_joined(token).text, ALONE, ALONE),
    "wordpiece": _joined,
    "bpe": lambda token: _spaced(token, SPACE),
    "unigram": lambda token: _spaced(token, SPACE),
    "byte": lambda token: _spaced(_from_bytes.decode([token]), " "),
}
