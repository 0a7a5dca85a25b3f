"""Reports of runs on text: every kind has its sections, says what is missing, and escapes other people's text."""

import json
import math
import re

import numpy as np
import pytest
import torch
from PIL import Image

from mirada.data.text.tokeniser import Tokeniser
from mirada.report import build_report, style
from mirada.report.contents import read_contents
from mirada.report.facts import repeat_facts
from mirada.report.paired import Difference, compare
from mirada.report.texts_classify import words_shaded
from mirada.report.texts_embed import with_room
from mirada.report.texts_fill import hideable, sense_sentence
from mirada.report.texts_translate import extremes
from mirada.report.verdict import trivial, verdict
from mirada.report.wording import interval_text, metric_value, result_sentence
from mirada.tasks.bleu import quick_scores
from tests.report.fabricated_texts import (
    SOURCES,
    TARGETS,
    classify_run,
    embed_run,
    fill_run,
    generate_run,
    translate_run,
)
from tests.report.test_report import SIZE_LIMIT, Page

KINDS = {
    "translate": (translate_run, "examples extremes alignment"),
    "generate": (generate_run, "written surprise attention"),
    "fill": (fill_run, "examples senses attention"),
    "single-label": (classify_run, "scores mistakes examples attention"),
    "embed": (embed_run, "neighbours map"),
}


@pytest.fixture(scope="module", params=KINDS)
def built(request, tmp_path_factory):
    make, own = KINDS[request.param]
    folder = make(tmp_path_factory.mktemp("runs") / "run")
    return folder, build_report(folder.path).read_text("utf-8"), own


@pytest.fixture
def quick_drawings(monkeypatch):
    """Figures are blank, for tests of what is said."""
    monkeypatch.setattr(style, "_painted", lambda *_: Image.new("RGB", (1, 1)))


def said_of(folder) -> str:
    return " ".join(Page(build_report(folder.path).read_text("utf-8")).text.split())


def test_every_kind_has_its_sections_and_is_sound(built):
    folder, text, own = built
    page = Page(text)
    headings = re.findall(r"<section id=\"(\w+)\"", text)
    assert headings == f"result curves {own} data model training repeat method".split()
    body = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    assert "warning" not in body and "image" not in Page(body).text
    assert result_sentence(json.loads(folder.result.read_text())) in page.text
    assert len(text.encode()) < SIZE_LIMIT
    assert all(image["alt"] for image in page.all("img"))
    assert len(page.all("caption")) == len(page.all("table"))
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert all(link["href"][1:] in ids for link in page.all("a"))
    references = [attributes.get(key) for _, attributes in page.tags for key in ("src", "href", "srcset")]
    assert all(found.startswith(("data:image/", "#")) for found in references if found)
    assert not page.all("b") and not page.all("i") and not page.all("u")


def test_figures_are_those_of_the_kind(built):
    folder, _, _ = built
    names = {path.stem for path in folder.figures.iterdir()} - {"comparison", "loss", "metric"}
    wanted = {
        "transformer": {f"alignment-{n}" for n in range(1, 11)} | {"alignment-heads"},
        "gpt": {"attention", "attention-heads"},
        "bert": {"attention", "attention-heads", "senses-1", "senses-2"},
        "word2vec": {"words"},
    }
    classes = {"confusion", "reliability", "classes"}
    assert names == (classes if "num_classes" in _arguments(folder) else wanted[_system(folder)])


def _arguments(folder) -> dict:
    return json.loads((folder.best / "model.json").read_text())["arguments"]


def _system(folder) -> str:
    return json.loads((folder.best / "model.json").read_text())["system"]


@pytest.mark.usefixtures("quick_drawings")
@pytest.mark.parametrize(("make", "own"), KINDS.values(), ids=KINDS)
def test_stopped_run_says_what_is_missing(tmp_path, make, own):
    folder = make(tmp_path / "run")
    folder.result.unlink()
    folder.predictions.unlink()
    said = said_of(folder)
    assert "This run is not finished: 30 steps were evaluated" in said
    assert said.count("There are no") >= 2


