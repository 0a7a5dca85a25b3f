"""F2 on batches of text: 15 % of the tokens are asked for, 80 % of these hidden, 10 % replaced, 10 % kept."""

from __future__ import annotations

import math

import pytest
import torch
from tests.data.text.token_batches import END, MASK, PAD, START, assert_padded_at_the_end, check_pure

from mirada.data.masked_tokens import IGNORED
from mirada.data.text.masked_batches import MaskedBatches, masked_evaluation
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError

TEXT = "el niño jugaba con los animales jugar ninguno animal cosa el la lo"


@pytest.fixture(scope="module")
def tokeniser() -> Tokeniser:
    return Tokeniser.train([TEXT], "bpe", 43)


@pytest.fixture(scope="module")
def texts(tokeniser) -> list[list[int]]:
    words = TEXT.split()
    return tokeniser.encode_many([" ".join(words[n % 7 : n % 7 + 1 + n % 5]) for n in range(101)])


def test_purity_and_resuming(tokeniser, texts):
    check_pure(lambda **options: MaskedBatches(texts, tokeniser, batch_size=7, max_length=13, **options))


def test_texts_of_unknown_words_only_are_not_asked(texts):
    words = Tokeniser.train(["el niño"], "word", 10)
    known, unknown = words.encode("el niño"), words.encode("cosa lo")
    batches = MaskedBatches([unknown] * 30 + [known] * 3, words, batch_size=2, max_length=13)
    assert len(batches.hiding) == 3
    for step in range(2 * len(batches)):
        assert (batches.batch(0, step % len(batches)).targets != IGNORED).any()
    with pytest.raises(MiradaError, match="0 training texts with tokens"):
        MaskedBatches([unknown], words, batch_size=2, max_length=13)


def originals(batch) -> torch.Tensor:
    return torch.where(batch.targets == IGNORED, batch.inputs, batch.targets)


def test_long_texts_become_several_rows_and_nothing_is_lost(tokeniser, texts):
    found = list(masked_evaluation([*texts, []], tokeniser, batch_size=7, max_length=11))
    pieces: dict[int, list[int]] = {}
    for batch in found:
        assert_padded_at_the_end(batch.inputs)
        assert batch.inputs.shape[1] <= 11
        for row, tokens in zip(batch.rows.tolist(), originals(batch).tolist(), strict=True):
            ending = tokens.index(END)
            assert tokens[0] == START and set(tokens[ending + 1 :]) <= {PAD}
            pieces.setdefault(row, []).extend(tokens[1:ending])
    assert sorted(pieces) == list(range(101))
    assert all(sorted(pieces[row]) == sorted(text) for row, text in enumerate(texts))


def test_F2_shares_within_three_sigma(tokeniser, texts):
    batches = MaskedBatches(texts * 23, tokeniser, batch_size=601, max_length=29)
    asked_for = {"asked": 0, "hidden": 0, "kept": 0, "other": 0, "ordinary": 0}
    for batch in batches:
        asked, before = batch.targets != IGNORED, originals(batch)
        assert not (asked & (before < 5)).any()
        replaced = batch.inputs[asked & (batch.inputs != MASK)]
        assert replaced.min() >= 5
        asked_for["asked"] += int(asked.sum())
        asked_for["ordinary"] += int((before >= 5).sum())
        asked_for["hidden"] += int((batch.inputs == MASK).sum())
        asked_for["kept"] += int((asked & (batch.inputs == before)).sum())
    count, chance = asked_for["asked"], 1 / len(tokeniser.ordinary)
    for name, expected in {"hidden": 0.8, "kept": 0.1 * (1 + chance)}.items():
        assert abs(asked_for[name] / count - expected) < 3 * math.sqrt(expected * (1 - expected) / count)


def test_new_masks_every_epoch_and_fixed_ones_for_evaluation(tokeniser, texts):
    one = MaskedBatches(texts[:7], tokeniser, batch_size=7, max_length=29)
    first, second = one.batch(0, 0), one.batch(1, 0)
    places = [
        dict(zip(batch.rows.tolist(), (batch.targets != IGNORED).tolist(), strict=True)) for batch in (first, second)
    ]
    assert places[0] != places[1]
    runs = [list(masked_evaluation(texts, tokeniser, batch_size=11, max_length=29)) for _ in range(2)]
    assert all(
        torch.equal(a.targets, b.targets) and torch.equal(a.inputs, b.inputs) for a, b in zip(*runs, strict=True)
    )


def test_whole_words_are_hidden_together(tokeniser, texts):
    batches = MaskedBatches(texts, tokeniser, batch_size=7, max_length=29, whole_words=True)
    is_cut = 0
    for batch in batches:
        words, asked = tokeniser.words_of(originals(batch)), batch.targets != IGNORED
        same = words[:, 1:] == words[:, :-1]
        assert (asked[:, 1:] == asked[:, :-1])[same].all()
        is_cut += int((same & asked[:, 1:]).sum())
    assert is_cut > 10


def test_texts_without_tokens_are_refused(tokeniser):
    with pytest.raises(MiradaError, match="0 training texts with tokens"):
        MaskedBatches([[], []], tokeniser, batch_size=7, max_length=13)
    with pytest.raises(MiradaError, match="max_length is 2"):
        MaskedBatches([[7]], tokeniser, batch_size=7, max_length=2)
    assert list(masked_evaluation([[]], tokeniser, batch_size=7, max_length=13)) == []
