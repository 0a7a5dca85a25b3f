"""ViT as transformers and timm name it."""

from __future__ import annotations

from mirada.weights.layout import Layout

LAYOUTS: tuple[Layout, ...] = ()
