"""Every page: accessible, at both widths, in both languages and themes, without a console error."""

import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("studio")]

AXE = Path(__file__).resolve().parents[3] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
TEXT = "two+six+one"
PAGES = {
    "runs": ("#/runs?compare=vit-photos,vit-photos-mean", "table"),
    "run": ("#/runs/vit-photos", ".uplot"),
    "new": ("#/runs?new=1", "form"),
    "look": ("#/look/vit-photos?held=15&at=14.00%2C14.00", "canvas.heat"),
    "read": (f"#/read/transformer-numbers?text={TEXT}", "canvas.matrix"),
    "map": ("#/map/spatioformer-plots?at=-36.5%2C147.85", ".map-told .value"),
    "learn": ("#/learn", "canvas"),
}


def opened(visit, name: str, **settings):
    place, ready = PAGES[name]
    page = visit(place, **settings)
    page.locator(ready).first.wait_for()
    page.wait_for_load_state("networkidle")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_serious_for_people_who_cannot_see_well(visit, name, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed; `make studio` does")
    page = opened(visit, name, color_scheme=scheme)
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, { iframes: false })")
    serious = [
        f"{one['id']}: {one['help']} ({one['nodes'][0]['html'][:120]})"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert not serious


@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_a_desk_and_a_phone(shows, name):
    place, ready = PAGES[name]

    def wait(page) -> None:
        page.locator(ready).first.wait_for()
        page.wait_for_load_state("networkidle")

    shows(name, place, wait)


def test_the_whole_studio_in_spanish(visit):
    page = visit("#/runs", locale="es-MX")
    page.get_by_role("heading", name="Entrenamientos").wait_for()
    assert page.evaluate("() => document.documentElement.lang") == "es"
    for link in page.locator("header nav a").all():
        link.click()
        page.locator("main h1").wait_for()
        left = re.findall(r"\b(?:shell|runs|look|read|map|learn|parts)\.[a-z]\w*", page.locator("main").inner_text())
        assert not left


def test_the_page_is_reached_by_keys_alone(visit):
    page = visit("#/runs")
    page.get_by_role("link", name="vit-photos", exact=True).wait_for()
    page.keyboard.press("Tab")
    assert "Skip" in page.evaluate("() => document.activeElement.innerText")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "page"
