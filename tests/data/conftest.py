"""Small hand-made images."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def noise(seed: int, height: int = 11, width: int = 13, channels: int = 3) -> np.ndarray:
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save_png(path: Path, seed: int, height: int = 11, width: int = 13, channels: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise(seed, height, width, channels)).save(path)
    return path


@pytest.fixture
def png() -> Callable[..., Path]:
    """png(path, seed, height, width, channels) writes a PNG of noise; the same seed gives the same pixels."""
    return save_png


@pytest.fixture
def class_folders(tmp_path: Path) -> Path:
    """cat/ and dog/ with seven and five different images."""
    root = tmp_path / "photos"
    for i in range(7):
        save_png(root / "cat" / f"{i}.png", i)
    for i in range(5):
        save_png(root / "dog" / f"{i}.png", 100 + i)
    return root


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A data set as `datasets` saves it."""
    from tests.data.hugging_face_files import write_saved  # needs pyarrow

    return write_saved(tmp_path / "saved")


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A data set as its hub keeps it."""
    from tests.data.hugging_face_files import write_hub

    return write_hub(tmp_path / "hub")
