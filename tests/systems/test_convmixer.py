"""ConvMixer: parameter counts, one block written out, what happens to sides that are no whole number of patches."""

import pytest
import torch
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.systems import ConvMixer, create

COUNTS = {"1536/20": 51_625_960, "768/32": 21_110_248, "1024/20": 24_383_464}


@pytest.mark.parametrize(("size", "count"), COUNTS.items())
def test_parameters_are_the_published_ones(size, count):
    with torch.device("meta"):
        model = create("convmixer", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_features_are_those_of_the_formula():
    """New batch norms divide by √(1 + 1e-5) in evaluation, so the formula needs none of their weights."""
    model = ConvMixer(image_size=(15, 21), in_channels=2, num_classes=3, dim=7, depth=1, kernel_size=5, patch_size=3)
    x = torch.randn(2, 2, 15, 21)
    scale = (1 + 1e-5) ** -0.5
    z = F.gelu(F.conv2d(x, model.stem[0].weight, model.stem[0].bias, stride=3)) * scale
    depthwise, pointwise = model.blocks[0][0].inner[0], model.blocks[0][1][0]
    z = z + F.gelu(F.conv2d(F.pad(z, (2, 2, 2, 2)), depthwise.weight, depthwise.bias, groups=7)) * scale
    z = F.gelu(F.conv2d(z, pointwise.weight, pointwise.bias)) * scale
    torch.testing.assert_close(model.eval().features(x), z.flatten(2).mean(-1))


def test_published_activation_of_each_size():
    for size in COUNTS:
        with torch.device("meta"):
            model = create("convmixer", size, image_size=(224, 224), in_channels=3, num_classes=2)
        assert isinstance(model.stem[1], torch.nn.ReLU if size == "768/32" else torch.nn.GELU)


def test_remainder_is_a_choice():
    small = {"image_size": (16, 16), "in_channels": 2, "num_classes": 3, "dim": 8, "depth": 1, "patch_size": 4}
    x = torch.randn(2, 2, 13, 18)
    padded = ConvMixer(**small).eval()
    assert torch.equal(padded(x), padded(F.pad(x, (0, 2, 0, 3))))
    cropped = ConvMixer(**small, remainder="crop").eval()
    assert torch.equal(cropped(x), cropped(x[..., :12, :16]))
    with pytest.raises(MiradaError, match="13 × 18 pixels is no whole number of patches"):
        ConvMixer(**small, remainder="refuse")(x)


@pytest.mark.parametrize(("image_size", "patch"), [((32, 32), 4), ((64, 64), 8), ((8, 8), 1)])
def test_derived_patch_size(image_size, patch):
    model = create("convmixer", "nano", image_size=image_size, in_channels=1, num_classes=2)
    assert model.stem[0].stride == (patch, patch)


def test_unknown_activation_is_refused():
    with pytest.raises(MiradaError, match=r"activation='gela'.*did you mean 'gelu'"):
        ConvMixer(image_size=16, in_channels=1, num_classes=2, activation="gela")
