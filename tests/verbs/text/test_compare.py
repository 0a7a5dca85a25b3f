"""Systems of text are compared as those of images are."""

from __future__ import annotations

import pytest

import mirada
from tests.verbs.text.texts import sources


@pytest.mark.long
def test_translators_are_compared_on_the_same_sentences(tmp_path):
    shape = "system.arguments.dim=16 system.arguments.depth=1"
    found = mirada.compare(
        [f"transformer {shape} system.arguments.num_heads=2", f"seq2seq {shape}"],
        data=sources()["pairs"],
        seeds=1,
        settings=["text.tokeniser=word", "data.task=translate", "train.evaluations=1", "train.steps=2"],
        out=tmp_path / "contest",
    )
    assert [row.entrant.label.split()[0] for row in found.rows] == ["transformer", "seq2seq"]
    assert all(row.metric == "bleu" and row.epochs > 0 for row in found.rows) and "seq2seq" in found.table
