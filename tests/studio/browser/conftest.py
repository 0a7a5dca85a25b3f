"""The studio in a browser without a network: a real server, really trained runs, and no error in the console."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from PIL import Image

from mirada.studio.pages import STATIC
from tests.studio.browser.runs_folder import runs_folder

SECONDS = 30_000  # ms that a page may take on a busy machine
DOCS = Path(__file__).resolve().parents[3] / "docs" / "images" / "studio"
WIDTHS = (1280, 390)
TALLEST = 1900
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="package")  # other tests of the process have browsers of their own, and two at once are refused
def chromium():
    browsers = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium to open the studio in")
    if not (STATIC / "index.html").exists():
        pytest.skip("the pages of the studio are not built; `make studio` does, with npm")
    with browsers.sync_playwright() as playwright, playwright.chromium.launch(executable_path=path) as launched:
        yield launched


@pytest.fixture(scope="package")
def folder(chromium) -> Path:
    """Nothing is trained where there is no browser to look at it."""
    return runs_folder()


@pytest.fixture(scope="package")
def address(chromium, folder):
    """Of a studio in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "mirada", "studio", str(folder), "--port", str(port), "--no-browser"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(folder.parent / "studio.log", "wb") as log:
        server = subprocess.Popen([sys.executable, *words], stdout=log, stderr=log, env=environment)
        found = f"http://127.0.0.1:{port}/"
        try:
            _wait_for(found, server, folder.parent / "studio.log")
            yield found
        finally:
            server.terminate()
            server.wait(90)


def _wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(1800):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer: {log.read_text()}")


@pytest.fixture
def visit(chromium, address):
    """Opens a page of the studio; at the end there must have been no error, and no request to elsewhere."""
    failures, contexts = [], []

    def heard(request):
        if not request.url.startswith((address, "data:", "blob:")):
            failures.append(f"asks for {request.url}")

    def go(place: str, width: int = 1280, *, may_refuse: bool = False, **settings):
        def said(message):
            # Browsers call every answer above 399 an error.
            if message.type == "error" and not (may_refuse and "status of 4" in message.text):
                failures.append(message.text)

        context = chromium.new_context(
            viewport={"width": width, "height": 900 if width > 500 else 844},
            locale=settings.pop("locale", "en-GB"),
            reduced_motion="reduce",
            **settings,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        page.on("pageerror", lambda failure: failures.append(str(failure)))
        page.on("console", said)
        page.on("request", heard)
        page.goto(address + place)
        return page

    yield go
    for context in contexts:
        context.close()
    assert not failures


def save_small(picture: bytes, file: Path) -> None:
    """The upper part in few colours, as a page of documentation needs it."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.crop((0, 0, image.width, min(image.height, TALLEST)))
    file.parent.mkdir(parents=True, exist_ok=True)
    image.quantize(96, dither=Image.Dither.NONE).save(file, optimize=True)


@pytest.fixture
def shows(visit):
    """Pictures of a page at both widths for the documentation, written where MIRADA_SCREENSHOTS is set."""

    def take(name: str, place: str, ready, **settings) -> None:
        for width in WIDTHS:
            page = visit(place, width, **settings)
            ready(page)
            too_wide = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert too_wide <= 0, f"{name} at {width} px has to be scrolled sideways by {too_wide} px"
            picture = page.screenshot(full_page=True)
            if os.environ.get("MIRADA_SCREENSHOTS"):
                save_small(picture, DOCS / f"{name}-{width}.png")

    return take
