"""The page of explanations in a browser without a network: what it shows is what it was given."""

import csv
import dataclasses
import io
import re
import shutil

import numpy as np
import pytest
from matplotlib import colormaps

from mirada.report.explained import ExplainedImage, Layer, explained_page
from tests.report.fabricated_explained import ENGLISH, SPANISH, image, text, translation, weights

pytestmark = pytest.mark.long

ROW, COLUMN = 3, 5
CENTRE = (3.5 * 4, 5.5 * 3)  # of that patch, in pixels of the picture
OF_CANVAS = "(canvas, at) => [...canvas.getContext('2d').getImageData(at[0], at[1], 1, 1).data].slice(0, 3)"


def beside() -> ExplainedImage:
    """A query that pools the patches, and one that looks at five tokens which lie nowhere."""
    layers = [
        Layer("pool", weights(1, 1, 77), ((1,), 0), ((77,), 0)),
        Layer("other", weights(1, 1, 5), ((1,), 0), ((5,), 0)),
    ]
    return dataclasses.replace(image("beside.png"), layers=layers)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explained") / "page.html"
    path.write_text(
        explained_page([image(), text(), translation(), beside()], "Birds", "mirada explain"), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="module")
def browser():
    browsers = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium to open the page in")
    with browsers.sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium) as launched:
        yield launched


