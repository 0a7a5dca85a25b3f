"""The report of a run on plots: its numbers are those of the files, what is missing is said, names are escaped."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from torch import nn

from mirada.data.geo.splits import kept_rows, known_rows
from mirada.errors import MiradaError
from mirada.report import build_report, style
from mirada.report.contents import read_contents
from mirada.report.facts import repeat_facts
from mirada.report.paired import Difference
from mirada.report.plots import plot_section
from mirada.report.plots_area import area_section
from mirada.report.plots_attention import looks_of, rows_that_ask
from mirada.report.plots_influence import location_effect
from mirada.report.plots_maps import Frame
from mirada.report.plots_opened import open_run_on_plots
from mirada.report.plots_schemes import gap_sentence, score_table
from mirada.report.plots_validation import Validation, read_validation
from mirada.report.verdict import verdict
from mirada.report.wording import decimal, percent, result_sentence
from mirada.tasks.field_scores import block_draws, field_scores, interval_of
from tests.report.fabricated_plots import COVARIATE, NOISE, TARGET, plots_run
from tests.report.test_report import SIZE_LIMIT, Page

pytestmark = pytest.mark.xdist_group("report of plots")  # what its tests share is made once

OWN = "validation measured residuals intervals influence attention area"
FIGURES = (
    *("schemes", "split", "scatter", "scatter-folds", "residual-map", "coverage"),
    *("importance", "location", "attention", "applicability"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return plots_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def text(folder):
    return build_report(folder.path).read_text("utf-8")


@pytest.fixture(scope="module")
def run(folder):
    return read_contents(folder.path)


@pytest.fixture(scope="module")
def opened(run):
    return open_run_on_plots(run)


@pytest.fixture
def quick_drawings(monkeypatch):
    """Figures are blank, for tests of what is said."""
    monkeypatch.setattr(style, "_painted", lambda *_: Image.new("RGB", (1, 1)))


def plain(text: str) -> str:
    """With a space between the cells of tables."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def said_of(folder) -> str:
    return plain(build_report(folder.path).read_text("utf-8"))


def test_has_every_section_and_figure(folder, text):
    headings = re.findall(r"<section id=\"(\w+)\"", text)
    assert headings == f"result curves {OWN} data model training repeat method".split()
    assert "warning" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    for name in FIGURES:
        assert (folder.figures / f"{name}.png").stat().st_size > 1000, name
    assert len(text.encode()) < SIZE_LIMIT


def test_is_accessible(text):
    page = Page(text)
    assert all(image["alt"] for image in page.all("img"))
    assert len(page.all("caption")) == len(page.all("table")) > 8
    targets = {attributes.get("id") for _, attributes in page.tags}
    assert all(link["href"][1:] in targets for link in page.all("a"))


def test_numbers_are_those_of_the_files(folder, text):
    said, found = plain(text), json.loads(folder.validation.read_text())
    assert result_sentence(json.loads(folder.result.read_text())) in said
    assert "95 % block bootstrap interval" in said
    for scheme in found["schemes"].values():
        for model in scheme["models"].values():
            scores = model["scores"]
            low, high = (decimal(end) for end in model["intervals"]["r2"])
            assert re.search(rf"{re.escape(decimal(scores['r2']))} \({low}( to |–){high}\)", said)
            shown = [decimal(scores["r"]), f"{scores['mae']:.4g}", f"{scores['rmse']:.4g}"]
            assert " ".join([*shown, decimal(scores["rae"]), decimal(scores["rse"])]) in said
            assert f"{decimal(model['moran']['value'])} (p " in said
        coverage = scheme["coverage"]
        assert f"{percent(coverage['promised'])} were promised" in said
        measured = [percent(coverage[key]) for key in ("blocks", "rows")]
        assert " ".join([*measured, percent(min(coverage["per_fold"].values()))]) in said
        assert f"± {coverage['half_width']:.4g}" in said


