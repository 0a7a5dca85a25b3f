"""Models of text go to transformers with their tokeniser: the same tokens, and the same logits of them."""

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

import mirada
from mirada.errors import MiradaError
from mirada.weights import read_checkpoint
from tests.verbs.text.texts import SETTINGS, run, sources

KINDS = {"lines": AutoModelForMaskedLM, "labels": AutoModelForSequenceClassification, "book": AutoModelForCausalLM}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_tokens_and_logits(kind, tmp_path):
    trained = mirada.load(run(kind), device="cpu")
    files = mirada.export(trained.folder, to="transformers", out=tmp_path / "theirs")
    assert {file.name for file in files} == {
        *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "data.json"),
    }
    theirs, info = KINDS[kind].from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    tokeniser = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    text, ours = "two six one", trained.tokeniser
    tokens = tokeniser(text)["input_ids"]
    assert tokens == (ours.encode(text) if kind == "book" else [ours.start, *ours.encode(text), ours.end])
    assert tokeniser.decode(ours.encode(text), skip_special_tokens=True) == text
    with torch.no_grad():
        wanted = trained.model.eval()(torch.tensor([tokens]))
        torch.testing.assert_close(theirs.eval()(torch.tensor([tokens])).logits, wanted, rtol=1e-5, atol=1e-5)
    assert theirs.config.eos_token_id == ours.end
    if kind == "labels":
        assert theirs.config.id2label == dict(enumerate(trained.data["class_names"]))
    back = read_checkpoint(tmp_path / "theirs").model().state_dict()
    assert all(torch.equal(back[name], tensor) for name, tensor in trained.model.state_dict().items())


def test_a_hidden_word_is_asked_for_by_its_mark(tmp_path):
    mirada.export(run("lines"), to="transformers", out=tmp_path / "theirs")
    tokeniser = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert tokeniser("one <mask> two")["input_ids"][2] == mirada.load(run("lines")).tokeniser.mask == 4


def test_what_transformers_does_not_have_is_refused_and_nothing_is_written(tmp_path):
    settings = [*SETTINGS["book"], "system.arguments.position=rotary", "train.steps=1", "train.evaluations=1"]
    turned = mirada.train(sources()["book"], system="gpt", settings=settings, out=tmp_path / "run")
    with pytest.raises(MiradaError, match="position='rotary'"):
        mirada.export(turned, to="transformers", out=tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()
