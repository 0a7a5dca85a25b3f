"""Five ways to cut text into tokens, each without loss.

    kind        tokens                      «el niño, ayer» becomes         how the spaces come back
    character   every character             e l ␣ n i ñ o , ␣ a y e r       they are tokens
    word        words and marks             el niño ￭, ayer                 ￭: here there is none
    wordpiece   frequent parts of words     el niñ ##o ￭, ayer              ##: inside of a word (Schuster 2012, BERT)
    bpe         frequent parts of words     ▁el ▁niñ o , ▁ayer              ▁: here there is one (Sennrich 2016)
    byte        the same of UTF-8 bytes     el Ġni Ã±o , Ġayer              Ġ: here there is one (GPT-2)

Text is first brought into Unicode's form NFC (not for bytes) and on request into lower case. Words and word pieces know
no other white space than single spaces and the ends of lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from mirada.errors import MiradaError, nearest

Kind = Literal["character", "word", "bpe", "wordpiece", "byte"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SPECIAL = {"pad": "<pad>", "unknown": "<unknown>", "start": "<start>", "end": "<end>", "mask": "<mask>"}
UNKNOWN = SPECIAL["unknown"]
JOIN, SPACE, LINE_END, INSIDE = "￭", "▁", "⏎", "##"

SEEN_TWICE = 2  # a pair that was seen once is a coincidence: it is not merged


@dataclass(frozen=True)
class Parts:
    """What happens to the text before and after the model that knows the tokens."""

    normalisers: tuple[Any, ...] = ()
    cutter: Any = None
    decoder: Any = None


def parts_of(kind: Kind) -> Parts:
    nfc = normalizers.NFC()
    if kind == "character":
        return Parts((nfc,), None, decoders.Fuse())
    if kind == "byte":
        return Parts((), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel())
    if kind == "bpe":
        # A space belongs to the word behind it; letters, digits and marks are never merged with one another.
        runs = rf"{SPACE}?[\p{{L}}\p{{M}}]+|{SPACE}?\p{{N}}+|{SPACE}?[^\p{{L}}\p{{M}}\p{{N}}\s{SPACE}]+|\s|{SPACE}"
        marked = (normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE))
        spaces = (decoders.Replace(SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0))
        return Parts((nfc, *marked), pre_tokenizers.Split(Regex(runs), "isolated"), decoders.Sequence(list(spaces)))
    # Marks carry the joins, so that words are always plain: `¿￭ qué ￭?`.
    joined = (
        normalizers.Replace(Regex(r"(?<=\S)(?=[\p{P}\p{S}])"), f" {JOIN}"),
        normalizers.Replace(Regex(r"(?<=[\p{P}\p{S}])(?=[^\s\p{P}\p{S}])"), f"{JOIN} "),
        normalizers.Replace("\n", f" {JOIN}{LINE_END}{JOIN} "),
    )
    apart = (
        decoders.WordPiece(INSIDE, cleanup=False),
        decoders.Fuse(),
        *(decoders.Replace(mark, "") for mark in (f" {JOIN}", f"{JOIN} ", JOIN)),
        decoders.Replace(LINE_END, "\n"),
    )
    return Parts((nfc, *joined), pre_tokenizers.WhitespaceSplit(), decoders.Sequence(list(apart)))


def assemble(kind: Kind, model: models.Model, *, lowercase: bool = False) -> Tokenizer:
    """The model between the parts of its kind."""
    parts = parts_of(kind)
    pipeline = Tokenizer(model)
    lower = (normalizers.Lowercase(),) if lowercase else ()
    pipeline.normalizer = normalizers.Sequence([*lower, *parts.normalisers])
    if parts.cutter is not None:
        pipeline.pre_tokenizer = parts.cutter
    pipeline.decoder = parts.decoder
    return pipeline


def train(texts: Sequence[str], kind: Kind, num_tokens: int, *, lowercase: bool = False) -> Tokenizer:
    """Special tokens are 0 to 4; the rest is learned from the texts, the same from the same texts."""
    if kind not in KINDS:
        raise MiradaError(f"tokens are of kind {kind!r}{nearest(kind, KINDS)}; expected one of {', '.join(KINDS)}.")
    if num_tokens <= len(SPECIAL):
        raise MiradaError(f"num_tokens is {num_tokens}, expected more than the {len(SPECIAL)} special tokens.")
    if not any(texts):
        raise MiradaError("there is no text to learn tokens from; expected at least one character.")
    if kind == "character":
        return _characters(texts, lowercase)
    pipeline = assemble(kind, _empty_model(kind), lowercase=lowercase)
    pipeline.train_from_iterator(texts, _trainer(pipeline, texts, kind, num_tokens))
    size = pipeline.get_vocab_size()
    if size > num_tokens:
        raise MiradaError(
            f"num_tokens is {num_tokens}, but the {len(SPECIAL)} special tokens and the characters of this text are "
            f"{size} tokens of kind {kind!r} already; expected at least as many."
        )
    # Anew, for the trainer has made the special tokens known to the pipeline, which would find them in texts.
    return assemble(kind, pipeline.model, lowercase=lowercase)


def _characters(texts: Sequence[str], lowercase: bool) -> Tokenizer:
    normaliser = assemble("character", models.BPE(), lowercase=lowercase).normalizer
    seen = set().union(*(normaliser.normalize_str(text) for text in texts))
    vocabulary = {token: number for number, token in enumerate([*SPECIAL.values(), *sorted(seen)])}
    # Byte pair encoding without a single merge.
    return assemble("character", models.BPE(vocabulary, [], unk_token=UNKNOWN), lowercase=lowercase)


def _empty_model(kind: Kind) -> models.Model:
    if kind == "word":
        return models.WordLevel(unk_token=UNKNOWN)
    if kind == "wordpiece":
        return models.WordPiece(unk_token=UNKNOWN, continuing_subword_prefix=INSIDE)
    return models.BPE(unk_token=UNKNOWN)


def _trainer(pipeline: Tokenizer, texts: Sequence[str], kind: Kind, num_tokens: int) -> trainers.Trainer:
    special = list(SPECIAL.values())
    options: dict[str, Any] = {"vocab_size": num_tokens, "show_progress": False}
    if kind == "word":
        return trainers.WordLevelTrainer(**options, special_tokens=special)
    options["min_frequency"] = SEEN_TWICE
    if kind == "wordpiece":
        # Numbered here: the trainer numbers characters inside of words in the order of a hash table.
        alphabet = _word_alphabet(pipeline, texts)
        return trainers.WordPieceTrainer(
            **options, special_tokens=[*special, *alphabet], continuing_subword_prefix=INSIDE
        )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if kind == "byte" else []
    return trainers.BpeTrainer(**options, special_tokens=special, initial_alphabet=alphabet)


def _word_alphabet(pipeline: Tokenizer, texts: Sequence[str]) -> list[str]:
    """Characters that begin a word, and those inside of one with their mark."""
    words: set[str] = set().union(*(pipeline.normalizer.normalize_str(text).split() for text in texts))
    first = {word[0] for word in words}
    return [*sorted(first), *sorted({INSIDE + character for word in words for character in word[1:]})]
