"""Runs: the list, several compared, the report, and a training that is started, stopped and resumed."""

import re

import pytest

import mirada

# The runs that all look at are trained once.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("studio")]


def test_the_list_has_every_run_with_its_score(visit, folder):
    page = visit("#/runs")
    page.get_by_role("link", name="vit-photos", exact=True).wait_for()
    table = page.locator("table").first.inner_text()
    for path in folder.iterdir():
        if (path / "result.json").exists():
            assert path.name in table
    value = mirada.load(folder / "transformer-numbers").result["value"]
    assert f"{value:.3g}" in table


def test_runs_are_compared_by_their_curves(visit):
    page = visit("#/runs")
    for name in ("vit-photos", "vit-photos-mean"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    page.locator(".uplot canvas").first.wait_for()
    legend = page.locator("ul.legend").first.inner_text()
    assert "vit-photos" in legend and "vit-photos-mean" in legend


def test_the_report_opens_in_a_frame_of_its_own(visit):
    page = visit("#/runs/vit-photos")
    page.get_by_role("button", name="Show the report here").click()
    frame = page.frame_locator("iframe.report")
    frame.locator("h1").first.wait_for()
    assert "Accuracy" in frame.locator("main").inner_text()


def test_a_training_is_started_stopped_and_resumed(visit, folder):
    page = visit("#/runs?new=1")
    page.get_by_label(re.compile("^Data|Source", re.I)).first.fill("photos")
    page.get_by_label(re.compile("^Minutes", re.I)).fill("0.2")
    page.get_by_role("button", name=re.compile("^Start")).click()
    page.wait_for_function("() => /#.runs.[\\w-]+/.test(location.hash) && !location.hash.includes('new=')")
    name = page.evaluate("() => decodeURIComponent(location.hash.split('/')[2].split('?')[0])")
    page.get_by_role("progressbar").wait_for(timeout=300_000)
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Resume").wait_for(timeout=300_000)
    assert not (folder / name / "result.json").exists() and (folder / name / "last").exists()
    page.get_by_role("button", name="Resume").click()
    page.locator("h1", has_text="finished").wait_for(timeout=600_000)
    assert (folder / name / "report.html").exists()


def test_a_mistake_in_the_form_is_told(visit):
    page = visit("#/runs?new=1", may_refuse=True)
    page.get_by_label(re.compile("^Data|Source", re.I)).first.fill("no/such/folder")
    page.get_by_role("button", name=re.compile("^Start")).click()
    page.get_by_role("alert").filter(has_text="no/such/folder").wait_for()
