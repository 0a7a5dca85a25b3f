"""All layouts: a system's are in a file of its name, and this tuple is all there is to registering them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.errors import MiradaError
from mirada.weights import bert, convmixer, cvt, deit, gpt2, image_gpt, marian, mvit, swin, vit, vit_hybrid
from mirada.weights.layout import Layout

LAYOUTS: tuple[Layout, ...] = (
    *vit_hybrid.LAYOUTS,  # before vit, whose tensors it has too
    *vit.LAYOUTS,
    *deit.LAYOUTS,
    *cvt.LAYOUTS,
    *convmixer.LAYOUTS,
    *swin.LAYOUTS,
    *mvit.LAYOUTS,
    *image_gpt.LAYOUTS,
    *gpt2.LAYOUTS,
    *bert.LAYOUTS,
    *marian.LAYOUTS,
)


def layout_of(config: Mapping[str, Any], names: Iterable[str]) -> Layout | None:
    """The first layout that recognises a checkpoint."""
    names = list(names)
    return next((layout for layout in LAYOUTS if layout.recognises(config, names)), None)


def layout_for(system: str, origin: str) -> Layout:
    """How that library names this system's tensors."""
    for layout in LAYOUTS:
        if (layout.system, layout.origin) == (system, origin):
            return layout
    known = sorted({layout.system for layout in LAYOUTS if layout.origin == origin})
    raise MiradaError(f"{origin} has no layout for system {system!r}; there is one for {', '.join(known)}.")