def test_names_are_escaped(text):
    for name in (TARGET, COVARIATE, "<u>site"):
        assert name not in text
    assert f"of {TARGET}" in plain(text)  # as it is written in the data


def test_models_come_in_the_order_of_schemes(run):
    groups = score_table(read_validation(run), run)
    assert [group["scheme"] for group in groups] == ["random", "blocked", "buffered"]
    assert [row["is_ours"] for row in groups[0]["rows"]] == [True, False, False, False]


def test_difference_is_paired_over_blocks(run):
    """By hand: the same drawn blocks for both models."""
    validation = read_validation(run)
    of = sorted((row for row in validation.rows if row["scheme"] == "blocked"), key=lambda row: int(row["row"]))
    target, block, ours, theirs = (
        np.array([float(row[name]) for row in of]) for name in ("target", "block", "model", "random_forest")
    )
    draws = block_draws(target, ours, block)["r2"] - block_draws(target, theirs, block)["r2"]
    low, high = interval_of(draws, len(np.unique(block)))
    assert validation.difference(("blocked", "model"), ("blocked", "random_forest")) == Difference(low, high)
    gap = field_scores(target, ours)["r2"] - field_scores(target, theirs)["r2"]
    assert low < gap < high


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (
            2.0,
            r"^On blocked folds the spatioformer is \S+ ahead of the best simple model, random forest, and that",
        ),
        (40.0, "^A simple model does better on this data: on blocked folds random forest is .* and that is clear: R² "),
        (10.0, "but these plots cannot tell the two apart .* the simple model is the cheaper choice"),
    ],
)
def test_verdict_is_about_the_best_simple_model(tmp_path, ours, said):
    run = read_contents(plots_run(tmp_path / "run", schemes=("blocked",), noise={**NOISE, "model": ours}).path)
    assert re.search(said, verdict(run))
    assert re.search(r"95 % interval [+−]\d\.\d+ to [+−]\d\.\d+ by a paired bootstrap over blocks", verdict(run))


def test_random_folds_alone_are_told_as_such(run):
    validation = read_validation(run)
    alone = Validation({"schemes": {"random": validation.summary["schemes"]["random"]}}, validation.rows)
    assert alone.trusted == "random"
    assert "Only one kind of folds" in gap_sentence(alone, run)


def test_gap_between_random_and_blocked_folds(run):
    validation = read_validation(run)
    said = gap_sentence(validation, run)
    near, far = validation.r2("random"), validation.r2("blocked")
    assert near > far and f"is {decimal(near)} on random folds and {decimal(far)} on blocked ones" in said
    assert "owed to training plots near by" in said
    same = [
        {**row, "scheme": scheme}
        for row in validation.rows
        if row["scheme"] == "random"
        for scheme in ("random", "blocked")
    ]
    summary = {"schemes": dict.fromkeys(("random", "blocked"), validation.summary["schemes"]["random"])}
    assert "cannot tell whether training plots near by help" in gap_sentence(Validation(summary, same), run)


@pytest.mark.usefixtures("quick_drawings")
def test_without_validation_it_says_so(tmp_path):
    folder = plots_run(tmp_path / "run", schemes=())
    said = said_of(folder)
    assert "This run was not validated by folds, because maps.folds is 0" in said
    assert "The area of applicability takes its threshold from the folds" in said
    assert "test plots. Patches of one colour" in said  # residuals of the held-out plots instead
    assert "Which plots it rests on Where three held-out plots" in said
    folder.config.write_text(folder.config.read_text().replace("folds: 0", "folds: 3"))
    assert "The validation by folds is not finished" in said_of(folder)


@pytest.mark.usefixtures("quick_drawings")
def test_plots_that_are_gone_or_changed(tmp_path):
    folder = plots_run(tmp_path / "run", schemes=("blocked",))
    source = tmp_path / "plots.csv"
    lines = source.read_text().splitlines()
    source.write_text("\n".join(lines[:-1]) + "\n")
    section = plot_section(read_contents(folder.path))
    for key in ("no_location", "no_attention", "no_area"):
        assert "changed since the run" in section[key]
    assert section["area"] is section["attention"] is section["location"] is section["split"] is None
    source.unlink()
    assert "cannot be read again" in said_of(folder)


