"""Augmentation does what it says, image by image, and the same again from the same generator."""

import numpy as np
import pytest
import torch

from mirada.data import STRENGTHS, Augmentation, Normalisation, augmentation_named, flipping_is_safe
from mirada.data.augment import (
    affine_grid,
    affine_matrices,
    random_affine,
    random_crop_flip,
    random_erase,
    shift_and_mirror,
)
from mirada.data.colour import TONES, colour_jitter, random_tone
from mirada.data.mixing import as_distribution, blended, cutmix_shares, mixup_shares
from mirada.data.normalise import normalisation_of
from mirada.data.recipe import augment_images, mix_batches
from mirada.errors import MiradaError

PLAIN = Normalisation((0.5,) * 3, (0.25,) * 3)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_close(first: torch.Tensor, second: torch.Tensor) -> None:
    """torch.testing would do, but its first call imports five hundred modules."""
    np.testing.assert_allclose(first.numpy(), second.numpy(), atol=1e-5)


def images(count: int = 64, channels: int = 3, height: int = 11, width: int = 13) -> torch.Tensor:
    return torch.randint(0, 256, (count, channels, height, width), dtype=torch.uint8, generator=generator(9))


def test_shift_by_hand():
    row = torch.tensor([[[[1, 2, 3, 4]]]], dtype=torch.uint8)
    no, yes = torch.tensor([False]), torch.tensor([True])

    def moved(by: int, mirrored: torch.Tensor, padding: str) -> list[int]:
        return shift_and_mirror(row, torch.tensor([0]), torch.tensor([by]), mirrored, padding).flatten().tolist()

    assert moved(1, no, "reflect") == [2, 3, 4, 3]
    assert moved(-2, no, "reflect") == [3, 2, 1, 2]
    assert moved(1, yes, "reflect") == [3, 4, 3, 2]
    assert moved(1, no, "zero") == [2, 3, 4, 0]
    assert moved(-2, no, "zero") == [0, 0, 1, 2]
    assert moved(0, yes, "zero") == [4, 3, 2, 1]


@pytest.mark.parametrize("padding", ["reflect", "zero"])
def test_crop_equals_padding_then_cutting(padding):
    x = images(40)
    down, right = torch.randint(-3, 4, (2, 40), generator=generator())
    out = shift_and_mirror(x, down, right, torch.zeros(40, dtype=torch.bool), padding)
    mode = "reflect" if padding == "reflect" else "constant"
    padded = torch.nn.functional.pad(x.float(), (3, 3, 3, 3), mode=mode).to(torch.uint8)
    for b in range(40):
        top, left = 3 + down[b], 3 + right[b]
        assert torch.equal(out[b], padded[b, :, top : top + 11, left : left + 13])


def test_half_are_flipped_and_nothing_else_happens():
    x = images(4000, 1, 2, 3)
    out = random_crop_flip(x, generator(), shift=0.0, flip=0.5)
    same = (out == x).all((1, 2, 3))
    mirrored = (out == x.flip(3)).all((1, 2, 3))
    assert bool((same | mirrored).all())
    assert 0.46 < mirrored.float().mean() < 0.54


def test_shifts_are_uniform():
    ramp = torch.arange(16).repeat(5000, 1, 16, 1).to(torch.uint8)
    shift = random_crop_flip(ramp, generator(), shift=0.125, flip=0.0)[:, 0, 8, 8].int() - 8
    counts = torch.bincount(shift + 2, minlength=5)
    assert len(counts) == 5
    assert counts.min() > 850


def test_affine_identity_rotation_and_aspect():
    x = images(4, height=12, width=20).float() / 255
    still = random_affine(x.clone(), generator(), 1.0, degrees=0, shear=0, translate=0, scale=0)
    assert_close(still, x)
    theta = affine_matrices(50, 12, 20, generator(), degrees=30, shear=0, translate=0, scale=0)
    pixels = theta[:, :, :2] * torch.tensor([[1, 20 / 12], [12 / 20, 1]])  # back to pixel units
    assert_close(pixels @ pixels.mT, torch.eye(2).expand(50, 2, 2))


