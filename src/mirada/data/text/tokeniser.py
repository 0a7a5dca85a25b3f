"""Text to numbers of tokens and back: decode(encode(text)) = text, for text in the normal form of its kind.

tokeniser = Tokeniser.train(texts, "bpe", 8000)
tokeniser.tokens(tokeniser.encode("el niño"), "sharp")        el niñ# #o
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import tokenizers
import torch
from torch import Tensor

from mirada.data.text.blanks import encode_blanks
from mirada.data.text.encoding import sound
from mirada.data.text.hugging_face_tokeniser import hugging_face_files, read_hugging_face
from mirada.data.text.token_words import Style, TokenWords
from mirada.data.text.tokeniser_files import read_saved, saved_text
from mirada.data.text.tokeniser_kinds import SPECIAL, Kind, train
from mirada.errors import MiradaError

log = logging.getLogger(__name__)

UNKNOWN_TEXT = "⁇"
NO_PAD = -1
MANY = 10_000  # texts that are encoded at once: what the library returns is far larger than the tokens


class Tokeniser:
    """A pipeline of the `tokenizers` library, and the numbers of the special tokens by their role.

    Special tokens are numbers only: no text is encoded as one, and none is decoded to text, but for the unknown
    token, which reads ⁇. Where a loaded tokeniser has no padding, `pad` is −1, which no token is.
    """

    def __init__(self, pipeline: tokenizers.Tokenizer, kind: str, special: Mapping[str, int] | None = None) -> None:
        self.kind = kind
        self.special = dict(special) if special is not None else {role: n for n, role in enumerate(SPECIAL)}
        self._pipeline = pipeline
        pipeline.no_truncation()
        pipeline.no_padding()
        pipeline.encode_special_tokens = True  # as the characters they are, where they stand in a text
        number_of = pipeline.get_vocab(with_added_tokens=True)
        self._vocabulary = [UNKNOWN_TEXT] * (1 + max(number_of.values()))
        for token, number in number_of.items():
            self._vocabulary[number] = token
        named = {number for role, number in self.special.items() if role != "unknown"}
        marked = {number for number, token in pipeline.get_added_tokens_decoder().items() if token.special}
        unknown = self.special.get("unknown")
        if unknown in named:  # GPT-2's, which has one special token for everything
            unknown = None
        if unknown is not None:
            self._vocabulary[unknown] = UNKNOWN_TEXT
        self._silent = frozenset(named | marked) - {unknown}
        self._ordinary = sorted({*number_of.values()} - self._silent - {unknown})

    @classmethod
    def train(cls, texts: Iterable[str], kind: Kind, num_tokens: int = 8000, lowercase: bool = False) -> Tokeniser:
        """At most `num_tokens` tokens, fewer if the texts have no more; of kind "character", all that are in them."""
        tokeniser = cls(train(list(map(sound, texts)), kind, num_tokens, lowercase=lowercase), kind)
        if kind != "character" and len(tokeniser) < num_tokens:
            log.info("the text has only %d tokens of kind %r, not %d", len(tokeniser), kind, num_tokens)
        return tokeniser

    @classmethod
    def load(cls, path: str | Path) -> Tokeniser:
        """What `save` has written."""
        return cls(*read_saved(Path(path)))

    @classmethod
    def from_hugging_face(cls, path: str | Path) -> Tokeniser:
        """From a folder, or a file in it: tokenizer.json, vocab.txt (BERT), or vocab.json with merges.txt (GPT-2)."""
        return cls(*read_hugging_face(Path(path)))

    def save(self, path: str | Path) -> None:
        """One JSON file, the same for the same tokeniser."""
        Path(path).write_text(self.to_text(), "utf-8")

    def to_text(self) -> str:
        """What `save` writes, for whoever writes it otherwise, such as whole or not at all."""
        return saved_text(self._pipeline, self.kind, self.special)

    def hugging_face_files(self, *, is_framed: bool) -> dict[str, dict]:
        """What transformers' AutoTokenizer reads, by name of the file; is_framed: between start and end, as BERT."""
        return hugging_face_files(self._pipeline, self.special, is_framed=is_framed)

    def encode(self, text: str) -> list[int]:
        return self._pipeline.encode(sound(text), add_special_tokens=False).ids

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Several times faster than one by one."""
        found: list[list[int]] = []
        for first in range(0, len(texts), MANY):
            some = list(map(sound, texts[first : first + MANY]))
            encoded = self._pipeline.encode_batch_fast(some, add_special_tokens=False)
            found += [one.ids for one in encoded]
        return found

    def encode_blanks(self, texts: Sequence[str]) -> list[int]:
        """texts[0] mask texts[1] mask …, where a mask stands for a word and the space before it."""
        return encode_blanks(self._pipeline, self._words, list(map(sound, texts)), self.mask)

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """The text. Numbers beyond the vocabulary, which a larger model may choose, are unknown."""
        size = len(self._vocabulary)
        numbers = [number for number in as_list(ids) if number not in self._silent]
        tokens = [self._vocabulary[number] if 0 <= number < size else UNKNOWN_TEXT for number in numbers]
        return self._pipeline.decoder.decode(tokens) if self._pipeline.decoder is not None else " ".join(tokens)

    def tokens(self, ids: Iterable[int] | Tensor, style: Style = "plain") -> list[str]:
        """One text per token, for display: `niñ o` (plain) or `niñ# #o` (sharp); special tokens by their names."""
        return self._words.show(as_list(ids), style)

    def words_of(self, ids: Tensor) -> Tensor:
        """(…, N) tokens ↦ (…, N) numbers of the words that they are part of, from 0 in every row."""
        return self._words.words_of(ids)

    @cached_property
    def vocabulary(self) -> list[str]:
        """The name of every token by its number, no two alike; a number without a token is called unused."""
        token_of = {number: token for token, number in self._pipeline.get_vocab(with_added_tokens=True).items()}
        return [token_of.get(number, f"<unused {number}>") for number in range(len(self))]

    @property
    def ordinary(self) -> Tensor:
        """The numbers of all tokens that are not special."""
        return torch.tensor(self._ordinary)

    @property
    def pad(self) -> int:
        return self.special.get("pad", NO_PAD)

    @property
    def unknown(self) -> int:
        return self._role("unknown")

    @property
    def start(self) -> int:
        return self._role("start")

    @property
    def end(self) -> int:
        return self._role("end")

    @property
    def mask(self) -> int:
        return self._role("mask")

    def __len__(self) -> int:
        """One more than the largest number of a token."""
        return len(self._vocabulary)

    def __repr__(self) -> str:
        return f"Tokeniser({self.kind!r}, {len(self)} tokens)"

    def _role(self, role: str) -> int:
        if role not in self.special:
            raise MiradaError(f"this {self.kind} tokeniser has no {role} token; expected one that was made with it.")
        return self.special[role]

    @cached_property
    def _words(self) -> TokenWords:
        return TokenWords(self._vocabulary, self.kind, self._silent)


def as_list(ids: Iterable[int] | Tensor) -> list[int]:
    return ids.tolist() if isinstance(ids, Tensor) else list(ids)
