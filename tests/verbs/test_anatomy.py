"""`mirada anatomy` on runs of every kind: files, numbers, figures, and what is refused."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from PIL import Image
from typer.testing import CliRunner

import mirada
import mirada.report
from mirada.cli.anatomy import anatomy as command
from mirada.cli.failures import told
from mirada.errors import MiradaError
from mirada.explain.anatomy import anatomy as taken_apart
from mirada.verbs.anatomy import anatomy
from mirada.verbs.anatomy_inputs import image_inputs, spread, text_inputs
from tests import shapes
from tests.graphs import make_graph
from tests.verbs.text import texts
from tests.verbs.text.tiny_bert import tiny_bert
from tests.verbs.trained_run import TINY, make_photos

pytestmark = pytest.mark.xdist_group("anatomy")  # what its tests share is made once


def on_command_line(*words: object):
    app = typer.Typer()
    app.command()(told(command))
    return CliRunner().invoke(app, [str(word) for word in words])


def train_quietly(source: Path, settings: list[str], out: Path) -> Path:
    """Without the page, which takes seconds to draw. Runs that other tests share are not made so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["mirada.report"], "build_report", lambda path: None)
        return mirada.train(source, settings=settings, out=out).path


@pytest.fixture(scope="module")
def deeper(tmp_path_factory):
    """Two layers, patches with filters, a class token and learned positions, on images that are not square."""
    folder = tmp_path_factory.mktemp("deeper")
    settings = [*TINY, "system.arguments.depth=2", "system.arguments.pooling=class", "system.arguments.patch_size=2"]
    settings += ["train.steps=4", "baseline.size=nano", "data.image_size=[8,12]"]
    return train_quietly(make_photos(folder / "photos"), settings, folder / "run")