@pytest.mark.usefixtures("quick_drawings")
def test_a_model_that_is_gone_takes_only_its_own_figures(tmp_path):
    folder = plots_run(tmp_path / "run", schemes=("blocked",))
    (folder.best / "model.safetensors").unlink()
    section = plot_section(read_contents(folder.path))
    assert "model.safetensors" in section["no_location"] and "model.safetensors" in section["no_attention"]
    assert section["area"] is not None and section["split"] is not None


def test_attention_is_over_the_plots_that_the_model_keeps(run, opened):
    looks = looks_of(run, opened)
    assert looks.weight_NP.shape == (3, len(known_rows(opened.split)))
    assert looks.weight_NP.sum(1) == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(looks.seen, known_rows(opened.split))
    assert looks.predicted_N == pytest.approx(opened.predict(opened.layers[looks.asked]), rel=1e-5)
    mean_N = looks.weight_NP @ opened.plots.targets_N[looks.seen]  # the head of an untrained model changes nothing
    assert looks.predicted_N == pytest.approx(mean_N, rel=1e-3)


def test_kept_plots_are_drawn_the_same_every_time():
    rows = np.arange(100, 200)
    few = kept_rows(rows, 7)
    assert len(few) == 7 and (np.diff(few) > 0).all() and set(few) <= set(rows)
    np.testing.assert_array_equal(few, kept_rows(rows, 7))
    assert kept_rows(rows, 100) is rows


def test_the_plots_that_ask_are_low_middle_and_high():
    targets = np.array([50.0, 1, 2, 3, 10, 11, 12, 20, 21, 22])
    assert rows_that_ask(targets, np.arange(1, 10)).tolist() == [2, 5, 8]
    assert rows_that_ask(targets, np.array([4, 7])).tolist() == [4, 7]


def test_other_systems_do_not_look_at_plots(run, opened):
    other = replace(opened)
    other.__dict__["model"] = nn.Linear(1, 1)
    with pytest.raises(MiradaError, match="looks at the pixels around a place"):
        looks_of(run, other)


@pytest.mark.usefixtures("quick_drawings")
def test_area_divides_the_held_out_plots(run, opened):
    found = area_section(run, opened)
    inside, outside = (int(row["num"]) for row in found["rows"])
    assert inside + outside == len(run.predictions)
    assert found["share"] == percent(inside / len(run.predictions))
    error = np.array([float(r[f"predicted_{TARGET}"]) - float(r[f"target_{TARGET}"]) for r in run.predictions])
    both = sum(n * float(row["mae"]) for n, row in zip((inside, outside), found["rows"], strict=True) if n)
    assert both / len(error) == pytest.approx(np.abs(error).mean(), rel=1e-3)


@pytest.mark.usefixtures("quick_drawings")
def test_a_model_blind_to_location_has_no_effect_of_it(run, opened):
    blind = replace(opened)
    blind.__dict__["predict"] = lambda layers: layers[:, 0, 0, 0]
    sentence = location_effect(run, blind)["sentence"]
    location = float(re.search(r"\(standard deviation (\S+)\)", sentence)[1])
    layers = float(re.search(r"differ by (\S+) ", sentence)[1])
    assert location < 1e-5 < layers


def test_map_is_not_cut_at_the_antimeridian():
    frame = Frame.around(np.array([[179.0, -40.0], [-178.0, -44.0]]))
    assert frame.east - frame.west < 4
    lon, lat = frame.place(np.array([[-179.0, -41.0]]))
    assert frame.west < lon[0] < frame.east and lat[0] == -41


def test_short_command_says_what_is_of_the_data(run):
    short = repeat_facts(run)["short"]
    assert "maps.block=300" in short and "data.label_column=" in short
    assert "chip_size" not in short  # without rasters there are no chips
