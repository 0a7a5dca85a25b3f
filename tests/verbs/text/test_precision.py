"""Text in int8: checked on held-out text, refused where it is worse, said where it cannot be checked."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
import torch

import mirada
from mirada.data.batches import Batch
from mirada.errors import MiradaError
from mirada.nn import for_decoding
from mirada.nn.for_decoding import Rounded
from mirada.verbs.text import precision
from mirada.verbs.text.precision import evenly, in_precision
from tests.verbs.text.texts import run
from tests.verbs.text.tiny_translator import tiny_run

KINDS = ("book", "pairs")


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    monkeypatch.setattr(for_decoding, "MIN_WEIGHTS", 0)


def is_rounded(trained) -> bool:
    return any(isinstance(part, Rounded) for part in trained.model.modules())


@pytest.mark.parametrize("kind", KINDS)
def test_int8_is_checked_and_used(kind, caplog):
    trained = mirada.load(run(kind))
    with caplog.at_level(logging.WARNING):
        rounded = in_precision(trained, "int8")
    assert is_rounded(rounded) and not is_rounded(trained) and "unchecked" not in caplog.text
    assert in_precision(trained, "int8") is rounded and in_precision(trained) is not rounded


@pytest.mark.parametrize("kind", KINDS)
def test_int8_is_refused_where_it_is_worse(kind, monkeypatch):
    monkeypatch.setattr(precision, "MOST_WORSE", -1.0)
    with pytest.raises(
        MiradaError, match=r"int8 costs -?0\.\d{3} nats per token .* at most -1.0 is allowed; use float32"
    ):
        in_precision(mirada.load(run(kind)), "int8")


def test_int8_is_refused_where_a_layer_does_not_bear_it(monkeypatch):
    """One weight of each row is so large that nothing is left of the others."""
    trained = mirada.load(run("book"))
    with torch.no_grad():
        for layer in trained.model.encoder.layers:
            layer.mlp.inner.contract.weight[:, 0] = 1e4
            layer.mlp.inner.expand.weight[0], layer.mlp.inner.expand.bias[0] = 0, -20.0  # what never speaks in float32
            layer.mlp.inner.contract.weight[:, 1:] *= 30
    with pytest.raises(MiradaError, match="int8 costs"):
        in_precision(trained, "int8")


def test_where_there_is_no_held_out_text_it_is_said(tmp_path, caplog):
    path = tiny_run(tmp_path / "run", num_steps=5)
    with caplog.at_level(logging.WARNING):
        found = mirada.translate(path, ["one two"], precision="int8")
    assert found[0][0].text and "int8 could not be checked on held-out text, and is used unchecked" in caplog.text
    assert "exported model" in caplog.text


def test_changed_data_cannot_be_checked_on(tmp_path, caplog):
    own = Path(shutil.copytree(run("book"), tmp_path / "run"))
    config = own / "config.yaml"
    config.write_text(config.read_text().replace("book.txt", "gone.txt"), "utf-8")
    with caplog.at_level(logging.WARNING):
        assert is_rounded(in_precision(mirada.load(own), "int8"))
    assert "unchecked" in caplog.text and "gone.txt" in caplog.text


@pytest.mark.parametrize("how", ["float32", "int8"])
def test_texts_alignments_and_ways_are_as_ever(how):
    writer = in_precision(mirada.load(run("book")), how).writer
    assert "".join(writer.stream("one", max_tokens=30)) == writer.write("one", max_tokens=30)[0]
    texts = [mirada.generate_text(run("book"), "one", count=2, max_tokens=20, seed=3, precision=how) for _ in range(2)]
    assert texts[0] == texts[1] and texts[0] != mirada.generate_text(run("book"), "one", count=2, max_tokens=20, seed=4)
    translator = in_precision(mirada.load(run("pairs")), how).translator
    ways = translator.translate(["one two three"], beam=3, n_best=2)[0]
    assert len(ways) == 2 and ways[0].score >= ways[1].score
    weights_NM = translator.alignment("one two three", "uno dos").weights_NM
    torch.testing.assert_close(weights_NM.sum(1), torch.ones(3))


def test_float32_is_what_the_model_itself_says():
    plain, prepared = mirada.load(run("pairs")), in_precision(mirada.load(run("pairs")))
    asked = ["one two three", "six", "four four two"]
    wanted, found = (each.translator.translate(asked, n_best=2) for each in (plain, prepared))
    assert [[way.text for way in ways] for ways in found] == [[way.text for way in ways] for ways in wanted]
    trained = mirada.load(run("book"))
    assert in_precision(trained).writer.write("one", max_tokens=40) == trained.writer.write("one", max_tokens=40)


def test_rows_are_taken_evenly():
    batches = [Batch(rows[:, None], rows[:, None], rows) for rows in torch.arange(20).split([3, 9, 1, 7])]
    assert torch.cat([batch.rows for batch in evenly(batches, 5)]).tolist() == [0, 4, 8, 12, 16]
    assert torch.cat([batch.inputs for batch in evenly(batches, 99)]).flatten().tolist() == list(range(20))
