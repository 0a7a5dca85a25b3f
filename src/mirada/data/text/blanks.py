"""Texts with blanks, for a model to fill in."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from mirada.data.text.token_words import TokenWords

SOME_LETTER = "𐤀"  # of a script that no text is likely to have: it is never merged with its neighbours


def encode_blanks(pipeline: Tokenizer, words: TokenWords, texts: Sequence[str], mask: int) -> list[int]:
    """texts[0] mask texts[1] mask …, where a mask stands for a word and the space before it.

    The texts are not encoded one by one: a full stop behind a blank is another token than one that begins a text.
    """
    blanks, whole = set(), texts[0]
    for text in texts[1:]:
        blanks.add(len(whole))
        whole += SOME_LETTER + text
    encoded = pipeline.encode(whole, add_special_tokens=False)
    found: list[int] = []
    told = -1  # the last blank that has its mask: the letter may be several tokens
    for token, (first, last) in zip(encoded.ids, encoded.offsets, strict=True):
        if first == last or not blanks.issuperset(range(first, last)):
            found.append(token)
            continue
        new = sum(place > told for place in range(first, last))
        if new and found and not words.pieces[found[-1]].text:
            found.pop()  # a token that is only the space before the blank
        found += [mask] * new
        told = max(told, last - 1)
    return found
