"""Tokenisers of Hugging Face from local files, equal to what transformers reads from the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from mirada.data.text import tokeniser_files
from mirada.data.text.tokeniser import NO_PAD, Tokeniser
from mirada.errors import MiradaError

TEXTS = ["El niño, ¿juega?", "los animales\n", "ANIMALES [MASK] niña <|endoftext|>", "", "漢字 el"]
PIECES = [
    *"[PAD] [UNK] [CLS] [SEP] [MASK] el nino niño ni ##ño ##na , ¿ ? jueg ##a los animal ##es [ ] mask El".split()
]


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), "utf-8")


def bert(folder: Path, **options) -> Path:
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", **options})
    return folder


def gpt2(folder: Path) -> Path:
    pipeline = Tokenizer(models.BPE())
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pipeline.train_from_iterator(
        TEXTS * 3,
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
        ),
    )
    pipeline.model.save(str(folder))
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"})
    return folder


def numbers_of_transformers(folder: Path, text: str) -> list[int]:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return theirs(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


@pytest.mark.parametrize("lower", [True, False])
def test_vocab_txt_is_that_of_bert(tmp_path, lower):
    ours = Tokeniser.from_hugging_face(bert(tmp_path, do_lower_case=lower))
    assert (ours.kind, len(ours)) == ("wordpiece", len(PIECES))
    assert (ours.pad, ours.unknown, ours.start, ours.end, ours.mask) == (0, 1, 2, 3, 4)
    for text in TEXTS[:2] + TEXTS[3:]:
        assert ours.encode(text) == numbers_of_transformers(tmp_path, text)
    assert ours.tokens(ours.encode("juega"), "sharp") == ["jueg#", "#a"]
    assert (ours.encode("El") == ours.encode("el")) == lower
    assert 4 not in ours.encode("[MASK]")
    assert ours.decode([2, *ours.encode("los animales"), 3, 0]) == "los animales"


def test_vocab_json_and_merges_are_those_of_gpt2(tmp_path):
    ours = Tokeniser.from_hugging_face(gpt2(tmp_path))
    assert (ours.kind, len(ours), ours.start, ours.end) == ("byte", 300, 0, 0)
    for text in TEXTS:
        assert ours.decode(ours.encode(text)) == text and 0 not in ours.encode(text)
        if "<|" not in text:
            assert ours.encode(text) == numbers_of_transformers(tmp_path, text)
    assert ours.pad == NO_PAD
    with pytest.raises(MiradaError, match="no mask token"):
        _ = ours.mask
    assert Tokeniser.from_hugging_face(tmp_path / "vocab.json").encode("niño") == ours.encode("niño")


def test_tokenizer_json_wins_and_is_freed_of_cutting_and_padding(tmp_path):
    pipeline = Tokenizer(models.WordLevel({"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "a": 4}, unk_token="<unk>"))
    pipeline.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    pipeline.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    pipeline.enable_truncation(3)
    pipeline.enable_padding(length=7)
    pipeline.save(str(bert(tmp_path) / "tokenizer.json"))
    ours = Tokeniser.from_hugging_face(tmp_path)
    assert ours.encode("a a b a a") == [4, 4, 3, 4, 4]
    assert (ours.kind, ours.pad, ours.start, ours.end, ours.unknown) == ("word", 0, 1, 2, 3)
    assert ours.decode([1, 4, 3, 2, 0]) == "a ⁇"


def test_a_loaded_tokeniser_is_saved_with_a_run(tmp_path):
    ours = Tokeniser.from_hugging_face(gpt2(tmp_path))
    ours.save(tmp_path / "tokeniser.json")
    again = Tokeniser.load(tmp_path / "tokeniser.json")
    assert (again.special, again.encode_many(TEXTS)) == (ours.special, ours.encode_many(TEXTS))


def test_pieces_of_sentencepiece_are_read_from_tokenizer_json(tmp_path):
    pipeline = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁el", -1.0), ("▁niñ", -2.0), ("o", -2.0)], unk_id=0))
    pipeline.pre_tokenizer, pipeline.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    pipeline.save(str(tmp_path / "tokenizer.json"))
    ours = Tokeniser.from_hugging_face(tmp_path)
    assert ours.tokens(ours.encode("el niño"), "sharp") == ["el", "niñ#", "#o"]
    assert (ours.kind, ours.decode(ours.encode("el niño"))) == ("unigram", "el niño")


def test_sentencepiece_files_alone_are_refused(tmp_path):
    for name in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(MiradaError, match=r"source\.spm, target\.spm.*expected a tokenizer\.json"):
        Tokeniser.from_hugging_face(tmp_path)


def test_broken_and_hostile_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(MiradaError, match="found none"):
        Tokeniser.from_hugging_face(tmp_path)
    file = tmp_path / "tokenizer.json"
    numbered = {"type": "WordLevel", "vocab": {"a": 4_000_000_000}, "unk_token": "a"}
    for content in (
        {"model": {"type": "Nonsense"}},
        {"model": numbered},
        {"version": "1.0", "model": numbered},
        {"a": "\ud800"},
    ):
        write_json(file, content)
        with pytest.raises(MiradaError, match=r"tokenizer\.json"):
            Tokeniser.from_hugging_face(tmp_path)
    monkeypatch.setattr(tokeniser_files, "LARGEST_FILE", 10)
    with pytest.raises(MiradaError, match="expected at most 10"):
        Tokeniser.from_hugging_face(file)
    file.unlink()
    monkeypatch.undo()
    (tmp_path / "vocab.txt").write_text("uno\ndos\n")
    with pytest.raises(MiradaError, match=r"has no \[UNK\]"):
        Tokeniser.from_hugging_face(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    write_json(tmp_path / "vocab.json", {"a": 0, "b": "one"})
    (tmp_path / "merges.txt").write_text("a b c\n")
    with pytest.raises(MiradaError, match=r"vocab\.json"):
        Tokeniser.from_hugging_face(tmp_path)
