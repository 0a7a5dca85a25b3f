"""Text goes elsewhere with its tokenisers; what is not exported to CTranslate2 (what is: tests/peers)."""

import importlib.util

import pytest

import mirada
from mirada.errors import MiradaError
from tests.verbs import trained_run
from tests.verbs.text.tiny_translator import tiny_run


@pytest.mark.parametrize("shared", [True, False])
def test_exported_folder_translates_alike(shared, tmp_path):
    run = tiny_run(tmp_path / "run", shared=shared)
    files = mirada.export(run, out=tmp_path / "elsewhere" / "model")
    assert all(file.exists() for file in files)
    assert mirada.translate(tmp_path / "elsewhere" / "model", "one two") == mirada.translate(run, "one two")


def test_onnx_is_refused(tmp_path):
    with pytest.raises(MiradaError, match="models of text are not exported to ONNX; use --to safetensors"):
        mirada.export(tiny_run(tmp_path / "run"), to="onnx", out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"position": "rotary"}, "with position='rotary', expected one of sinusoidal, sinusoidal_half, learned"),
        ({"position": "shaw"}, "with position='shaw'"),
        ({"position": "none"}, "with position='none'"),
        ({"neighbours": "window:4"}, "with neighbours='window:4', expected 'full'"),
        ({"norm": "post"}, "with norm='post' with final_norm=true, expected final_norm=false or norm='pre'"),
        ({"system": "seq2seq"}, "is of system 'seq2seq'; only 'transformer'"),
    ],
)
def test_what_is_not_exported_is_refused(arguments, said, tmp_path):
    run = tiny_run(tmp_path / "run", **arguments)
    with pytest.raises(MiradaError, match=said):
        mirada.export(run, to="ctranslate2", out=tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_models_of_images_are_refused(tmp_path):
    with pytest.raises(MiradaError, match="only 'transformer' is exported to CTranslate2"):
        mirada.export(trained_run.run(), to="ctranslate2", out=tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_missing_library_is_a_sentence_with_the_command(tmp_path, monkeypatch):
    run = tiny_run(tmp_path / "run")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "ctranslate2" else find(name, *a))
    with pytest.raises(MiradaError, match=r"needs ctranslate2: pip install ctranslate2\."):
        mirada.export(run, to="ctranslate2", out=tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()
