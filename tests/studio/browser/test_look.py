"""Look: an image of one's own, and what is shown are the numbers of Python."""

import csv
import re

import numpy as np
import pytest
from PIL import Image

import mirada

# The runs that all look at are trained once.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("studio")]

LAYER = 2  # of three, from 1
AT = (3, 5)  # row and column of a patch, from 0


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    """An image that the model has not seen."""
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    path = tmp_path_factory.mktemp("own") / "noise <b>.png"
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture(scope="module")
def explained(folder, photo):
    return mirada.explain(folder / "vit-photos", str(photo), method=["chefer", "rollout", "attention"])[0]


def choose_file(page, photo) -> None:
    page.set_input_files("input[type=file]", str(photo))
    page.get_by_role("heading", name=re.compile("What mattered for")).wait_for()


def attention(page):
    return page.locator("section", has=page.get_by_role("heading", name="Click a patch: where it looks"))


def click_patch(page, row: int, column: int) -> None:
    canvas = attention(page).locator("canvas.heat")
    box = canvas.bounding_box()
    side = box["width"] / 8  # patches of 4 in 32 pixels
    canvas.click(position={"x": (column + 0.5) * side, "y": (row + 0.5) * side})


def saved_rows(page, part) -> list[dict]:
    with page.expect_download() as download:
        part.get_by_role("button", name="CSV").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def caption(page) -> str:
    return attention(page).get_by_role("heading", level=3).first.inner_text()


def test_an_image_is_answered_with_the_numbers_of_python(visit, photo, explained):
    page = visit("#/look/vit-photos")
    choose_file(page, photo)
    shown = page.locator("table.answers").first.inner_text()
    for name, share in explained.answers:
        assert name in shown and f"{100 * share:.3g}"[:3] in shown
    mattered = page.locator("section", has=page.get_by_role("heading", name=re.compile("What mattered for")))
    values = [float(row["relevance"]) for row in saved_rows(page, mattered)]
    expected = next(one for one in explained.maps if one.method == "chefer").relevance_RC
    np.testing.assert_allclose(values, expected.ravel(), rtol=1e-6, atol=1e-9)
    assert page.locator("b", has_text="b>").count() == 0  # the name is text, not markup


def test_a_clicked_patch_shows_where_it_looks_and_who_looks_at_it(visit, photo, explained):
    page = visit("#/look/vit-photos")
    choose_file(page, photo)
    slider = attention(page).get_by_role("slider", name="Layer")
    slider.fill(str(LAYER))
    before = attention(page).locator("canvas.heat").evaluate("canvas => canvas.toDataURL()")
    click_patch(page, *AT)
    page.wait_for_function("() => location.hash.includes('at=')")
    attention(page).get_by_role("heading", name=re.compile("row 4, column 6")).wait_for()
    assert attention(page).locator("canvas.heat").evaluate("canvas => canvas.toDataURL()") != before
    weights_HNM = explained.layers[LAYER - 1].weights_HNM
    token = 1 + AT[0] * 8 + AT[1]  # after the class token
    row = [float(row["weight"]) for row in saved_rows(page, attention(page))]
    np.testing.assert_allclose(row, weights_HNM.mean(0)[token], rtol=1e-5, atol=1e-8)
    attention(page).get_by_role("button", name="who looks at it").click()
    attention(page).get_by_role("heading", name=re.compile("who looks at it")).wait_for()
    column = [float(row["weight"]) for row in saved_rows(page, attention(page))]
    np.testing.assert_allclose(column, weights_HNM.mean(0)[:, token], rtol=1e-5, atol=1e-8)


def test_a_head_is_chosen_by_the_slider_and_by_keys(visit, explained, photo):
    page = visit("#/look/vit-photos")
    choose_file(page, photo)
    attention(page).get_by_role("slider", name="Head").fill("3")
    attention(page).get_by_role("heading", name=re.compile("head 3")).wait_for()
    canvas = attention(page).locator("canvas.heat")
    canvas.focus()
    for key in ("ArrowDown", "ArrowRight", "PageUp"):
        canvas.press(key)
    attention(page).get_by_role("heading", name=re.compile(r"Layer 2 .*head 3.*row \d, column \d")).wait_for()
    row, column = map(int, re.search(r"row (\d), column (\d)", caption(page)).groups())
    found = [float(one["weight"]) for one in saved_rows(page, attention(page))]
    expected = explained.layers[1].weights_HNM[2, 1 + (row - 1) * 8 + column - 1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_a_link_shows_the_same_again(visit):
    place = "#/look/vit-photos?at=14.00%2C22.00&head=2&held=3&layer=1&way=column"
    page = visit(place)
    attention(page).get_by_role(
        "heading", name=re.compile("Layer 1 .*head 2.*who looks at it.*row 4, column 6")
    ).wait_for()
    assert page.evaluate("() => location.hash") == place


def test_two_models_side_by_side_on_one_image(visit):
    page = visit("#/look/vit-photos?held=3")
    page.get_by_role("heading", name=re.compile("What mattered for")).wait_for()
    page.get_by_label("Beside it").select_option("vit-photos-mean")
    attention(page).locator("canvas.heat").nth(1).wait_for()
    assert page.locator("table.answers", has_text="vit-photos-mean").count() == 1
    assert page.get_by_text(re.compile("correlation|agree", re.IGNORECASE)).count() >= 1


def test_faithfulness_stands_beside_the_picture(visit, photo, explained):
    page = visit("#/look/vit-photos")
    choose_file(page, photo)
    strip = next(one for one in explained.maps if one.method == "chefer").faithfulness
    page.get_by_text(strip.verdict).wait_for()
    table = page.locator("table", has_text="Area under the curve").inner_text()
    assert f"{strip.deletion_auc:.3g}"[:4] in table and f"{strip.insertion_auc:.3g}"[:4] in table


def test_a_file_that_is_no_image_is_refused_in_a_sentence(visit, tmp_path):
    path = tmp_path / "page.png"
    path.write_bytes(b"GIF89a<script>alert(1)</script>")
    page = visit("#/look/vit-photos", may_refuse=True)
    page.set_input_files("input[type=file]", str(path))
    refused = page.get_by_role("alert").filter(has_text="page.png")
    refused.wait_for()
    assert "Traceback" not in refused.inner_text()