@pytest.fixture(scope="module")
def whole(deeper, tmp_path_factory):
    """Taken apart with all figures, against its baseline; and the folder."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    return anatomy(deeper, against=deeper / "baseline", out=folder), folder


@pytest.fixture
def no_figures(monkeypatch):
    monkeypatch.setattr("mirada.report.anatomy.anatomy_drawings", lambda anatomy: {})


SHOWN = ("distance", "entropy", "landmarks", "divergence", "similarity", "cka", "cka-against", "filters", "positions")


@pytest.mark.long
def test_a_run_is_taken_apart_into_files(whole):
    found, folder = whole
    names = {path.name for path in found.files}
    assert names == {path.name for path in folder.iterdir()}
    assert names == {"anatomy.html", "anatomy.json", *(f"anatomy-{name}.png" for name in SHOWN)}
    assert set(found.figures) == {*SHOWN, "alignment", "against"} - {"cka", "cka-against"}
    numbers = json.loads((folder / "anatomy.json").read_text("utf-8"))
    assert numbers["run"] == "vit on photos" and numbers["rows"] == "renormalised" and numbers["unit"] == "px"
    np.testing.assert_allclose(numbers["heads"][1]["distance_H"], found.anatomy.heads[1].distance_H, rtol=1e-5)
    assert numbers["heads"][0]["queries"] == {"size": [4, 6], "num_extra": 1}
    assert sum(numbers["filters"]["variance_K"]) == pytest.approx(1, abs=1e-4)
    assert len(numbers["positions"]["cosine_NN"]) == 24


@pytest.mark.long
def test_the_page_is_one_file_with_every_figure_and_number(whole):
    found, folder = whole
    page = (folder / "anatomy.html").read_text("utf-8")
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    for drawing in found.figures.values():
        assert drawing.light_uri in page and drawing.alt in page
    layer = found.anatomy.heads[0]
    assert f"{layer.uniform_distance:.2f}" in page and "4 × 6 + 1" in page
    assert "rows renormalised" in page and "Columns: cnn on photos" in page


@pytest.mark.long
def test_figures_are_pictures_in_both_themes(whole):
    found, folder = whole
    for drawing in found.figures.values():
        for png in (drawing.light, drawing.dark, (folder / f"{drawing.name}.png").read_bytes()):
            with Image.open(io.BytesIO(png)) as image:
                assert image.format == "PNG" and image.size[0] > 300 and np.asarray(image.convert("L")).std() > 5


def test_held_out_images_are_seen_as_in_evaluation(run):
    loaded = mirada.load(run)
    (inputs,) = image_inputs([loaded], None, most=500)
    predictions = mirada.evaluate(run).rows
    assert len(inputs) == len(predictions)
    with torch.inference_mode():
        again = loaded.task.answers(loaded.model(inputs))
    assert [row["predicted"] for row in again] == [row["predicted"] for row in predictions]


def test_numbers_are_those_of_the_model_on_its_inputs(deeper, no_figures, tmp_path):
    found = anatomy(deeper, out=tmp_path, rows="as they are").anatomy
    loaded = mirada.load(deeper)
    (inputs,) = image_inputs([loaded], None, most=500)
    again = taken_apart(loaded.model, inputs, rows="as they are")
    np.testing.assert_array_equal(found.divergence_TT, again.divergence_TT)
    np.testing.assert_array_equal(found.heads[1].distance_H, again.heads[1].distance_H)
    assert "as they are" in (tmp_path / "anatomy.html").read_text("utf-8")


def test_other_images_can_be_given(run, no_figures, tmp_path):
    others = make_photos(tmp_path / "others", per_class=3, seed=7)
    found = anatomy(run, images=others, out=tmp_path / "out").anatomy
    assert found.num_inputs == 9
    arrays = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    assert anatomy(run, images=arrays, out=tmp_path / "out").anatomy.num_inputs == 2


def test_two_runs_of_different_sizes_are_compared(deeper, run, no_figures, tmp_path):
    found = anatomy(deeper, against=run, out=tmp_path).anatomy
    assert found.against is not None and found.against.cka_FF.shape == (2, 1)
    one, other = image_inputs([mirada.load(deeper), mirada.load(run)], None, most=7)
    assert (one.shape, other.shape) == ((7, 3, 8, 12), (7, 3, 8, 8))


@pytest.mark.long
def test_a_baseline_without_attention_can_be_compared_but_not_taken_apart(deeper, whole, tmp_path):
    compared = whole[0].anatomy.against
    assert compared is not None and compared.others == ("stages.0", "stages.1", "stages.2")
    assert np.isfinite(compared.cka_FF).all()
    with pytest.raises(MiradaError, match="cnn has no attention layers"):
        anatomy(deeper / "baseline", out=tmp_path)
    ended = on_command_line(deeper / "baseline", "--out", tmp_path / "none")
    assert ended.exit_code == 2 and "has no attention layers" in ended.stderr
    assert not (tmp_path / "none").exists()


def test_command_line(own_run, no_figures):
    ended = on_command_line(own_run)
    assert ended.exit_code == 0, ended.stderr
    assert re.search(r"layer 1: distance [\d.]+ \([\d.]+–[\d.]+\) px, uniform [\d.]+; entropy", ended.stdout)
    assert (own_run / "anatomy" / "anatomy.html").exists()
    assert on_command_line(own_run, "--quiet").stdout == ""


@pytest.mark.long
def test_masks(no_figures, tmp_path):
    found = anatomy(shapes.run(), out=tmp_path / "out").anatomy
    assert found.num_inputs == 4 and found.heads[0].keys.size == (2, 2)
    image = shapes.shapes() / "images" / "00.jpg"
    tiled = anatomy(shapes.tiled_run(), images=image, out=tmp_path / "tiled").anatomy
    assert tiled.num_inputs == 1 and tiled.heads[0].keys.size == (1, 1)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["book", "lines", "labels", "pairs"])
def test_texts(kind, tmp_path):
    run = texts.run(kind)
    found = anatomy(run, out=tmp_path).anatomy
    assert found.unit == "tokens" and found.num_inputs > 1
    kinds = {layer.kind for layer in found.heads}
    assert kinds == ({"self", "target", "cross"} if kind == "pairs" else {"self"})
    page = (tmp_path / "anatomy.html").read_text("utf-8")
    assert "Filters" not in page and "to the token before" in page


@pytest.mark.long
def test_tokens_of_texts_are_those_that_the_model_was_trained_on(tmp_path):
    loaded = mirada.load(texts.run("labels"))
    ((first, *_),) = text_inputs([loaded], ["one two three"], most=5)
    tokeniser = loaded.tokeniser
    assert first[0].tolist() == [tokeniser.start, *tokeniser.encode("one two three"), tokeniser.end]
    translator = mirada.load(texts.run("pairs"))
    (((source, read),),) = text_inputs([translator], ["one two"], most=5)
    assert source.tolist() == [*translator.tokeniser.encode("one two"), translator.tokeniser.end]
    assert read[0] == translator.target_tokeniser.start


def test_given_texts_of_a_model_without_its_data(no_figures, tmp_path):
    exported = tiny_bert(tmp_path / "bert", "fill")
    found = anatomy(exported, images=["one two three", "two", "four five"], out=tmp_path / "out").anatomy
    assert found.num_inputs == 3
    with pytest.raises(MiradaError, match="without held-out data"):
        anatomy(exported, out=tmp_path / "out")


def test_models_of_different_things_are_not_compared(run, tmp_path):
    with pytest.raises(MiradaError, match="was trained on other things"):
        anatomy(run, against=texts.run("lines"), out=tmp_path)
    with pytest.raises(MiradaError, match="cannot be compared with a model that"):
        anatomy(texts.run("lines"), against=texts.run("pairs"), out=tmp_path)


@pytest.mark.long
def test_runs_that_have_no_anatomy_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(MiradaError, match="word2vec has no attention layers"):
        anatomy(texts.run("words"), out=tmp_path)
    settings = ["train.epochs=2", "train.evaluations=1", "baseline.name=none"]
    nodes = train_quietly(make_graph(tmp_path / "friends"), settings, tmp_path / "graph")
    with pytest.raises(MiradaError, match="is a model of graph"):
        anatomy(nodes, out=tmp_path)


def test_a_run_without_its_images_says_what_is_missing(own_run, tmp_path):
    shutil.move(own_run / "predictions.csv", tmp_path / "kept.csv")
    with pytest.raises(MiradaError, match="has no predictions of held-out images yet"):
        anatomy(own_run)


def test_some_of_many_are_spread_evenly():
    assert spread(list(range(101)), 5) == [0, 25, 50, 75, 100]
    assert spread("abc", 5) == ["a", "b", "c"]
