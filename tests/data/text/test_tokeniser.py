"""A1, A2, A13: tokens and back, byte pair encoding by hand, special tokens that are never text."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models

from mirada.data.text.tokeniser import NO_PAD, Tokeniser
from mirada.data.text.tokeniser_kinds import KINDS, SPACE, SPECIAL, assemble
from mirada.errors import MiradaError

TEXTS = [
    "El niño jugaba con los animales, ¿verdad?",
    "—Los animales (jugaban) con el niño 12 veces...",
    'don\'t "quote" <pad> [MASK]\nsegunda línea',
] * 2
SENTENCE = "el niño jugaba con los animales"
LECTURE = "el niñ# #o jug# #aba con lo# #s animal# #es"


@pytest.fixture(scope="module")
def trained() -> dict[str, Tokeniser]:
    return {kind: Tokeniser.train(TEXTS, kind, 317) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_A1_decoding_is_the_inverse_of_encoding(trained, kind):
    for text in [*TEXTS, "", "niño, niño", "(con) los"]:
        assert trained[kind].decode(trained[kind].encode(text)) == text
    assert trained[kind].encode_many(TEXTS) == [trained[kind].encode(text) for text in TEXTS]


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_has_a_name_of_its_own(trained, kind):
    names = trained[kind].vocabulary
    assert len(set(names)) == len(names) == len(trained[kind]) and names[:5] == list(SPECIAL.values())


LETTERS = "aeinñlo1"


@pytest.fixture(scope="module")
def of_any_word() -> dict[str, Tokeniser]:
    """They know every word of these letters, with every mark on all sides."""
    texts = [f"{a}{b} {b}{a}" for a in LETTERS for b in LETTERS + ",.¿?(—\n"] + [f"{a} {a}" for a in ",.¿?(—"]
    texts += [f"a{a}{b}{a}a {a}{b}" for a in ",.¿?(—" for b in ",.¿?(—"]
    return {kind: Tokeniser.train(texts, kind, 700) for kind in KINDS if kind != "word"}


@given(text=st.text(st.sampled_from(LETTERS + " ,.¿?(—\n"), max_size=23))
@settings(max_examples=60, deadline=None)
def test_A1_any_text_comes_back_in_the_normal_form_of_its_kind(of_any_word, text):
    for kind in ("character", "bpe", "byte"):
        assert of_any_word[kind].decode(of_any_word[kind].encode(text)) == text
    # Word pieces, and words, know single spaces only, and none at the ends of a line.
    lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    assert of_any_word["wordpiece"].decode(of_any_word["wordpiece"].encode(text)) == lines


def test_A1_unknown_words_and_characters(trained):
    word = trained["word"]
    assert word.encode("El zorro jugaba") == [*word.encode("El"), word.unknown, *word.encode("jugaba")]
    assert word.decode(word.encode("El zorro jugaba")) == "El ⁇ jugaba"
    for kind, expected in {"character": "⁇⁇", "word": "⁇", "bpe": "⁇⁇", "wordpiece": "⁇", "byte": "漢字"}.items():
        tokens = trained[kind].encode("漢字")
        assert (trained[kind].unknown in tokens) == (kind != "byte")
        assert trained[kind].decode(tokens) == expected
    assert word.decode([len(word), -100]) == "⁇ ⁇"


@pytest.mark.parametrize("kind", KINDS)
def test_A1_the_same_texts_give_the_same_file_and_it_is_read_back(trained, kind, tmp_path):
    trained[kind].save(tmp_path / "one.json")
    Tokeniser.train(iter(TEXTS), kind, 317).save(tmp_path / "two.json")
    loaded = Tokeniser.load(tmp_path / "two.json")
    loaded.save(tmp_path / "three.json")
    one, two, three = ((tmp_path / f"{name}.json").read_bytes() for name in ("one", "two", "three"))
    assert one == two == three
    assert (loaded.kind, len(loaded), loaded.special) == (kind, len(trained[kind]), trained[kind].special)
    assert loaded.encode_many([*TEXTS, "漢字"]) == trained[kind].encode_many([*TEXTS, "漢字"])


def test_characters_are_all_there_with_space_and_end_of_line():
    tokeniser = Tokeniser.train(["b a\n", "añ"], "character", 6)
    assert len(tokeniser) == 5 + 5
    assert tokeniser.encode("\n abñ") == [5, 6, 7, 8, 9]
    assert tokeniser.tokens([5, 6, 7]) == ["↵", "␣", "a"]


def test_lower_case_and_composed_letters():
    tokeniser = Tokeniser.train(["El Niño"], "word", 11, lowercase=True)
    assert tokeniser.encode("EL NIN\u0303O") == tokeniser.encode("el niño")
    assert tokeniser.decode(tokeniser.encode("EL NIÑO")) == "el niño"


def merges_of(tokeniser: Tokeniser, tmp_path: Path) -> list[tuple[str, str]]:
    tokeniser.save(tmp_path / "merges.json")
    pipeline = json.loads((tmp_path / "merges.json").read_text("utf-8"))["pipeline"]
    return [(left, right) for left, right in pipeline["model"]["merges"]]


def test_A2_merges_by_hand(tmp_path):
    """Pairs of low ×5, lower ×2, newest ×6, widest ×3 (after Sennrich 2016): e s 9, then es t 9, then l o, o w and ▁ l
    7 each. Of equal pairs the one with the smaller numbers is first: characters in order, ▁ is the last of them, then
    the merged. So l o is next, and then ▁ lo before lo w."""
    texts = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    tokeniser = Tokeniser.train(texts, "bpe", 5 + 11 + 5)
    assert merges_of(tokeniser, tmp_path) == [("e", "s"), ("es", "t"), ("l", "o"), ("▁", "lo"), ("▁lo", "w")]
    assert tokeniser.tokens(tokeniser.encode("lowest"), "sharp") == ["low#", "#est"]


def forced(kind: str, vocabulary: list[str], merges: list[tuple[str, str]] = ()) -> Tokeniser:  # type: ignore[assignment]
    number_of = {token: n for n, token in enumerate([*SPECIAL.values(), *vocabulary])}
    unknown = SPECIAL["unknown"]
    model = models.WordPiece(number_of, unk_token=unknown) if kind == "wordpiece" else None
    return Tokeniser(assemble(kind, model or models.BPE(number_of, list(merges), unk_token=unknown)), kind)  # type: ignore[arg-type]


def test_A2_the_sentence_of_the_lecture_by_pairs():
    parts = ["▁el", "▁niñ", "o", "▁jug", "aba", "▁con", "▁lo", "s", "▁animal", "es"]
    merges, vocabulary = [], sorted({*"".join(parts), SPACE})
    for part in parts:
        for end in range(2, len(part) + 1):
            if part[:end] not in vocabulary:
                merges.append((part[: end - 1], part[end - 1]))
                vocabulary.append(part[:end])
    tokeniser = forced("bpe", vocabulary, merges)
    tokens = tokeniser.encode(SENTENCE)
    assert len(tokens) == 10 and " ".join(tokeniser.tokens(tokens, "sharp")) == LECTURE
    assert tokeniser.tokens(tokens) == "el niñ o jug aba con lo s animal es".split()
    assert tokeniser.decode(tokens) == SENTENCE


def test_A2_the_sentence_of_the_lecture_by_word_pieces():
    tokeniser = forced("wordpiece", "el niñ ##o jug ##aba con lo ##s animal ##es".split())
    tokens = tokeniser.encode(SENTENCE)
    assert len(tokens) == 10 and " ".join(tokeniser.tokens(tokens, "sharp")) == LECTURE
    assert tokeniser.decode(tokens) == SENTENCE


@pytest.mark.parametrize("kind", KINDS)
def test_A13_special_tokens_are_numbers_and_never_text(trained, kind):
    t = trained[kind]
    assert (t.pad, t.unknown, t.start, t.end, t.mask) == (0, 1, 2, 3, 4)
    for name in SPECIAL.values():
        assert not {0, 2, 3, 4} & set(t.encode(f"el {name} {name}"))
    inside = [t.start, *t.encode("con"), t.mask, t.pad, *t.encode("los"), t.end, t.pad]
    assert "<" not in t.decode(inside) and t.decode(torch.tensor(inside)) == t.decode(t.encode("con") + t.encode("los"))
    assert t.tokens([t.start, t.pad]) == ["<start>", "<pad>"]
    assert t.ordinary.tolist() == list(range(5, len(t)))


def test_words_of_tokens(trained):
    """Pieces of a word share its number; marks, special tokens and padding are words of their own."""
    for kind in ("bpe", "byte", "wordpiece", "character"):
        t = Tokeniser.train(["a b c d ,", "abcd, abcd,"], kind, 270)
        row = [t.start, *t.encode("dcb, ab"), t.end, t.pad]
        texts: dict[int, str] = {}
        for word, text in zip(t.words_of(torch.tensor(row)).tolist(), t.tokens(row), strict=True):
            texts[word] = texts.get(word, "") + text.strip(SPACE)
        expected = ["<start>", "dcb", ",", *(["␣"] if kind == "character" else []), "ab", "<end>", "<pad>"]
        assert list(texts.values()) == expected
    rows = torch.tensor([[2, 5, 3], [5, 6, 7]])
    assert trained["word"].words_of(rows).tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_blank_stands_for_a_word_and_its_space(kind):
    t = Tokeniser.train(["El niño come. (niño) El niño\nniño come. la"] * 2, kind, 330)
    if kind == "character":
        whole = "El ? come. (?) ??"
        numbers = [t.mask if character == "?" else t.encode(character)[0] for character in whole]
        assert t.encode_blanks(whole.split("?")) == numbers
        return
    for text in ("El niño.", "niño come", "(niño) come. niño", "El\nniño"):
        tokens = t.encode(text)
        expected = [t.mask if name == "niño" else token for token, name in zip(tokens, t.tokens(tokens), strict=True)]
        assert t.mask in expected and t.encode_blanks(text.split("niño")) == expected
    assert t.encode_blanks(["El ", "", " come"]) == [*t.encode("El"), t.mask, t.mask, *t.encode("El come")[1:]]
    assert t.encode_blanks(["El 𐤀"]) == t.encode("El 𐤀")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["the ?s sat", "un?", "un?s, ?.", "??s ?", "s??s\n?s", "?"])
def test_every_blank_is_one_mask_even_if_it_touches_letters(kind, text):
    t = Tokeniser.train(["the cat sat, un s cats.\nun s"] * 2, kind, 330)
    found = t.encode_blanks(text.split("?"))
    assert found.count(t.mask) == text.count("?")
    assert "".join(t.decode(found).split()) == "".join(text.replace("?", "").split())


def test_what_is_saved_is_one_text(tmp_path, trained):
    trained["bpe"].save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_text("utf-8") == trained["bpe"].to_text()


def test_small_texts_have_fewer_tokens_and_say_so(caplog):
    with caplog.at_level(logging.INFO):
        assert len(Tokeniser.train(["uno dos"], "word", 1000)) == 7
    assert "only 7 tokens" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], "bep", 10), r"'bep' \(did you mean 'bpe'"),
        ((["a"], "word", 5), "num_tokens is 5"),
        ((["", ""], "word", 50), "no text"),
        (([], "character", 50), "no text"),
        ((["abcdefg"], "bpe", 11), "at least as many"),
        ((["a"], "byte", 100), "261 tokens"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments, message):
    with pytest.raises(MiradaError, match=message):
        Tokeniser.train(*arguments)


def test_a_style_that_is_not_there_is_refused(trained):
    with pytest.raises(MiradaError, match="plain, sharp"):
        trained["bpe"].tokens([5], "flat")


NO_PIPELINE = b'{"mirada_tokeniser": 1, "kind": "bpe", "special": {}}'


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, NO_PIPELINE])
def test_files_that_are_no_tokeniser_are_refused(tmp_path, content):
    (tmp_path / "tokeniser.json").write_bytes(content)
    for read in (Tokeniser.load, Tokeniser.from_hugging_face):
        with pytest.raises(MiradaError, match=r"tokeniser\.json"):
            read(tmp_path / "tokeniser.json")
    with pytest.raises(MiradaError, match=r"nowhere\.json"):
        Tokeniser.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [("kind", "bep"), ("kind", []), ("special", {"pad": 4000}), ("special", {"pad": -1}), ("pipeline", {})],
)
def test_a_changed_file_is_refused(trained, tmp_path, key, value):
    trained["bpe"].save(tmp_path / "tokeniser.json")
    state = json.loads((tmp_path / "tokeniser.json").read_text("utf-8"))
    (tmp_path / "tokeniser.json").write_text(json.dumps(state | {key: value}), "utf-8")
    with pytest.raises(MiradaError, match=r"tokeniser\.json"):
        Tokeniser.load(tmp_path / "tokeniser.json")


def test_a_long_line_is_encoded():
    tokeniser = Tokeniser.train(["abab abab"], "bpe", 30)
    line = "ab" * 50_000
    assert tokeniser.decode(tokeniser.encode(line)) == line
    assert NO_PAD not in tokeniser.encode(line)


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_surrogate_pair_is_read_as_the_replacement_character(kind, trained):
    tokeniser = trained[kind]
    assert tokeniser.encode("el \ud83d niño") == tokeniser.encode("el \ufffd niño")
    assert tokeniser.encode_many(["\udcff"]) == [tokeniser.encode("\ufffd")]
    assert Tokeniser.train(["el \udcff"], kind, 300).encode("el")
