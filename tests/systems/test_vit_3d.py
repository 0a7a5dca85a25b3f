"""Volumes: any size, patches as a convolution in three dimensions has them, and the weights of images."""

import pytest
import torch
from torch.nn import functional as F

from mirada.core import record
from mirada.errors import MiradaError
from mirada.nn.volumes import VolumePatches
from mirada.systems import card, create
from mirada.systems.registry import all_arguments
from mirada.weights import Checkpoint
from mirada.weights.inflate import inflated
from tests.weights.references import shaken


def vit_3d(**arguments):
    given = {**card("vit_3d").tiny, "volume_size": (5, 13, 17), "in_channels": 2, "num_classes": 3, **arguments}
    return create("vit_3d", **given).eval()


def test_patches_are_a_convolution_in_three_dimensions():
    patches, volume = VolumePatches(2, 11, (3, 4, 5)), torch.randn(2, 2, 6, 12, 20)
    kernel = patches.projection.weight.reshape(11, 2, 3, 4, 5)
    wanted = F.conv3d(volume, kernel, patches.projection.bias, stride=(3, 4, 5)).flatten(2).mT
    tokens, size = patches(volume)
    assert size == (2, 3, 4)
    torch.testing.assert_close(tokens, wanted, atol=1e-5, rtol=1e-5)


def test_any_volume_and_every_parameter_learns():
    model = vit_3d().train()
    model(torch.randn(2, 2, 5, 13, 17)).square().sum().backward()
    assert model.position.size == (3, 4, 5) == model.grid(torch.empty(1, 2, 5, 13, 17))
    silent = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert all(name.endswith("to_k.bias") for name in silent)
    assert model(torch.randn(2, 2, 7, 11, 19)).shape == (2, 3)


def test_attention_is_recorded_over_all_boxes():
    model, volume = vit_3d(), torch.randn(1, 2, 5, 13, 17)
    with record(model) as maps:
        model(volume)
    weights = maps[0]
    assert weights.shape == (1, 2, 61, 61)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 61))


def image_model(**arguments):
    given = {"image_size": (12, 20), "in_channels": 3, "num_classes": 7, "dim": 24, "depth": 2, "num_heads": 3}
    given |= {"patch_size": 4, "stem": "linear", "pooling": "class", **arguments}
    resolved = all_arguments("vit", **given)
    model = shaken(create("vit", **resolved))
    return model, Checkpoint("there", "mirada", "vit", resolved, model.state_dict())


@pytest.mark.parametrize("pooling", ["class", "mean", "sequence"])
@pytest.mark.parametrize("patch_slices", [6, 2, 1])
def test_a_volume_of_equal_slices_gives_what_the_image_gives(pooling, patch_slices):
    flat, checkpoint = image_model(pooling=pooling)
    deep = inflated(checkpoint, num_slices=6, patch_slices=patch_slices).model()
    images = torch.randn(2, 3, 12, 20)
    volumes = images[:, :, None].expand(-1, -1, 6, -1, -1)
    torch.testing.assert_close(deep(volumes), flat(images), atol=1e-5, rtol=1e-5)
    if pooling != "class":  # more slices than it was made for: there is no class token to count
        volumes = images[:, :, None].expand(-1, -1, 12, -1, -1)
        torch.testing.assert_close(deep(volumes), flat(images), atol=1e-5, rtol=1e-5)


def test_slices_that_differ_are_seen():
    _, checkpoint = image_model()
    deep = inflated(checkpoint, num_slices=6, patch_slices=2).model()
    volume = torch.randn(1, 3, 6, 12, 20)
    other = volume.clone()
    other[:, :, 5] += 1
    assert (deep(volume) - deep(other)).abs().max() > 1e-3


@pytest.mark.parametrize("unfit", [{"stem": "conv"}, {"position": "rotary"}, {"attention": "locality"}])
def test_what_has_no_like_in_volumes_is_refused(unfit):
    _, checkpoint = image_model(**unfit)
    with pytest.raises(MiradaError, match="has no like in volumes"):
        inflated(checkpoint, num_slices=4, patch_slices=2)