@pytest.mark.usefixtures("quick_drawings")
@pytest.mark.parametrize("make", [make for make, _ in KINDS.values()], ids=KINDS)
def test_missing_model_costs_only_what_needs_it(tmp_path, make):
    folder = make(tmp_path / "run")
    (folder.best / "model.safetensors").unlink()
    said = said_of(folder)
    assert re.search(r"No (attention|alignment|map) is shown: |The model cannot be asked again: ", said)
    assert "model.safetensors" in said


@pytest.mark.usefixtures("quick_drawings")
def test_translations_are_shown_with_search_and_signature(tmp_path):
    folder = translate_run(tmp_path / "run")
    said, result = said_of(folder), json.loads(folder.result.read_text())
    assert "beam 4, GNMT length penalty 0.6" in said
    assert result["bleu_signature"] in said and result["chrf_signature"] in said
    assert "10 held-out sentences, drawn with a fixed seed" in said
    assert "1 of 12 translations were cut off before they ended" in said
    assert "Copying the source gives" in said
    assert sum(text in said for text in SOURCES) >= 10


@pytest.mark.usefixtures("quick_drawings")
def test_recurrent_translator_has_alignments_and_one_head(tmp_path):
    folder = translate_run(tmp_path / "run", "seq2seq", baseline_wrong=None)
    said = said_of(folder)
    assert (folder.figures / "alignment-10.png").exists() and "Head by head" not in said


@pytest.mark.usefixtures("quick_drawings")
def test_translator_without_attention_says_so(tmp_path):
    folder = translate_run(tmp_path / "run", "seq2seq", baseline_wrong=None, score="none")
    assert "No alignment is shown: this model does not attend to the source" in said_of(folder)


def test_paired_bleu_is_that_of_sacrebleu(tmp_path):
    run = read_contents(translate_run(tmp_path / "run", wrong=2, baseline_wrong=8).path)
    from mirada.report.paired import _bleu_of_rows

    rows = np.array([0, 1, 1, 5, 9])
    written = [run.predictions[row]["predicted"] for row in rows]
    expected = quick_scores(written, [[TARGETS[row]] for row in rows])["bleu"]
    assert _bleu_of_rows(run.predictions)(rows) == pytest.approx(expected)
    test = compare(run)
    assert isinstance(test, Difference) and test.low < run.result["value"] - run.baseline.result["value"] < test.high


@pytest.mark.parametrize(
    ("wrong", "baseline_wrong", "said"),
    [
        (0, 10, "^The transformer is .* BLEU ahead of the seq2seq, and that is clear"),
        (10, 0, "^The baseline does better on this data: the seq2seq is .* BLEU ahead"),
        (3, 3, "cannot tell the two apart"),
    ],
)
def test_verdict_on_translations(tmp_path, wrong, baseline_wrong, said):
    run = read_contents(translate_run(tmp_path / "run", wrong=wrong, baseline_wrong=baseline_wrong).path)
    assert re.search(said, verdict(run)) and "paired bootstrap" in verdict(run)


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (0.5, "ahead of a linear model of word counts.*and that is clear"),
        (0.84, "their intervals overlap"),
        (0.93, "^A linear model of word counts does as well or better on this data"),
    ],
)
def test_word_counts_are_a_plain_opponent(tmp_path, counted, said):
    run = read_contents(classify_run(tmp_path / "run", counted=counted).path)
    assert re.search(said, verdict(run))


def test_lower_perplexity_is_ahead(tmp_path):
    folder = fill_run(tmp_path / "run")
    rows = folder.predictions.read_text()
    for part in (folder.config, folder.predictions, folder.result):
        other = folder.baseline.path / part.name
        other.parent.mkdir(exist_ok=True)
        other.write_text(part.read_text())
    folder.baseline.predictions.write_text(rows.replace(",1.2", ",2.2"))
    worse = json.loads(folder.result.read_text()) | {"value": math.exp(2.2)}
    folder.baseline.result.write_text(json.dumps(worse))
    assert re.search(
        r"^The bert of this run is 4\.51 ahead of .* and that is clear", verdict(read_contents(folder.path))
    )


def test_perplexity_in_words(tmp_path):
    run = read_contents(generate_run(tmp_path / "run").path)
    assert "as if it chose evenly among 4.52 of them" in verdict(run) and "No baseline was trained" in verdict(run)
    assert trivial(run.result) == "Knowing only how frequent each token is gives 28.11."
    assert trivial(run.result | {"high": 30.0}).endswith("not clearly better than that.")


