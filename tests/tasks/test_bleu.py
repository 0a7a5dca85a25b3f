"""Scores of translations are sacrebleu's, also of very bad ones."""

import pytest

from mirada.tasks.bleu import quick_scores, scores

sacrebleu = pytest.importorskip("sacrebleu")

REFERENCES = [["The cat sat on the mat.", "A cat sat on a mat."], ["Nobody knows the hour."], ["It is raining again."]]
WRITTEN = ["The cat sat on a mat.", "Nobody knows an hour.", "It rains again."]


def test_scores_intervals_and_signatures_are_sacrebleus():
    streams = [["The cat sat on the mat.", *(refs[0] for refs in REFERENCES[1:])], ["A cat sat on a mat.", None, None]]
    found = scores(WRITTEN, REFERENCES)
    for name, metric in {"bleu": sacrebleu.metrics.BLEU(), "chrf": sacrebleu.metrics.CHRF()}.items():
        wanted = metric.corpus_score(WRITTEN, streams, n_bootstrap=1000)
        assert found[name] == pytest.approx(wanted.score) == quick_scores(WRITTEN, REFERENCES)[name]
        assert found[f"{name}_low"] == pytest.approx(max(0, wanted._mean - wanted._ci), rel=1e-5)
        assert found[f"{name}_high"] == pytest.approx(min(100, wanted._mean + wanted._ci), rel=1e-5)
        assert found[f"{name}_signature"] == str(metric.get_signature())


@pytest.mark.parametrize("bad", ["", "x", "ñ"])
def test_where_hardly_anything_is_right_there_is_an_interval_too(bad):
    """In some draws of sentences nothing is right at all."""
    found = scores(["a b c d e", *[bad] * 4], [["a b c d e"]] * 5)
    for name in ("bleu", "chrf"):
        assert 0 <= found[f"{name}_low"] < found[name] < found[f"{name}_high"] <= 100
