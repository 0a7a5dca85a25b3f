"""docs/kernels.md says what the kernels do now, for every part there is."""

from __future__ import annotations

import runpy
from pathlib import Path

import mirada.core
from mirada.core import DotScore, Neighbours, Relative, Score
from tests.core.crossproduct import NEIGHBOURS, POSITIONS, SCORES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_page_is_up_to_date():
    page = runpy.run_path(str(DOCS / "make_kernel_table.py"))["page"]()
    written = (DOCS / "kernels.md").read_text(encoding="utf-8")
    assert written == page, "run `python docs/make_kernel_table.py`"


def test_the_cross_product_has_every_part():
    parts = {part for part in vars(mirada.core).values() if isinstance(part, type)}
    expected = {part for part in parts if issubclass(part, Score | Neighbours | Relative)}
    expected -= {Score, DotScore, Neighbours, Relative}
    made = [make() for make in (*SCORES.values(), *NEIGHBOURS.values())]
    made += [make(on_plane) for make in POSITIONS.values() for on_plane in (False, True)]
    assert expected <= {type(part) for part in made}
