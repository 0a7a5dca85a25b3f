"""Image size and channels are inferred from the data."""

import numpy as np
import pytest

from mirada.data import infer_image_size, infer_shape, open_source
from mirada.data.sizing import channels_of, size_for
from mirada.errors import MiradaError


@pytest.mark.parametrize(
    ("sizes", "cap", "expected"),
    [
        ([(28, 28)] * 3, 128, (28, 28)),  # small and uniform: kept
        ([(11, 13)] * 3, 128, (11, 13)),
        ([(64, 64)] * 3, 32, (32, 32)),
        ([(480, 640)] * 9, 128, (128, 168)),  # uniform aspect: kept, multiples of 8
        ([(640, 480)] * 9, 64, (88, 64)),
        ([(100, 400)] * 9, 128, (96, 384)),  # a spectrogram is not cropped to its middle
        ([(300, 500), (500, 300), (400, 400)], 128, (128, 128)),  # mixed: square
        ([(50, 70), (70, 50), (60, 60)], 128, (48, 48)),
        ([(5, 6), (6, 5)], 128, (8, 8)),
    ],
)
def test_size_for(sizes, cap, expected):
    assert size_for(np.array(sizes), cap)[0] == expected


def test_channels():
    assert channels_of(["L", "I;16", "1", "LA"]) == 1
    assert channels_of(["L", "RGB"]) == channels_of(["P"]) == channels_of(["CMYK", "RGBA"]) == 3
    assert channels_of(["7 x uint8"]) == 7
    with pytest.raises(MiradaError, match="same bands"):
        channels_of(["7 x uint8", "RGB"])


def test_from_files_and_arrays(class_folders, tmp_path):
    shape = infer_shape(open_source(class_folders))
    assert (shape.size, shape.channels) == ((11, 13), 3)
    assert infer_image_size(open_source("digits")) == (8, 8)
    for path in class_folders.rglob("*.png"):
        path.write_text("broken")
    with pytest.raises(MiradaError, match="none of 12 sampled images can be read"):
        infer_shape(open_source(class_folders))
