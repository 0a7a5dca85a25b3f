"""Numbers about images as sequences of colours, their probe, and their pictures."""

import math

import pytest
import torch

from mirada.tasks.pixels import Pixels, colour_counts, nats_of_single_pixels, padded_grid
from mirada.tasks.probe import probe_accuracy


def test_bits_per_dimension_divide_by_channels():
    task = Pixels(in_channels=3)
    nats = torch.tensor([math.log(2), 3 * math.log(2)])
    nobody = torch.zeros(2)
    assert task.loss(nats, nobody).item() == pytest.approx(2 * math.log(2))
    assert task.quick(nats, nobody) == pytest.approx({"loss": 2 * math.log(2), "bits_per_dimension": 2 / 3})
    result = task.result(nats, nobody)
    assert result["value"] == pytest.approx(2 / 3) and result["n"] == 2
    error = 1.96 * math.sqrt(2) / math.sqrt(2) / 3
    assert (result["low"], result["high"]) == pytest.approx((2 / 3 - error, 2 / 3 + error))
    assert task.answers(nats)[1] == pytest.approx({"nats_per_pixel": 3 * math.log(2), "bits_per_dimension": 1.0}, 1e-5)
    assert task.named(nobody) == [{}, {}]


def test_single_pixels_know_frequencies_only():
    train = colour_counts(torch.tensor([[0, 0, 0], [1, 1, 0]]), 3)
    assert train.tolist() == [4, 2, 0]
    held_out = colour_counts(torch.tensor([[0, 2]]), 3)
    expected = -(math.log(5 / 9) + math.log(1 / 9)) / 2
    assert nats_of_single_pixels(train, held_out) == pytest.approx(expected)


def test_probe_reads_linear_classes_and_not_noise():
    labels = torch.randint(0, 3, (300,))
    features = torch.randn(300, 5) + 4 * torch.eye(5)[labels]
    assert probe_accuracy(features[:200], labels[:200], features[200:], labels[200:]) > 0.9
    noise = torch.randn(300, 5)
    assert probe_accuracy(noise[:200], labels[:200], noise[200:], labels[200:]) < 0.6


def test_grid_of_images_has_lines_between_them():
    images = torch.arange(3.0).view(3, 1, 1, 1).expand(3, 2, 2, 3) / 10
    grid = padded_grid(images, columns=2)
    assert grid.shape == (2, 1 + 2 * 3, 1 + 2 * 4)
    assert grid[0, 1].tolist() == pytest.approx([1, 0, 0, 0, 1, 0.1, 0.1, 0.1, 1])
    assert grid[0, 4].tolist() == pytest.approx([1, 0.2, 0.2, 0.2, 1, 1, 1, 1, 1])
