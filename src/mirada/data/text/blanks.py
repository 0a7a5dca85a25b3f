"""Texts with blanks, for a model to fill in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tokenizers import Tokenizer

from mirada.data.text.token_words import TokenWords

SOME_LETTER = "𐤀"  # of a script that no text is likely to have: it is never merged with its neighbours


def encode_blanks(pipeline: Tokenizer, words: TokenWords, texts: Sequence[str], mask: int) -> list[int]:
    """texts[0] mask texts[1] mask …, where a mask stands for a word and the space before it.

    The texts are not encoded one by one: a full stop behind a blank is another token than one that begins a text.
    Letters that touch a blank are a word of their own, where a tokeniser knows only whole words.
    """
    blanks, whole = set(), texts[0]
    for text in texts[1:]:
        blanks.add(len(whole))
        whole += SOME_LETTER + text
    waiting = sorted(blanks)
    found: list[int] = []

    def fill_up_to(end: int) -> None:
        """A mask for every blank before `end` that has none yet."""
        while waiting and waiting[0] < end:
            if found and not words.pieces[found[-1]].text:
                found.pop()  # a token that is only the space before the blank
            found.append(mask)
            waiting.pop(0)

    encoded = pipeline.encode(whole, add_special_tokens=False)
    for token, (first, last) in zip(encoded.ids, encoded.offsets, strict=True):
        fill_up_to(first)  # what the tokeniser has left out
        places = range(first, last)
        if waiting and waiting[0] in places:
            for is_blank, run in groupby(places, blanks.__contains__):
                if is_blank:
                    fill_up_to(max(run) + 1)
                else:
                    letters = "".join(whole[place] for place in run).strip()
                    found += pipeline.encode(letters, add_special_tokens=False).ids
        elif not places or not blanks.issuperset(places):
            found.append(token)
    fill_up_to(len(whole))
    return found