def test_affine_grid_is_that_of_torch():
    theta = torch.randn(5, 2, 3)
    assert_close(affine_grid(theta, (3, 7)), torch.nn.functional.affine_grid(theta, [5, 1, 3, 7], align_corners=False))


def test_affine_changes_about_the_given_share():
    x = images(2000, 1, 5, 5).float()
    out = random_affine(x.clone(), generator(), 0.3)
    changed = (out != x).flatten(1).any(1).float().mean()
    assert 0.26 < changed < 0.34


def test_erasing_share_and_area():
    x = torch.ones(3000, 2, 20, 30)
    out = random_erase(x.clone(), generator(), 0.4, area=(0.1, 0.3))
    erased = (out == 0).float().mean((1, 2, 3))
    hit = erased > 0
    assert 0.37 < hit.float().mean() < 0.43
    assert 0.08 < erased[hit].min()
    assert erased[hit].max() < 0.33
    assert abs(float(erased[hit].mean()) - 0.2) < 0.01
    assert torch.equal(out[:, 0], out[:, 1])


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_colour_jitter_range_and_identity(channels):
    x = images(64, channels).float() / 255
    assert_close(colour_jitter(x.clone(), generator(), 0.0), x)
    out = colour_jitter(x.clone(), generator(), 0.5)
    assert out.shape == x.shape
    assert 0 <= out.min() <= out.max() <= 1
    assert not torch.equal(out, x)


def test_colour_jitter_by_the_formula():
    x = 0.4 + 0.2 * images(5, 3).float() / 255  # far from where it is clamped
    bright, contrast, saturation = 1 + 0.2 * (torch.rand(3, 5, 1, 1, 1, generator=generator()) * 2 - 1)
    luma = (x * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)
    mean = luma.mean((2, 3), keepdim=True)
    expected = bright * (contrast * (saturation * x + (1 - saturation) * luma) + (1 - contrast) * mean)
    assert_close(colour_jitter(x.clone(), generator(), 0.2), expected)


def test_grey_pixels_stay_grey_under_jitter():
    grey = torch.rand(8, 1, 5, 5, generator=generator()).expand(8, 3, 5, 5)
    out = colour_jitter(grey.clone(), generator(), 0.4)
    assert_close(out[:, 0], out[:, 2])


@pytest.mark.parametrize("tone", TONES)
def test_tones_stay_in_range(tone):
    x = images(16).float() / 255
    for amount in (0.0, 0.5, 1.0):
        out = tone(x, torch.full((16, 1, 1, 1), amount))
        assert out.shape == x.shape
        assert 0 <= out.min() <= out.max() <= 1


def test_tone_share():
    x = images(2000, 3, 6, 6).float() / 255
    changed = (random_tone(x, generator(), 0.5) != x).flatten(1).any(1).float().mean()
    assert 0.44 < changed < 0.54
    assert torch.equal(random_tone(x, generator(), 0.0), x)


def test_mixup_mixes_images_and_targets_alike():
    labels = torch.arange(7) % 5
    x = as_distribution(labels, 5)[:, :, None, None].expand(7, 5, 3, 2).contiguous()  # the image shows its target
    mixed, targets = blended(x, as_distribution(labels, 5), *mixup_shares(7, (3, 2), generator(), 0.8))
    assert_close(targets.sum(1), torch.ones(7))
    assert_close(mixed, targets[:, :, None, None].expand_as(mixed))


def test_cutmix_target_is_exactly_the_area():
    labels = torch.arange(50)
    x = as_distribution(labels, 50)[:, :, None, None].expand(50, 50, 9, 7).contiguous()
    mixed, targets = blended(x, as_distribution(labels, 50), *cutmix_shares(50, (9, 7), generator(), 1.0))
    assert_close(mixed.mean((2, 3)), targets)
    assert_close(targets.sum(1), torch.ones(50))
    assert set(mixed.unique().tolist()) == {0.0, 1.0}
    assert 0.35 < targets.diagonal().mean() < 0.65


