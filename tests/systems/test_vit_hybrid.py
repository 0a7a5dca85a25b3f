"""Hybrid ViT: parameter counts, standardised weights, paddings, both backbones."""

import pytest
import torch
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.systems import card, create
from mirada.systems.vit_hybrid import BiT, Bottleneck, StandardisedConv, pad_for
from tests.systems.common_checks import CHECKS, images, maker


@pytest.mark.parametrize(("side", "count"), [(224, 98_659_112), (384, 98_950_952)])
def test_parameters_are_the_published_ones(side, count):
    with torch.device("meta"):
        model = create("vit_hybrid", "R50+B/16", image_size=side, in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_weights_are_standardised_by_output_channel():
    conv = StandardisedConv(3, 5, 3)
    x = torch.randn(2, 3, 7, 11)
    weight = conv.weight.detach().double().flatten(1)
    weight = (weight - weight.mean(1, keepdim=True)) / weight.std(1, correction=0, keepdim=True)
    expected = F.conv2d(x.double(), weight.view(5, 3, 3, 3), padding=1)
    torch.testing.assert_close(conv(x).double(), expected, rtol=1e-4, atol=1e-4)
    before = conv(x)
    conv.weight.data.mul_(3).add_(2)
    torch.testing.assert_close(conv(x), before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kernel_size", "stride"), [(7, 2), (3, 2), (3, 1), (1, 2)])
def test_every_stride_rounds_up(kernel_size, stride):
    conv = StandardisedConv(1, 1, kernel_size, stride)
    for side in range(3, 12):
        assert conv(torch.randn(1, 1, side, side + 1)).shape[-2:] == (-(-side // stride), -(-(side + 1) // stride))


def test_an_odd_line_of_zeros_goes_right_and_below():
    x = torch.rand(1, 1, 4, 5)
    assert torch.equal(pad_for(x, 3, 2), F.pad(x, (1, 1, 0, 1)))
    assert torch.equal(pad_for(x, 7, 2), F.pad(x, (3, 3, 2, 3)))


def test_units_start_as_the_identity_or_the_shortcut():
    unit = Bottleneck(128, 128).eval()
    x = torch.rand(2, 128, 3, 5)
    assert torch.equal(unit(x), x)
    first = Bottleneck(32, 128, stride=2, is_first=True)
    x = torch.rand(2, 32, 5, 7)
    torch.testing.assert_close(first(x), F.relu(first.shortcut(x)))


@pytest.mark.parametrize("size", [(32, 48), (33, 50)])
def test_bit_has_a_sixteenth_of_the_rows_and_columns(size):
    backbone = BiT(2, 32, (1, 1, 1)).eval()
    assert backbone(torch.randn(1, 2, *size)).shape == (1, 512, -(-size[0] // 16), -(-size[1] // 16))


@pytest.mark.parametrize("check", sorted(set(CHECKS) - {"accepts_any_image_size", "accepts_any_class_count"}))
def test_common_checks_hold_with_the_published_backbone(check):
    CHECKS[check](maker(card("vit_hybrid"), backbone="resnet", width=32, stages=(1, 1)))


@pytest.mark.parametrize(("image_size", "grid"), [((32, 32), (8, 8)), ((28, 28), (7, 7)), ((64, 96), (8, 12))])
def test_small_hybrid_makes_tokens_of_small_and_larger_images(image_size, grid):
    model = create("vit_hybrid", "nano", image_size=image_size, in_channels=3, num_classes=2).eval()
    x = torch.randn(2, 3, *image_size)
    assert model.grid(x) == grid
    assert model.position.weight.shape == (1 + grid[0] * grid[1], 96)
    assert model(x).shape == (2, 2)


def test_unknown_backbone_is_refused():
    with pytest.raises(MiradaError, match=r"backbone='resnets'.*did you mean 'resnet'"):
        maker(card("vit_hybrid"))(backbone="resnets")


def test_channels_in_memory_are_no_matter():
    model = maker(card("vit_hybrid"))().eval()
    torch.testing.assert_close(model(images()), model(images().contiguous(memory_format=torch.channels_last)))
