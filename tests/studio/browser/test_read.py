"""Read: a sentence, what its tokens look at, its translation, and what comes next, with the numbers of Python."""

import csv
import re

import numpy as np
import pytest

import mirada
from tests.verbs.text.texts import NUMBERS

# The runs that all look at are trained once.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("studio")]

TEXT = "two six one"


def type_sentence(page, text: str) -> None:
    page.locator("textarea").fill(text)
    page.get_by_role("button", name="Read", exact=True).click()


def test_a_sentence_is_translated_with_its_alignment(visit, folder):
    page = visit("#/read/transformer-numbers")
    type_sentence(page, TEXT)
    expected = mirada.load(folder / "transformer-numbers").predict([TEXT])[0]["text"]
    page.get_by_text(expected, exact=True).first.wait_for()
    assert set(expected.split()) <= set(NUMBERS.values())
    page.locator("canvas.matrix").first.wait_for()


def test_weights_of_tokens_are_those_of_python(visit, folder):
    page = visit("#/read/bert-labels")
    type_sentence(page, TEXT)
    with page.expect_download() as download:
        page.locator("section[aria-labelledby=read-attention]").get_by_role("button", name="CSV").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    layer = mirada.explain(folder / "bert-labels", [TEXT], method="attention")[0].layers[-1]
    found = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(found, layer.weights_HNM.mean(0), rtol=1e-5, atol=1e-8)
    for word in TEXT.split():
        assert word in rows[0]


def test_what_comes_next_is_chosen_step_by_step(visit):
    page = visit("#/read/gpt-book?text=one+")
    steps = page.locator("section", has=page.get_by_role("heading", name=re.compile("next", re.I))).last
    first = steps.get_by_role("button").filter(has_text=re.compile("%")).first
    first.wait_for()
    before = page.evaluate("() => location.hash")
    first.click()
    page.wait_for_function("(before) => location.hash !== before", arg=before)
    assert "written=" in page.evaluate("() => location.hash")


def test_attention_as_lines_between_tokens(visit):
    page = visit(f"#/read/bert-labels?text={TEXT.replace(' ', '+')}&view=graph")
    page.locator("svg line, svg path").first.wait_for()
    assert page.locator("svg text", has_text="six").count() >= 1
