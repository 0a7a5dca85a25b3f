"""The page of explanations: whole, offline, harmless to open, and with the numbers that it was given."""

import base64
import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from mirada.errors import MiradaError
from mirada.report.explained import ExplainedImage, ExplainedText, Layer, Map, TokenMap, explained_page, rows_only
from mirada.report.explained_page import quantised
from tests.report.fabricated_explained import ENGLISH, NASTY, SPANISH, image, picture, strip, text, translation, weights

COMMAND = "mirada explain runs/birds bird.png --method chefer"


class Page(HTMLParser):
    """Tags that are open, those that were seen, and the text of each kind of tag."""

    EMPTY = ("meta", "img", "input", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data


@pytest.fixture(scope="module")
def items():
    return [image(), text(), translation()]


@pytest.fixture(scope="module")
def page(items):
    return explained_page(items, f"Birds {NASTY}", COMMAND)


def facts_of(page: str) -> dict:
    (found,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(found)


def floats(encoded: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(encoded), dtype="<f4")


def decoded(layer: dict) -> np.ndarray:
    codes = np.frombuffer(base64.b64decode(layer["codes"]), dtype=np.uint8).reshape(layer["shape"])
    step = floats(layer["step"]).reshape(layer["shape"][:2])[..., None]
    low = 0 if layer["low"] is None else floats(layer["low"]).reshape(layer["shape"][:2])[..., None]
    return low + step * codes


def test_the_page_is_whole(page):
    parsed = Page(page)
    assert page.startswith("<!DOCTYPE html>") and not parsed.open
    assert parsed.tags[0] == ("html", {"lang": "en"})
    assert COMMAND in parsed.texts["pre"]
    assert "off by at most 1/510" in parsed.texts["li"]


def test_nothing_comes_from_elsewhere(page):
    assert not re.search(r"https?:|//\w+\.|@import|url\(|<link|<iframe|\bfetch\(|XMLHttpRequest|\bimport\(", page)
    references = [attributes.get(key) for _, attributes in Page(page).tags for key in ("src", "href", "srcset")]
    assert not any(references)
    assert "default-src 'none'" in page


def test_names_are_text_and_never_markup(page, items):
    assert NASTY not in page and "<script>alert" not in page
    assert [tag for tag, _ in Page(page).tags].count("script") == 2
    assert Page(page).texts["h1"] == f"Birds {NASTY}"
    first, second, _ = facts_of(page)["items"]
    assert first["answers"][1] == [NASTY, 0.12] and NASTY in second["tokens"]
    assert "innerHTML" not in page and "insertAdjacentHTML" not in page and "document.write" not in page


def test_weights_decode_to_those_that_were_given(page, items):
    for told, item in zip(facts_of(page)["items"], items, strict=True):
        assert [layer["name"] for layer in told["layers"]] == [layer.name for layer in item.layers]
        for layer, given in zip(told["layers"], item.layers, strict=True):
            off = np.abs(decoded(layer) - given.weights_HNM).max(-1)
            assert (off <= given.weights_HNM.max(-1) / 510 * 1.0001).all()
            assert decoded(layer).max() == pytest.approx(given.weights_HNM.max())


def test_relevance_and_curves_are_exact(page, items):
    told, given = facts_of(page)["items"][0]["maps"], items[0].maps
    for map_told, map in zip(told, given, strict=True):
        assert np.array_equal(floats(map_told["values"]), map.relevance_RC.astype(np.float32).ravel())
        assert map_told["grid"] == list(map.relevance_RC.shape)
        assert map_told["is_not"] == map.is_not and map_told["cost"] == map.cost
    measured, curves = told[0]["strip"], given[0].faithfulness
    assert np.array_equal(floats(measured["random_deletion"]), curves.random_deletion.astype(np.float32))
    assert measured["deletion_auc"] == curves.deletion_auc and measured["baseline"] == "blur"
    assert told[2]["strip"] is None


@pytest.mark.parametrize("low", [0.0, -0.7])
def test_a_step_of_a_row_is_its_own(low):
    generator = np.random.default_rng(0)
    given = generator.uniform(low, 1, (2, 3, 5)).astype(np.float32) * np.array([1, 1e-4, 7], np.float32)[:, None]
    codes, low_HN, step_HN = quantised(given)
    back = low_HN[..., None] + step_HN[..., None] * codes
    span_HN = given.max(-1) - np.minimum(given.min(-1), 0)
    assert (np.abs(back - given).max(-1) <= span_HN / 510 * 1.001).all()
    assert (low_HN == 0).all() == (low == 0)


def test_zeros_stay_zero():
    codes, _, step_HN = quantised(np.zeros((2, 3, 5), np.float32))
    assert not codes.any() and not step_HN.any()
    causal = weights(2, 5, 5, is_causal=True)
    codes, low_HN, _ = quantised(causal)
    assert not low_HN.any() and not codes[:, ~np.tri(5, dtype=bool)].any()


def test_cells_reach_beyond_a_padded_picture_and_double_on_coarser_grids(page):
    told = facts_of(page)["items"][0]
    assert told["size"] == [26, 33]
    assert [map["cell"] for map in told["maps"]] == [[4, 3], [4, 3], [8, 6]]
    assert told["layers"][-1]["queries"] == {"size": [7, 11], "extra": 1, "cell": [4, 3]}
    assert told["layers"][-1]["keys"] == {"size": [4, 6], "extra": 1, "cell": [8, 6]}


def test_cells_halve_on_finer_grids_and_share_the_picture_otherwise():
    item = image()
    assert item.extent == (28, 33)
    assert item.cell((14, 22)) == (2, 1.5)
    assert item.cell((28, 11)) == (1, 3)
    assert item.cell((5, 8)) == pytest.approx((28 / 5, 33 / 8))


def test_a_translation_has_the_tokens_of_both_sides(page):
    encoder, decoder, cross = facts_of(page)["items"][2]["layers"]
    assert encoder["labels"] == [SPANISH, SPANISH]
    assert decoder["labels"] == [ENGLISH, ENGLISH]
    assert cross["labels"] == [ENGLISH, SPANISH]


def test_rows_only_keeps_the_class_token_or_the_mean():
    item = image(depth=2)
    without = dataclasses.replace(item, layers=[Layer("a", weights(3, 77, 77), ((7, 11), 0), ((7, 11), 0))])
    kept, mean = rows_only(item), rows_only(without)
    assert kept.layers[0].weights_HNM.shape == (5, 1, 78) and kept.layers[0].asker == "class token"
    assert np.array_equal(kept.layers[0].weights_HNM[:, 0], item.layers[0].weights_HNM[:, 0])
    assert np.allclose(mean.layers[0].weights_HNM[:, 0], without.layers[0].weights_HNM.mean(1))
    assert rows_only(kept).layers[0] is kept.layers[0]
    short = explained_page([item], "t", "c", whole_matrices=False)
    assert facts_of(short)["items"][0]["layers"][0]["shape"] == [5, 1, 78]


def test_rows_of_a_text_have_the_asker_as_label():
    told = facts_of(explained_page([text()], "t", "c", whole_matrices=False))["items"][0]
    assert told["layers"][0]["labels"][0] == ["all tokens (mean)"]


def test_a_large_model_fits_into_ten_megabytes():
    """12 layers of 12 heads on 197 tokens, with all weights."""
    grid = ((14, 14), 1)
    layers = [Layer(f"blocks.{n}", weights(12, 197, 197, n), grid, grid) for n in range(12)]
    maps = [Map("chefer", "Chefer", "It is not.", np.ones((14, 14)), "", strip())]
    item = ExplainedImage("a.png", picture(224, 224), [("a", 1.0)], "a", maps, layers, (16, 16))
    whole = len(explained_page([item], "t", "c"))
    rows = len(explained_page([item], "t", "c", whole_matrices=False))
    assert whole < 10_000_000 and rows < 500_000


def test_verdict_says_whether_a_random_order_is_beaten():
    good = strip()
    assert good.verdict == "Better than a random order, at deletion and at insertion."
    worse = {"deletion_auc": good.random_deletion_auc + 0.1}
    assert dataclasses.replace(good, **worse).verdict == "Better than a random order at insertion only."
    worst = dataclasses.replace(good, **worse, insertion_auc=good.random_insertion_auc + 0.001)
    assert worst.verdict == "No better than a random order: do not rely on this map."


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: explained_page([], "t", "c"), "nothing to explain"),
        (lambda: Layer("a", weights(2, 3, 5), ((3,), 0), ((7,), 0)), "which are 7"),
        (lambda: Layer("a", np.ones((3, 5)), ((3,), 0), ((5,), 0)), r"shape \(3, 5\)"),
        (lambda: Layer("a", np.full((2, 3, 5), np.nan), ((3,), 0), ((5,), 0)), "not a number"),
        (lambda: Layer("a", weights(2, 3, 5), ((3,), 0), ((5,), 0), "other"), "kind='other'"),
        (lambda: Map("m", "M", "", np.ones(3)), r"relevance by m is of shape \(3,\)"),
        (lambda: TokenMap("m", "M", "", np.ones((3, 2))), "expected one per token"),
        (lambda: dataclasses.replace(strip(), deletion=np.ones(3)), "deletion \\(3,\\)"),
        (lambda: dataclasses.replace(image(), picture_HWC=np.ones((5, 7, 3))), "float64"),
        (lambda: dataclasses.replace(image(), maps=[], layers=[]), "neither relevance nor attention"),
        (lambda: dataclasses.replace(text(), tokens=["one"]), "expected 1"),
        (lambda: ExplainedText("t", [], None, [], "a", [], []), "no tokens"),
    ],
)
def test_bad_input_is_named(make, found):
    with pytest.raises(MiradaError, match=found):
        make()


def test_a_line_of_as_many_tokens_as_a_grid_lies_on_it():
    """A pooling looks at all tokens of the grid before it, and tells them as a line."""
    grid = ((7, 11), 1)
    layers = [
        Layer("blocks.0", weights(2, 78, 78), grid, grid),
        Layer("pool", weights(1, 1, 78), ((1,), 0), ((78,), 0)),
        Layer("other", weights(1, 1, 5), ((1,), 0), ((5,), 0)),
    ]
    item = dataclasses.replace(image(), layers=layers)
    _, pool, other = facts_of(explained_page([item], "t", "c"))["items"][0]["layers"]
    assert pool["keys"] == {"size": [7, 11], "extra": 1, "cell": [4, 3]}
    assert pool["queries"] == {"size": [1], "extra": 0, "cell": None} == other["queries"]
    assert other["keys"]["cell"] is None
