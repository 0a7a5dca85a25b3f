"""The lectures' worked examples and errata, computed by the core at the moment they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirada.errors import MiradaError, nearest
from mirada.verbs.learn.demos import codes, costs, layers, neighbourhoods, order, rotary, weights
from mirada.verbs.learn.demos.demo import Answer, Demo

DEMOS: dict[str, Demo] = {
    demo.name: demo for group in (weights, order, codes, rotary, neighbourhoods, layers, costs) for demo in group.DEMOS
}


def run_demo(name: str, inputs: Mapping[str, Any] | None = None) -> Answer:
    """The numbers and pictures of a demo; inputs that are left out are those of the lecture."""
    if name not in DEMOS:
        raise MiradaError(f"no demo is called {name[:60]!r}{nearest(name, DEMOS)}: there are {', '.join(DEMOS)}")
    return DEMOS[name](inputs)
