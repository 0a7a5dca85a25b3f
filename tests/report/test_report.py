"""The report of a run: builds for every task, says what is missing, and loads nothing from elsewhere."""

import json
import re
import sys
from html.parser import HTMLParser

import matplotlib
import pytest
from PIL import Image

from mirada.errors import MiradaError
from mirada.report import build_report, style
from mirada.report.contents import read_contents
from mirada.report.wording import result_sentence
from tests.report.fabricated import digits_run, labels_run, numbers_run

pytestmark = pytest.mark.xdist_group("report")  # what its tests share is made once

KINDS = {"single-label": digits_run, "multi-label": labels_run, "regression": numbers_run}
SIZE_LIMIT = 2_000_000


class Page(HTMLParser):
    """Tags, text and references of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="session", params=KINDS)
def built(request, tmp_path_factory):
    folder = KINDS[request.param](tmp_path_factory.mktemp("runs") / "run")
    path = build_report(folder.path)
    return folder, path.read_text("utf-8")


@pytest.fixture
def quick_drawings(monkeypatch):
    """Figures are blank, for tests of what is said."""
    monkeypatch.setattr(style, "_painted", lambda *_: Image.new("RGB", (1, 1)))


def page_of(folder) -> str:
    return Page(build_report(folder.path).read_text("utf-8")).text


def test_every_kind_has_every_section(built):
    folder, text = built
    headings = re.findall(r"<section id=\"(\w+)\"", text)
    own = "scores mistakes examples attention relevance heads".split()
    assert headings == ["result", "curves", *own, *"data model training repeat method".split()]
    assert "warning" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    assert (folder.figures / "predictions.png").stat().st_size > 1000
    assert (folder.figures / "attention.png").exists()


def test_result_and_baseline_are_those_of_the_files(built):
    folder, text = built
    said = Page(text).text
    result, baseline = json.loads(folder.result.read_text()), json.loads(folder.baseline.result.read_text())
    assert result_sentence(result) in said
    assert result_sentence(baseline) in said
    for row in result.get("per_class", []):
        cells = [f"{100 * row[key]:.1f}" for key in ("precision", "recall", "f1")]
        assert re.search(re.escape(row["name"]) + r"\s*" + r"\s*".join(map(re.escape, cells)), said)


def test_loads_nothing_from_elsewhere(built):
    _, text = built
    page = Page(text)
    references = [attributes.get(key) for _, attributes in page.tags for key in ("src", "href", "srcset", "data")]
    assert all(found.startswith(("data:image/", "#")) for found in references if found)
    assert not page.all("script") and not page.all("link") and "@import" not in text and "url(" not in text


def test_is_accessible(built):
    _, text = built
    page = Page(text)
    assert all(image["alt"] for image in page.all("img"))
    assert len(page.all("caption")) == len(page.all("table")) > 5
    assert page.all("html")[0]["lang"] == "en" and len(page.all("h1")) == 1
    targets = {attributes.get("id") for _, attributes in page.tags}
    assert all(link["href"][1:] in targets for link in page.all("a"))


def test_is_small_enough_for_a_mail(built):
    _, text = built
    assert len(text.encode()) < SIZE_LIMIT


@pytest.mark.usefixtures("quick_drawings")
def test_attention_lies_on_the_grid_of_the_model(tmp_path):
    folder = digits_run(tmp_path / "run", baseline_right=None)
    said = page_of(folder)
    assert "Attention of the class token in the last attention layer" in said
    assert "grid of 2 × 2 patches" in said


@pytest.mark.usefixtures("quick_drawings")
def test_without_a_baseline_it_says_so(tmp_path):
    assert "No baseline was trained" in page_of(digits_run(tmp_path / "run", baseline_right=None))


@pytest.mark.usefixtures("quick_drawings")
def test_unfinished_baseline_is_named(tmp_path):
    folder = digits_run(tmp_path / "run")
    folder.baseline.result.unlink()
    assert "The baseline cnn was not finished" in page_of(folder)


@pytest.mark.usefixtures("quick_drawings")
def test_stopped_run_has_a_report_without_result(tmp_path):
    folder = digits_run(tmp_path / "run", baseline_right=None)
    folder.result.unlink()
    folder.predictions.unlink()
    said = page_of(folder)
    assert "This run is not finished: 30 steps were evaluated" in said
    assert "There are no predictions of held-out images" in said
    assert (folder.figures / "loss.png").exists()


@pytest.mark.usefixtures("quick_drawings")
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_result_without_predictions(tmp_path, make):
    folder = make(tmp_path / "run")
    folder.predictions.unlink()
    said = page_of(folder)
    assert "their predictions cannot be paired" in said
    assert "There are no predictions of held-out images" in said


@pytest.mark.usefixtures("quick_drawings")
def test_run_stopped_before_its_first_evaluation(tmp_path):
    folder = digits_run(tmp_path / "run", baseline_right=None)
    for path in (folder.result, folder.predictions, folder.metrics, folder.best / "model.safetensors"):
        path.unlink()
    assert "stopped before its first evaluation" in page_of(folder)


@pytest.mark.usefixtures("quick_drawings")
def test_images_that_are_gone_are_said_to_be_gone(tmp_path):
    folder = labels_run(tmp_path / "run", baseline_right=None)
    for photo in (tmp_path / "photos").iterdir():
        photo.unlink()
    said = page_of(folder)
    assert said.count("The held-out images cannot be shown") == 5
    assert "photo 1" in said or "does not exist" in said


@pytest.mark.usefixtures("quick_drawings")
def test_data_that_changed_is_not_shown(tmp_path):
    folder = digits_run(tmp_path / "run", baseline_right=None, checksum="of other images")
    assert "digits: changed since the run" in page_of(folder)


@pytest.mark.usefixtures("quick_drawings")
def test_missing_model_only_costs_the_attention(tmp_path):
    folder = digits_run(tmp_path / "run", baseline_right=None)
    (folder.best / "model.safetensors").unlink()
    said = page_of(folder)
    assert "No attention is shown:" in said and "16 held-out images, drawn" in said


@pytest.mark.usefixtures("quick_drawings")
def test_system_without_attention_says_so(tmp_path):
    folder = digits_run(tmp_path / "run")
    assert "cnn has no attention layers" in page_of(_as_run(folder.baseline, folder))


def _as_run(folder, parent):
    folder.data.write_text(parent.data.read_text())
    return folder


def test_names_are_text_and_never_markup(tmp_path):
    names = [
        "<script>alert(1)</script>",
        "a & b",
        "$x_$",
        "猫",
        "</style>",
        '"quoted"',
        "{{ 7*7 }}",
        "x" * 90,
        "9%",
        "_",
    ]
    source = '<img src=x onerror="alert(2)">'
    folder = digits_run(tmp_path / "run", baseline_right=None, class_names=names, source=source, notes=["<b>note</b>"])
    text = build_report(folder.path).read_text("utf-8")
    page = Page(text)
    assert not page.all("script") and not page.all("b")
    assert not [attributes for _, attributes in page.tags if "onerror" in attributes]
    assert all(name in page.text for name in names) and source in page.text
    assert "49" not in re.findall(r"<th scope=\"row\">([^<]*)</th>", text)


@pytest.mark.usefixtures("quick_drawings")
def test_names_of_files_are_text(tmp_path):
    folder = labels_run(tmp_path / "run", baseline_right=None)
    (first, *_), hostile = sorted((tmp_path / "photos").iterdir()), tmp_path / "photos" / "<svg onload=x>.png"
    first.rename(hostile)
    folder.predictions.write_text(folder.predictions.read_text().replace(str(first), str(hostile)))
    text = build_report(folder.path).read_text("utf-8")
    assert not Page(text).all("svg")


def test_many_classes(tmp_path):
    from mirada.report.classes import class_section

    folder = digits_run(tmp_path / "run", share_right=0.5, class_names=[f"class {n}" for n in range(43)])
    section = class_section(read_contents(folder.path))
    assert len(section["table"]) == 43 and section["confusion"].width > 600
    assert section["pairs"][0]["count"] == max(pair["count"] for pair in section["pairs"]) > 0


def test_folder_that_is_no_run(tmp_path):
    with pytest.raises(MiradaError, match="is not the folder of a run"):
        build_report(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.yaml", "a: [", "cannot be read as YAML"),
        ("config.yaml", "3", "holds no settings"),
        ("data.json", "{", "cannot be read as JSON"),
        ("data.json", "{}", "has no 'source'"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, file, content, message):
    folder = digits_run(tmp_path / "run", baseline_right=None)
    (folder.path / file).write_text(content)
    with pytest.raises(MiradaError, match=message):
        build_report(folder.path)


def test_plotting_state_of_the_process_is_untouched():
    before, had_pyplot = matplotlib.rcParams.copy(), "matplotlib.pyplot" in sys.modules
    style.draw("a", "b", lambda figure, theme: figure.subplots().plot([1, 2]))
    assert ("matplotlib.pyplot" in sys.modules) == had_pyplot
    assert matplotlib.rcParams.copy() == before