def test_numbers_of_text_metrics():
    bleu = {"metric": "bleu", "value": 31.24, "low": 29.8, "high": 32.6, "n": 500, "task": "translate"}
    bleu["interval"] = "sacrebleu's bootstrap over sentences, 95 %"
    assert result_sentence(bleu) == "BLEU 31.2 (29.8–32.6, 95 % bootstrap interval, 500 held-out sentences)"
    assert [metric_value("perplexity", value) for value in (4.517, 1283.4)] == ["4.52", "1,283"]
    assert interval_text({"metric": "ranking", "low": 0.8, "high": 0.82}) == "80.0–82.0"


@pytest.mark.usefixtures("quick_drawings")
def test_hidden_words_and_senses_are_told(tmp_path):
    said = said_of(fill_run(tmp_path / "run"))
    assert "One token of each of 10 held-out texts was hidden" in said
    assert "The vector of “bank” in its sentence is nearest to the right sense in 91.0 %" in said
    assert "No sentences with senses were given" in said_of(fill_run(tmp_path / "other", with_senses=False))


def test_context_that_does_not_help_is_said_not_to():
    entry = {"accuracy": 0.5, "static_accuracy": 0.5, "n": 8}
    assert "the context does not help here" in sense_sentence("bat", entry)
    assert "the context helps" in sense_sentence("bat", entry | {"accuracy": 0.9})


def test_whole_words_are_hidden_where_there_are_some():
    tokeniser = Tokeniser.train(SOURCES, "wordpiece", 90)
    tokens = tokeniser.encode("The cat sees.")
    assert [tokeniser.tokens([tokens[place]])[0] for place in hideable(tokeniser, tokens)] == ["The", "cat", "sees"]
    assert hideable(tokeniser, []) == []


@pytest.mark.usefixtures("quick_drawings")
@pytest.mark.parametrize(("system", "looks"), [("bert", "the first token"), ("gpt", "the last token")])
def test_attention_is_that_of_the_classifying_token(tmp_path, system, looks):
    folder = classify_run(tmp_path / "run", system)
    text = build_report(folder.path).read_text("utf-8")
    assert f"Where {looks}" in text and len(re.findall("--shade: 1.0", text)) >= 6


@pytest.mark.usefixtures("quick_drawings")
def test_texts_that_changed_are_not_shown(tmp_path):
    folder = classify_run(tmp_path / "run")
    source = tmp_path / "reviews.csv"
    source.write_text(source.read_text().replace("cat", "cow"))
    assert said_of(folder).count("changed since the run") == 3


def test_tokens_of_a_word_are_shaded_together():
    tokeniser = Tokeniser.train(["ab ab cd cd", "abcd"], "wordpiece", 12)
    tokens = tokeniser.encode("abcd cd")
    weight_N = torch.full((len(tokens) + 2,), 1 / (len(tokens) + 2))
    words, special = words_shaded(tokeniser, tokens, weight_N)
    assert [word.text for word in words] == ["abcd", "cd"] and words[0].shade == 1.0
    shares = [float(word.share.split()[0]) for word in words] + [float(special["special"].split()[0])]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    assert special["most"].startswith("“abcd”")


def test_words_are_written_where_there_is_room():
    places = [[0.0, 0.0], [0.1, 0.05], [0.1, 1.0], [3.0, 0.0]]
    assert with_room(["frequent", "rare", "above", "beside"], places) == {0, 2, 3}


def test_worst_and_best_translations():
    rows = [{"row": str(n), "source": "s", "target": "t" * (n + 1), "predicted": "p"} for n in range(4)]
    score = {"0": 100.0, "1": 100.0, "2": 3.0, "3": 50.0}
    worst, best = extremes(rows, score)
    assert [row["target"] for row in worst] == ["ttt", "tttt"]
    assert [row["target"] for row in best] == ["tt", "t"]


def test_short_command_names_the_tokens(tmp_path):
    facts = repeat_facts(read_contents(generate_run(tmp_path / "run").path))
    command = "mirada train texts.txt --system gpt --preset text text.tokeniser=character train.steps=30 train.seed=3"
    assert facts["short"] == command
