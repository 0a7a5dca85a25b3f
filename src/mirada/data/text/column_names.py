"""Names that columns and files of text go by: what they say about a column, and what tells a header from a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mirada.data.tabular import SPLIT_NAMES

SOURCE_NAMES = ("source", "src", "source_text", "input")
TARGET_NAMES = ("target", "tgt", "trg", "target_text", "output", "translation", "reference")
TEXT_NAMES = (
    *("text", "sentence", "review", "comment", "content", "document", "message", "tweet", "utterance", "body"),
    *("headline", "title", "description", "question", "answer", "paragraph"),
)
LABEL_NAMES = (
    *("label", "class", "category", "sentiment", "intent", "topic", "emotion", "labels", "class_name", "polarity"),
    *("rating", "stars", "y"),
)

# ISO 639 codes of the languages with most parallel text, and of some of Mexico and the Andes.
LANGUAGES = frozenset(
    "af am ar ast ay az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr ga gl gn gu he hi hr ht hu hy id is "
    "it ja ka kk km ko la lt lv mk ml mn mr ms mt my nah nb ne nl nn no oc oto pa pl ps pt qu quy ro ru sk sl sq sr sv "
    "sw ta te th tl tr uk ur uz vi yi yo yua zh eng spa fra fre deu ger ita por rus jpn cmn ara nld tur".split()
)
_LANGUAGE_WORDS = frozenset(
    "english spanish french german italian portuguese russian chinese japanese arabic dutch turkish catalan "
    "inglés español francés alemán italiano portugués ruso chino japonés árabe".split()
)
_KNOWN = {*SOURCE_NAMES, *TARGET_NAMES, *TEXT_NAMES, *LABEL_NAMES, *SPLIT_NAMES}


def plain_name(name: str) -> str:
    """'Source Text' -> 'source_text'."""
    return "_".join(name.strip().lower().replace("-", " ").split())


def is_language(name: str) -> bool:
    """'es', 'es_MX', 'Spanish'."""
    return plain_name(name) in _LANGUAGE_WORDS or re.split("[-_]", name.strip().lower())[0] in LANGUAGES


def language_columns(names: Iterable[str]) -> list[str]:
    """Those named after a language; 'id' is Indonesian only beside one other."""
    found = list(filter(is_language, names))
    return found if len(found) <= 2 else [name for name in found if name.lower() != "id"]


def named(names: Iterable[str], known: Sequence[str]) -> str | None:
    """The column with the first of the known names."""
    by_plain_name = {plain_name(name): name for name in reversed(list(names))}
    return next((by_plain_name[name] for name in known if name in by_plain_name), None)


def is_header(cells: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a first row names columns: it holds a wanted or well-known name, or each cell names a language."""
    if len(set(cells)) < len(cells) or not all(cells):
        return False
    known = any(cell in wanted or plain_name(cell) in _KNOWN for cell in cells)
    return known or (len(cells) > 1 and all(map(is_language, cells)))


def languages_in(file_name: str) -> tuple[str, str] | None:
    """('en', 'es') of 'en_es_train.tsv', where exactly two words are languages."""
    words = [word for word in re.split(r"[^A-Za-z]+", file_name) if word.lower() in LANGUAGES]
    return (words[0], words[1]) if len(words) == 2 and words[0] != words[1] else None
