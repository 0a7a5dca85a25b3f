"""The pictures of the documentation are made by a script that works."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

import make_gallery


@pytest.mark.long
def test_every_attention_system_has_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["make_gallery.py", "--steps", "1", "--out", str(tmp_path)])
    make_gallery.main()
    page = (tmp_path / "gallery.md").read_text()
    photo = np.asarray(Image.open(tmp_path / "images" / "gallery" / "photo.png").convert("L"))
    for name in make_gallery.attention_systems():
        picture = np.asarray(Image.open(tmp_path / "images" / "gallery" / f"{name}.png"), float)
        assert picture.shape[:2] == photo.shape
        is_orange = picture[..., 0] - picture[..., 2] > 30
        assert 0 < is_orange.mean() < 1, f"{name}: some patches are looked at, and not all alike"
        assert f"images/gallery/{name}.png" in page
