"""The palette: k-means on pixels."""

import pytest
import torch

from mirada.data.palette import MAX_PIXELS, learn_palette, pixels_of
from mirada.errors import MiradaError


def test_clusters_that_are_far_apart_are_found():
    centres = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 5.0, 0.0], [3.0, 3.0, 3.0]])
    pixels = centres[torch.arange(4).repeat(100)] + 0.01 * torch.randn(400, 3)
    torch.testing.assert_close(learn_palette(pixels, 4), centres, atol=0.01, rtol=0)


def test_a_better_palette_than_a_regular_one():
    """Most pixels are dark: k-means spends its colours there."""
    pixels = torch.rand(5000, 1) ** 3
    learned = learn_palette(pixels, 8)
    regular = (torch.arange(8)[:, None] + 0.5) / 8
    errors = [torch.cdist(pixels, palette).amin(1).square().mean() for palette in (learned, regular)]
    assert errors[0] < 0.6 * errors[1]
    assert (learned[1:] > learned[:-1]).all()


def test_few_different_pixels_are_the_palette_themselves():
    pixels = torch.tensor([[2.0], [0.0], [2.0], [1.0], [0.0]])
    assert learn_palette(pixels, 512).tolist() == [[0.0], [1.0], [2.0]]


def test_is_the_same_for_the_same_seed():
    pixels = torch.randn(1000, 3)
    assert torch.equal(learn_palette(pixels, 11, seed=3), learn_palette(pixels, 11, seed=3))


def test_pixels_are_drawn_from_all_images():
    images = torch.arange(5.0).view(5, 1, 1, 1).expand(5, 2, 3, 7)
    pixels = pixels_of(images)
    assert pixels.shape == (105, 2)
    assert torch.bincount(pixels[:, 0].long()).tolist() == [21] * 5
    many = pixels_of(torch.randn(3, 1, 200, 200))
    assert many.shape == (MAX_PIXELS, 1)


def test_no_colours_are_refused():
    with pytest.raises(MiradaError, match="palette of 0 colours"):
        learn_palette(torch.zeros(3, 1), 0)
