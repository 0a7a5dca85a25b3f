"""`--from` of text: weights come with their tokeniser, from runs of ours and from checkpoints of transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertForMaskedLM, MarianConfig, MarianMTModel

import mirada
from mirada.errors import MiradaError
from mirada.train.checkpoint import load_tensors
from tests.verbs.text.texts import NUMBERS, run, sources

SHORT = ["train.steps=2", "train.evaluations=1", "text.max_length=16", "train.batch_size=8"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "two", "three", "four", "five", "six", ".", "a"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=17,  # more than there are words: vectors are often rounded up
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    return folder


def test_a_masked_model_of_transformers_is_trained_further(bert, tmp_path):
    out = mirada.train(sources()["lines"], settings=[*SHORT, "data.task=fill"], start=bert, out=tmp_path / "run").path
    start = json.loads((out / "start.json").read_text())
    assert start["system"] == "bert" and start["origin"] == "transformers"
    assert json.loads((out / "best" / "model.json").read_text())["arguments"]["num_tokens"] == 17
    assert mirada.load(out).tokeniser.encode("one two") == [5, 6]
    assert len(mirada.fill(out, "one ___ three", k=3)[0]) == 3


def test_classes_are_told_by_a_model_that_learned_to_fill_in(tmp_path):
    out = mirada.train(sources()["labels"], settings=SHORT, start=run("lines"), out=tmp_path / "run").path
    kept = load_tensors(run("lines") / "best" / "model.safetensors")
    assert json.loads((out / "start.json").read_text())["num_copied"] > 0
    assert mirada.load(out).tokeniser.encode("one") == mirada.load(run("lines")).tokeniser.encode("one")
    assert load_tensors(out / "best" / "model.safetensors")["embedding.weight"].shape == kept["embedding.weight"].shape
    assert json.loads((out / "result.json").read_text())["metric"] == "accuracy"


def test_a_translator_of_transformers_is_trained_further(tmp_path):
    words = ["</s>", "<unk>", *NUMBERS, *NUMBERS.values(), "<pad>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    config = MarianConfig(
        vocab_size=len(words),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        pad_token_id=vocabulary["<pad>"],
        eos_token_id=0,
        decoder_start_token_id=vocabulary["<pad>"],
        forced_eos_token_id=None,
    )
    MarianMTModel(config).save_pretrained(tmp_path / "marian")
    tokeniser = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    tokeniser.pre_tokenizer = Whitespace()
    tokeniser.save(str(tmp_path / "marian" / "tokenizer.json"))
    settings = ["train.steps=2", "train.evaluations=1", "data.task=translate", "baseline.name=none"]
    out = mirada.train(sources()["pairs"], settings=settings, start=tmp_path / "marian", out=tmp_path / "run").path
    assert json.loads((out / "start.json").read_text())["system"] == "transformer"
    assert len(mirada.translate(out, ["one two"])[0]) == 1


def test_weights_without_a_tokeniser_are_refused(tmp_path):
    folder = run("lines") / "best"
    for name in ("model.safetensors", "model.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(MiradaError, match=r"has no tokeniser\.json"):
        mirada.train(sources()["lines"], settings=[*SHORT, "data.task=fill"], start=tmp_path, out=tmp_path / "run")