@pytest.fixture
def visit(browser, file):
    """Opens the page at a permalink; at the end there must have been no error and no request."""
    failures, opened = [], []

    def heard(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            failures.append(request.url)

    def go(permalink="", width=1280, **settings):
        page = browser.new_page(viewport={"width": width, "height": 900}, offline=True, **settings)
        page.on("pageerror", lambda failure: failures.append(str(failure)))
        page.on("console", lambda message: failures.append(message.text) if message.type == "error" else None)
        page.on("request", heard)
        page.goto(file.as_uri() + permalink)
        page.wait_for_selector("body[data-ready]")
        opened.append(page)
        return page

    yield go
    for page in opened:
        page.close()
    assert not failures


def drawn(page) -> None:
    """What was changed is drawn in the next frame."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def numbers(page, card: str) -> list[list[str]]:
    """The file that the page saves."""
    with page.expect_download() as saving:
        page.locator(f"#{card} button", has_text="CSV").click()
    return list(csv.reader(io.StringIO(saving.value.path().read_text("utf-8"))))


def pixel(page, canvas: str, y: float, x: float) -> list[int]:
    """The colour at a place of the picture of 33 pixels' width."""
    factor = page.locator(canvas).evaluate("(canvas) => canvas.width") / 33
    return page.locator(canvas).evaluate(OF_CANVAS, [int(x * factor), int(y * factor)])


def slide(page, card: str, label: str, value: int) -> None:
    page.locator(f"#{card}").get_by_label(label, exact=True).fill(str(value))
    drawn(page)


def click_patch(page, card: str) -> None:
    canvas = page.locator(f"#{card} canvas.heat")
    box = canvas.bounding_box()
    y, x = CENTRE
    canvas.click(position={"x": x / 33 * box["width"], "y": y / 26 * box["height"]})
    drawn(page)


def test_a_patch_looks_where_its_weights_say(visit):
    page = visit()
    click_patch(page, "attention")
    slide(page, "attention", "Layer", 2)
    slide(page, "attention", "Head", 4)
    given = image().layers[1].weights_HNM[3]
    token = 1 + ROW * 11 + COLUMN
    first, *rows = numbers(page, "attention")
    assert first == ["token", "row", "column", "weight"] and rows[0][0] == "class token" and len(rows) == 78
    off = given.max(-1)[token] / 510 * 1.001
    assert np.allclose([float(row[3]) for row in rows], given[token], atol=off, rtol=0)
    assert rows[-1][1:3] == ["7", "11"]
    caption = page.locator("#attention h3").inner_text()
    assert "Layer 2 (blocks.1), head 4: where the patch in row 4, column 6 looks" in caption
    page.locator("#attention button", has_text="who looks at it").click()
    drawn(page)
    rows = numbers(page, "attention")[1:]
    assert np.allclose([float(row[3]) for row in rows], given[:, token], atol=given.max() / 510, rtol=0)


def test_heads_are_mixed_and_grids_may_be_coarser(visit):
    page = visit("#at=14,16.5&heads=max")
    given = image().layers[2].weights_HNM.max(0)
    rows = numbers(page, "attention")[1:]
    assert len(rows) == 25 and rows[-1][1:3] == ["4", "6"]
    expected = given[1 + ROW * 11 + COLUMN]
    assert np.allclose([float(row[3]) for row in rows], expected, atol=given.max() / 510, rtol=0)
    page.locator("#attention button", has_text="all (mean)").click()
    page.locator("#attention button", has_text=re.compile("^mean$")).click()
    drawn(page)
    values = [float(row[3]) for row in numbers(page, "attention")[1:]]
    assert np.allclose(values, image().layers[2].weights_HNM.mean((0, 1)), atol=1 / 510, rtol=0)
    assert sum(values) == pytest.approx(1, abs=0.02)


def test_colours_are_those_of_the_numbers(visit):
    page = visit("#opacity=100&layer=1&heads=2&at=e0")
    row = image().layers[0].weights_HNM[1, 0]
    value = row[1 + ROW * 11 + COLUMN] / row[1:].max()
    expected = colormaps["magma"](round(255 * float(value)), bytes=True)[:3]
    assert np.abs(np.subtract(pixel(page, "#attention canvas.heat", *CENTRE), expected)).max() <= 6
    relevance = image().maps[0].relevance_RC
    share = (relevance[ROW, COLUMN] - relevance.min()) / np.ptp(relevance)
    expected = colormaps["magma"](round(255 * float(share)), bytes=True)[:3]
    assert np.abs(np.subtract(pixel(page, "#relevance canvas.heat", *CENTRE), expected)).max() <= 6
    ticks = page.locator("#relevance figure .ticks span").all_inner_texts()
    assert float(ticks[0]) == pytest.approx(relevance.min(), rel=0.01)
    assert float(ticks[2]) == pytest.approx(relevance.max(), rel=0.01)


def test_keys_walk_over_the_picture_layers_and_heads(visit):
    page = visit("#at=14,16.5&layer=2&heads=2")
    page.locator("#attention canvas.heat").focus()
    for key in ("ArrowRight", "ArrowDown", "PageUp", "+", " "):
        page.keyboard.press(key)
    drawn(page)
    caption = page.locator("#attention h3").inner_text()
    assert "Layer 1 (blocks.0), head 3: who looks at the patch in row 5, column 7" in caption
    page.keyboard.press("Home")
    page.locator("#attention canvas.heads").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    drawn(page)
    caption = page.locator("#attention h3").inner_text()
    assert "Layer 2 (blocks.1), head 2: who looks at the class token" in caption


def test_a_permalink_gives_the_same_view_and_the_same_permalink(visit):
    page = visit()
    click_patch(page, "relevance")
    page.locator("#relevance button", has_text="Integrated gradients").click()
    page.locator("#answer button", has_text="smooth").click()
    slide(page, "attention", "Layer", 1)
    address, said = page.url, page.locator("main").inner_text()
    assert "#" in address and "method=ig" in address and "smooth=1" in address
    again = visit(address[address.index("#") :])
    assert again.locator("main").inner_text() == said and again.url == address
    again.locator("#answer").get_by_label("Heat over picture").fill("70")
    again.goto(address.split("#")[0] + "#item=2")
    drawn(again)
    assert again.locator("#answer h2").inner_text() == "review"
    again.go_back()
    drawn(again)
    assert again.locator("#answer h2").inner_text() == "bird.png"


def test_a_permalink_of_something_else_does_no_harm(visit):
    page = visit("#item=0&layer=-3&heads=77&at=x,y&step=1000&method=nothing&view=<b>&opacity=1e9&way=up")
    assert page.locator("#answer h2").inner_text() == "bird.png"
    page = visit("#layer=99&heads=77&at=1e9,-5&step=1000&opacity=-5")
    assert "head 5: where the patch in row 7, column 1 looks" in page.locator("#attention h3").inner_text()


def test_the_strip_shows_the_masked_picture_and_its_probability(visit):
    page = visit()
    slide(page, "relevance", "Step", 2)
    item = image()
    shown, measured = item.picture_HWC, item.maps[0].faithfulness
    said = page.locator("#relevance .step .readout").inner_text()
    deleted, random = (float(found) for found in re.findall(r"(?:toucan|order) ([\d.]+\d)", said))
    assert deleted == pytest.approx(measured.deletion[2], rel=0.01)
    assert random == pytest.approx(measured.random_deletion[2], rel=0.01)
    relevance = item.maps[0].relevance_RC
    hidden = np.zeros(77, bool)
    hidden[np.argsort(-relevance, axis=None, kind="stable")[: round(0.2 * 77)]] = True
    for y, x in ((0, 0), (3, 5), (5, 2), *np.argwhere(hidden.reshape(7, 11))[:3]):
        place = int(4 * y + 2), int(3 * x + 1)
        picture = 255 - shown if hidden[y * 11 + x] else shown
        assert pixel(page, "canvas.hidden-part", place[0] + 0.5, place[1] + 0.5) == picture[place].tolist()
    page.locator("#relevance button", has_text="insert").click()
    drawn(page)
    said = page.locator("#relevance .step .readout").inner_text()
    assert f"{measured.insertion[2]:.3g}" in said and "20.0 % of the patches inserted" in said


def test_tokens_matrix_and_graph_of_a_text(visit):
    page = visit("#item=2&layer=1&heads=2")
    item = text()
    relevance = [float(row[1]) for row in numbers(page, "relevance")[1:]]
    assert np.allclose(relevance, item.relevance[0].relevance_N, rtol=1e-5)
    page.locator("#attention .token", has_text="dog").click()
    drawn(page)
    given = item.layers[0].weights_HNM[1]
    titles = page.locator("#attention .token").evaluate_all("(tokens) => tokens.map((token) => token.title)")
    assert np.allclose([float(title.replace("−", "-")) for title in titles], given[3], atol=0.01)
    labels, *rows = numbers(page, "attention")
    assert labels[1:] == item.tokens and [row[0] for row in rows] == item.tokens
    values = np.array([[float(value) for value in row[1:]] for row in rows])
    assert np.allclose(values, given, atol=given.max() / 510, rtol=0)
    page.locator("#attention button", has_text=re.compile("^graph$")).click()
    drawn(page)
    slide(page, "attention", "Strongest edges", 7)
    assert page.locator("#attention line.edge").count() == 7
    assert page.locator("#attention .node").all_text_contents()[3].startswith("dog")
    with page.expect_download() as saving:
        page.locator("#attention button", has_text="Graph as SVG").click()
    saved = saving.value.path().read_text("utf-8")
    assert saved.count('class="edge') == 7 and "→" in saved


def test_an_alignment_has_its_source_on_the_other_side(visit):
    page = visit("#item=3")
    labels, *rows = numbers(page, "attention")
    assert labels[1:] == SPANISH and [row[0] for row in rows] == ENGLISH
    page.locator("#attention .token", has_text="perro").click()
    drawn(page)
    assert "who looks at “perro”" in page.locator("#attention h3").inner_text()


def test_pictures_are_saved(visit):
    for permalink, card in (("", "relevance"), ("#view=matrix", "attention"), ("#item=2", "relevance")):
        page = visit(permalink)
        with page.expect_download() as saving:
            page.locator(f"#{card} button", has_text="PNG").click()
        assert saving.value.path().read_bytes().startswith(b"\x89PNG") and saving.value.suggested_filename.endswith(
            ".png"
        )


def test_a_window_may_be_as_narrow_as_a_line(visit):
    for permalink in ("", "#view=matrix", "#item=2"):
        page = visit(permalink)
        page.set_viewport_size({"width": 1, "height": 1})
        drawn(page)
        page.set_viewport_size({"width": 800, "height": 600})
        drawn(page)
        assert page.locator("#attention canvas.heads").evaluate("(canvas) => canvas.clientWidth") > 200


def test_tokens_beside_the_picture_are_shown_as_a_matrix(visit):
    page = visit("#item=4&layer=2")
    assert page.locator("#attention .warning").is_visible()
    assert page.locator("#attention canvas.matrix").is_visible()
    rows = numbers(page, "attention")[1:]
    assert np.allclose([float(row[3]) for row in rows], beside().layers[1].weights_HNM[0, 0], atol=1 / 510)
    slide(page, "attention", "Layer", 1)
    assert "where the query of this layer looks" in page.locator("#attention h3").inner_text()
    assert page.locator("#attention canvas.heat").is_visible()


@pytest.mark.parametrize("permalink", ["", "#view=matrix&smooth=1", "#item=2", "#item=2&view=graph", "#item=3"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone_shows_all_of_it(visit, permalink, scheme):
    page = visit(permalink, width=390, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    unnamed = "[...document.querySelectorAll('button, input, canvas[tabindex], svg[role]')].filter((one) => "
    unnamed += "one.checkVisibility() && !one.getAttribute('aria-label') && !one.textContent && !one.closest('label'))"
    assert page.evaluate(f"{unnamed}.length") == 0
