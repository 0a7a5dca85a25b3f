"""Patches: exact cutting, linear equals convolution, remainders by policy only, stems and shifted patches."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.nn import (
    ClassToken,
    ConvPatches,
    ConvStem,
    ExtraTokens,
    LinearPatches,
    ShiftedPatches,
    image_of,
    patches_of,
)
from mirada.nn.patches import diagonal_shifts, fit

B, C, D = 2, 3, 13
EXACT = {"atol": 1e-9, "rtol": 1e-7}
EMBEDDINGS = pytest.mark.parametrize("embedding", [LinearPatches, ConvPatches, ShiftedPatches])


def image(height: int, width: int, channels: int = C) -> torch.Tensor:
    return torch.randn(B, channels, height, width, dtype=torch.float64, requires_grad=True)


def linear_and_conv(patch_size, remainder="refuse") -> tuple[LinearPatches, ConvPatches]:
    linear = LinearPatches(C, D, patch_size, remainder).double()
    conv = ConvPatches(C, D, patch_size, remainder).double()
    nn.init.normal_(linear.projection.bias)
    with torch.no_grad():
        conv.projection.weight.copy_(linear.projection.weight.view_as(conv.projection.weight))
        conv.projection.bias.copy_(linear.projection.bias)
    return linear, conv


@EMBEDDINGS
@pytest.mark.parametrize(("patch_size", "grid"), [(2, (7, 11)), ((7, 2), (2, 11)), ((14, 22), (1, 1))])
def test_I1_number_of_patches_and_grid(embedding, patch_size, grid):
    tokens, found = embedding(C, D, patch_size).double()(image(14, 22))
    assert found == grid
    assert tokens.shape == (B, grid[0] * grid[1], D)


def test_I12_a_pixel_is_the_smallest_patch():
    x = image(5, 7)
    torch.testing.assert_close(patches_of(x, 1), x.flatten(2).mT)
    assert LinearPatches(C, D, 1).double()(x)[1] == (5, 7)


@pytest.mark.parametrize("patch_size", [1, 2, (7, 2), (2, 11)])
def test_I2_unfold_and_fold_are_inverse(patch_size):
    x = image(14, 22)
    height, width = (patch_size, patch_size) if isinstance(patch_size, int) else patch_size
    patches = patches_of(x, patch_size)
    assert torch.equal(image_of(patches, (14 // height, 22 // width), patch_size), x)
    torch.testing.assert_close(patches, F.unfold(x, (height, width), stride=(height, width)).mT)


def test_I2_E49_a_patch_has_P_squared_C_numbers_not_P_C():
    patches = patches_of(image(10, 15), 5)
    assert patches.shape[-1] == 5 * 5 * C != 5 * C
    assert LinearPatches(C, D, 5).projection.in_features == 75


def test_I2_hand_computed_order():
    x = torch.arange(2 * 2 * 4).view(1, 2, 2, 4)
    assert patches_of(x, 2).tolist() == [[[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]]


def test_I3_number_of_parameters():
    for embedding in (LinearPatches, ConvPatches):
        assert sum(p.numel() for p in embedding(3, 768, 16).parameters()) == (16**2 * 3 + 1) * 768


@pytest.mark.parametrize("patch_size", [1, 2, 4, (4, 2), (2, 3)])
def test_I4_convolution_equals_linear_also_on_non_square_images(patch_size):
    linear, conv = linear_and_conv(patch_size)
    x = image(8, 12)
    (ours, grid), (theirs, other_grid) = linear(x), conv(x)
    assert grid == other_grid
    torch.testing.assert_close(ours, theirs, **EXACT)
    direction = torch.randn_like(ours)
    for a, b in zip(
        torch.autograd.grad(ours, [x, *linear.parameters()], direction),
        torch.autograd.grad(theirs, [x, *conv.parameters()], direction),
        strict=True,
    ):
        torch.testing.assert_close(a, b.view_as(a), **EXACT)


def test_I4_both_start_from_the_same_distribution():
    linear, conv = LinearPatches(3, 64, 8), ConvPatches(3, 64, 8)
    bound = (6 / (3 * 64 + 64)) ** 0.5
    for weight in (linear.projection.weight, conv.projection.weight):
        assert 0.95 * bound < weight.abs().max() <= bound


@EMBEDDINGS
def test_I1_E50_a_remainder_is_refused_by_default_and_the_sizes_are_named(embedding):
    with pytest.raises(MiradaError, match=r"17 × 23 pixels.*5 × 4"):
        embedding(C, D, (5, 4)).double()(image(17, 23))


@pytest.mark.parametrize("conv", [False, True], ids=["linear", "convolutional"])
def test_I4_E50_padding_and_cropping_are_what_they_say(conv):
    x = image(17, 23)
    padded, grid = linear_and_conv((5, 4), "pad")[conv](x)
    assert grid == (4, 6) and padded.shape[1] == 24
    torch.manual_seed(1)
    pad, exact = linear_and_conv((5, 4), "pad")[conv], linear_and_conv((5, 4))[conv]
    crop = linear_and_conv((5, 4), "crop")[conv]
    exact.load_state_dict(pad.state_dict())
    torch.testing.assert_close(pad(x)[0], exact(F.pad(x, (0, 1, 0, 3)))[0], **EXACT)
    exact.load_state_dict(crop.state_dict())
    torch.testing.assert_close(crop(x)[0], exact(x[..., :15, :20])[0], **EXACT)
    assert crop(x)[1] == (3, 5)


def test_E50_a_bare_convolution_drops_the_remainder_silently():
    bare = ConvPatches(C, D, (5, 4)).double().projection
    assert bare(image(17, 23)).shape[-2:] == (3, 5)


def test_an_image_smaller_than_a_patch_cannot_be_cropped():
    with pytest.raises(MiradaError, match="3 × 23 pixels"):
        fit(image(3, 23), 5, "crop")
    assert fit(image(3, 23), 5, "pad").shape[-2:] == (5, 25)
    with pytest.raises(MiradaError, match="remainder='stretch'"):
        LinearPatches(C, D, 5, "stretch")  # type: ignore


def test_I5_class_token_stands_at_position_0_and_is_split_off_again():
    extra = ExtraTokens(D, num_extra=1).double()
    tokens, _ = LinearPatches(C, D, 2).double()(image(4, 6))
    z = extra(tokens)
    assert z.shape == (B, 7, D)
    torch.testing.assert_close(ClassToken()(z), extra.weight.expand(B, -1))
    first, rest = extra.split(z)
    torch.testing.assert_close(first[:, 0], extra.weight.expand(B, -1))
    assert torch.equal(rest, tokens)


def test_several_extra_tokens_differ_and_are_never_padding():
    extra = ExtraTokens(D, num_extra=5)
    assert torch.pdist(extra.weight).min() > 0.01
    assert extra.weight.std().item() == pytest.approx(0.02, rel=0.3)
    valid = extra.valid(torch.tensor([[True, False], [False, False]]))
    assert valid.tolist() == [[True] * 5 + [True, False], [True] * 5 + [False, False]]
    extra(torch.randn(B, 7, D)).sum().backward()
    torch.testing.assert_close(extra.weight.grad, torch.full((5, D), float(B)))


@pytest.mark.parametrize(("height", "width"), [(32, 48), (33, 47)])
def test_stem_drops_no_pixel(height, width):
    stem = ConvStem(C, D, widths=(5, 7), strides=(2, 1)).double()
    x = image(height, width)
    tokens, grid = stem(x)
    assert grid == (-(-height // 2), -(-width // 2)) and tokens.shape == (B, grid[0] * grid[1], D)
    (into_x,) = torch.autograd.grad(tokens.square().sum(), x)
    assert (into_x.abs().amax((0, 1)) > 0).all()


def test_stem_without_layers_is_a_patch_of_one_pixel_and_takes_other_parts():
    x = image(5, 7)
    stem, conv = ConvStem(C, D, (), ()).double(), ConvPatches(C, D, 1).double()
    conv.load_state_dict(stem.state_dict())
    torch.testing.assert_close(stem(x)[0], conv(x)[0], **EXACT)
    other = ConvStem(C, D, (5,), (1,), norm=nn.InstanceNorm2d, activation=nn.GELU)
    assert [type(layer) for layer in other.layers] == [nn.Conv2d, nn.InstanceNorm2d, nn.GELU]
    with pytest.raises(MiradaError, match="2 widths"):
        ConvStem(C, D, (5, 7), (2,))


def test_shifted_copies_are_moved_by_half_a_patch_along_the_diagonals():
    x = torch.arange(1.0, 13).view(1, 1, 3, 4)
    down_right, down_left, up_right, up_left = (shift[0, 0].tolist() for shift in diagonal_shifts(x, (2, 3)))
    assert down_right == [[0, 0, 0, 0], [0, 1, 2, 3], [0, 5, 6, 7]]
    assert down_left == [[0, 0, 0, 0], [2, 3, 4, 0], [6, 7, 8, 0]]
    assert up_right == [[0, 5, 6, 7], [0, 9, 10, 11], [0, 0, 0, 0]]
    assert up_left == [[6, 7, 8, 0], [10, 11, 12, 0], [0, 0, 0, 0]]


def test_shifted_patches_see_half_a_patch_around_them():
    x, spt = image(20, 24), ShiftedPatches(C, D, 4).double()
    tokens, grid = spt(x)
    assert grid == (5, 6) and spt.norm.normalized_shape == (5 * C * 16,)
    (into_x,) = torch.autograd.grad(tokens[:, 2 * 6 + 3].sum(), x)
    seen = into_x.abs().amax((0, 1)) > 0
    rows, columns = torch.where(seen.any(1))[0], torch.where(seen.any(0))[0]
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (6, 13, 10, 17)
    with pytest.raises(MiradaError, match="at least 2 × 2"):
        ShiftedPatches(C, D, 1)
