"""Learn: parts are chosen and the core answers; the lectures' examples are computed on the spot."""

import re

import pytest

# The runs that all look at are trained once.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("studio")]


def test_another_neighbourhood_is_another_mask_and_another_kernel(visit):
    page = visit("#/learn")
    page.locator("canvas").first.wait_for()
    before = page.locator("main").inner_text()
    page.get_by_role("group", name="Neighbours").get_by_label("Kind").select_option("causal")
    page.wait_for_function("() => location.hash.includes('causal')")
    page.wait_for_function("(before) => document.querySelector('main').innerText !== before", arg=before)
    page.wait_for_load_state("networkidle")


def test_a_demo_computes_the_number_of_the_lecture(visit):
    page = visit("#/learn")
    page.get_by_text(re.compile("E33")).first.wait_for()
    for item in ("E11", "E22", "E29", "E49"):
        assert page.get_by_text(re.compile(item)).count() >= 1