def test_mixing_share_and_both_kinds():
    x, y = torch.randn(8, 1, 8, 8), torch.arange(8)
    recipe = Augmentation(mixup=0.5, cutmix=0.5, mix=0.5)
    outcomes = mix_batches([(x, y)] * 300, generator(), recipe, 8)
    mixed = sum(targets.ndim == 2 for _, targets in outcomes)
    cut = sum(bool(torch.isin(images, x).all()) for images, targets in outcomes if targets.ndim == 2)
    assert 120 < mixed < 180
    assert 0.35 < cut / mixed < 0.65
    assert mix_batches([(x, y)], generator(), Augmentation(), 8) == [(x, y)]


def test_batches_that_are_mixed_together_are_mixed_within_themselves():
    """Each batch shows one number: whatever is mixed, it stays so; batches may differ in size."""
    batches = [(torch.full((n, 2, 5, 3), float(n)), torch.arange(n)) for n in (3, 1, 7, 3)]
    mixed = mix_batches(batches, generator(), Augmentation(mixup=0.5, cutmix=0.5), 7)
    for (images, targets), (start, _) in zip(mixed, batches, strict=True):
        assert torch.equal(images, start)
        assert targets.shape == (len(start), 7)
        assert_close(targets.sum(1), torch.ones(len(start)))


def test_single_image_batches_and_single_pixels():
    for size in ((1, 3, 8, 8), (1, 1, 1, 1), (3, 3, 1, 5)):
        x = torch.zeros(size, dtype=torch.uint8)
        normal = Normalisation((0.5,) * size[1], (0.25,) * size[1])
        out = augment_images(x, generator(), STRENGTHS["strong"], normal)
        batch = (out, torch.zeros(size[0], dtype=torch.long))
        [(out, _)] = mix_batches([batch], generator(), STRENGTHS["strong"], 2)
        assert out.shape == size
        assert bool(out.isfinite().all())


@pytest.mark.parametrize("strength", STRENGTHS)
def test_named_strengths_repeat_and_leave_the_input_alone(strength):
    x = images()
    before = x.clone()
    first, again = (augment_images(x, generator(3), augmentation_named(strength), PLAIN) for _ in range(2))
    assert torch.equal(first, again)
    assert torch.equal(x, before)
    assert first.dtype == torch.float32
    if strength == "none":
        assert_close(first, (x / 255 - 0.5) / 0.25)


def test_wrong_settings():
    with pytest.raises(MiradaError, match="expected one of none, light, medium, strong"):
        augmentation_named("mild")
    for bad in ({"flip": 1.5}, {"crop": -0.1}, {"padding": "wrap"}, {"mixup": float("nan")}):
        with pytest.raises(MiradaError, match=next(iter(bad))):
            Augmentation(**bad)


def test_writing_is_not_mirrored():
    assert not flipping_is_safe(tuple("0123456789"), 1)
    assert flipping_is_safe(("cat", "dog"), 1)
    assert flipping_is_safe(tuple("0123456789"), 3)
    assert flipping_is_safe((), 1)


def test_normalisation_is_exact_and_invertible():
    x = images(100)
    normal = normalisation_of(x.split(7))
    values = x.double() / 255
    np.testing.assert_allclose(normal.mean, values.mean((0, 2, 3)), atol=1e-12)
    np.testing.assert_allclose(normal.std, values.std((0, 2, 3), correction=0), atol=1e-12)
    out = normal.apply(x)
    assert_close(out, normal.apply(x.float() / 255))
    assert_close(normal.undo(out), x / 255)
    assert normalisation_of([torch.full((2, 1, 3, 3), 51, dtype=torch.uint8)]) == Normalisation((0.2,), (1.0,))
