"""Pointing, energy, precision and overlap against hand calculations, loops, scikit-learn and torch's interpolation."""

import pytest
import torch
from sklearn.metrics import average_precision_score
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.explain.cells import cells_of
from mirada.explain.localisation import (
    average_precision,
    energy,
    localisation,
    mean_iou,
    oracle,
    overlaps,
    pointing,
    smooth,
)
from mirada.explain.references import centre_map, random_map


def masks(batch: int, height: int, width: int) -> torch.Tensor:
    mask = torch.rand(batch, height, width) < 0.3
    mask[:, 0, 0] = True
    return mask


def test_smooth_maps_are_torchs_bilinear_where_patches_fit():
    relevance = torch.randn(2, 3, 5)
    expected = F.interpolate(relevance[:, None], (12, 35), mode="bilinear", align_corners=False)[:, 0]
    torch.testing.assert_close(smooth(relevance, cells_of((12, 35), (3, 5))), expected)


def test_smooth_maps_of_a_padded_image_keep_the_patches_where_they_are():
    relevance = torch.randn(2, 3, 5)
    larger = F.interpolate(relevance[:, None], (24, 40), mode="bilinear", align_corners=False)[:, 0]
    torch.testing.assert_close(smooth(relevance, cells_of((17, 33), (3, 5), 8)), larger[:, :17, :33])


def test_a_constant_map_stays_constant():
    for value in (0.1, 1 / 3, 7e-5):
        pixels = smooth(torch.full((1, 5, 7), value), cells_of((23, 31), (5, 7), 5))
        assert pixels.min() == pixels.max() == torch.tensor(value)


def test_pointing_by_hand():
    relevance = torch.zeros(1, 2, 3)
    relevance[0, 1, 2] = 1  # patches of 5: the middle of this one is the pixel (7, 12)
    mask = torch.zeros(1, 10, 15, dtype=torch.bool)
    mask[0, 7, 12] = True
    assert pointing(relevance, mask).tolist() == [1]
    assert pointing(relevance, mask.roll(1, dims=2)).tolist() == [0]
    assert pointing(relevance, mask.roll(1, dims=2), tolerance=1).tolist() == [1]
    diagonal = mask.roll((2, -2), dims=(1, 2))
    assert pointing(relevance, diagonal, tolerance=2.8).tolist() == [0]
    assert pointing(relevance, diagonal, tolerance=2.9).tolist() == [1]


def test_tolerance_does_not_reach_around_the_edge():
    relevance = torch.tensor([[[1.0, 0.0]]])
    mask = torch.zeros(1, 1, 6, dtype=torch.bool)
    mask[0, 0, 5] = True
    assert pointing(relevance, mask, tolerance=3).tolist() == [0]


def test_highest_cells_share_the_point():
    mask = torch.zeros(1, 6, 9, dtype=torch.bool)
    mask[0, :3, :6] = True
    assert pointing(torch.zeros(1, 2, 3), mask).item() == pytest.approx(2 / 6)


def test_the_middle_of_a_padded_cell_is_inside_the_image():
    mask = torch.zeros(1, 11, 11, dtype=torch.bool)
    mask[0, 10, 10] = True
    relevance = torch.zeros(1, 3, 3)
    relevance[0, 2, 2] = 1  # holds one pixel of its 5 × 5
    assert pointing(relevance, mask, cells=cells_of((11, 11), (3, 3), 5)).tolist() == [1]


def test_energy_is_the_positive_share_inside():
    relevance, mask = torch.randn(3, 2, 5), masks(3, 7, 11)
    found = energy(relevance, mask)
    positive = smooth(relevance, cells_of((7, 11), (2, 5))).clamp(min=0)
    for number in range(3):
        inside = positive[number][mask[number]].sum() / positive[number].sum()
        torch.testing.assert_close(found[number], inside)
    assert energy(-relevance.abs(), mask).tolist() == [0, 0, 0]


@pytest.mark.parametrize("levels", [2, 5, None])
def test_average_precision_is_that_of_scikit_learn(levels):
    relevance, mask = torch.randn(5, 3, 4), masks(5, 13, 17)
    if levels is not None:
        relevance = (relevance * levels).round().clamp(-1, 1)
    found = average_precision(relevance, mask, cells=cells_of((13, 17), (3, 4), 5))
    pixels = smooth(relevance, cells_of((13, 17), (3, 4), 5))
    for number in range(5):
        expected = average_precision_score(mask[number].flatten().numpy(), pixels[number].flatten().numpy())
        assert found[number].item() == pytest.approx(expected, rel=1e-6)


def test_a_map_that_says_nothing_is_as_precise_as_its_mask_is_large():
    mask = masks(2, 13, 17)
    torch.testing.assert_close(average_precision(torch.full((2, 3, 4), 0.1), mask), mask.float().mean((1, 2)))
    intersection, _ = overlaps(torch.full((2, 3, 4), 0.1), mask)
    assert intersection[:, 0].tolist() == [0, 0]


def test_mean_iou_adds_up_before_it_divides():
    relevance, mask = torch.randn(3, 3, 4), masks(3, 9, 8)
    intersection, union = overlaps(relevance, mask)
    pixels = smooth(relevance, cells_of((9, 8), (3, 4)))
    shares = []
    for of_object in (True, False):
        both, either = 0, 0
        for number in range(3):
            said = (pixels[number] > pixels[number].mean()) == of_object
            true = mask[number] == of_object
            both += int((said & true).sum())
            either += int((said | true).sum())
        shares.append(both / either)
    assert mean_iou(intersection, union) == pytest.approx(sum(shares) / 2)
    halves = [overlaps(relevance[part], mask[part]) for part in (slice(2), slice(2, 3))]
    joined = (torch.cat([half[side] for half in halves]) for side in (0, 1))
    assert mean_iou(*joined) == pytest.approx(sum(shares) / 2)


def test_the_oracle_is_the_share_of_each_patch_and_points_right():
    mask = torch.zeros(1, 5, 7, dtype=torch.bool)
    mask[0, :2, 2:4] = True
    mask[0, 4, 6] = True
    expected = torch.tensor([[[2 / 9, 2 / 9, 0], [0, 0, 1 / 2]]])  # patches of 9, 9, 3, 6, 6 and 2 pixels
    torch.testing.assert_close(oracle(mask, cells_of((5, 7), (2, 3), 3)), expected)
    block = torch.zeros(1, 12, 20, dtype=torch.bool)
    block[0, 4:8, 5:15] = True
    found = localisation(oracle(block, cells_of((12, 20), (3, 4))), block)
    assert found.pointing_B.tolist() == [1]
    assert found.precision_B.item() > 0.9
    assert 0.5 < found.mean_iou < 1


def test_all_of_it_is_what_each_says():
    relevance, mask, cells = torch.randn(3, 2, 3), masks(3, 7, 11), cells_of((7, 11), (2, 3), 4)
    found = localisation(relevance, mask, cells=cells, tolerance=2)
    torch.testing.assert_close(found.pointing_B, pointing(relevance, mask, cells=cells, tolerance=2))
    torch.testing.assert_close(found.energy_B, energy(relevance, mask, cells=cells))
    torch.testing.assert_close(found.precision_B, average_precision(relevance, mask, cells=cells))
    assert found.mean_iou == mean_iou(*overlaps(relevance, mask, cells=cells))


def test_reference_maps():
    one, again, other = random_map(3, (5, 7)), random_map(3, (5, 7)), random_map(3, (5, 7), seed=1)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert not torch.equal(one[0], one[1])
    centre = centre_map(2, (5, 7))
    assert centre.shape == (2, 5, 7)
    assert centre[0, 2, 3] == centre.max() == 1
    torch.testing.assert_close(centre, centre.flip(1).flip(2))
    torch.testing.assert_close(centre[1, 0, 3], torch.tensor(0.4**2 / (2 * 0.25**2)).neg().exp())


@pytest.mark.parametrize(
    ("mask", "how", "reason"),
    [
        (torch.ones(2, 7, 11), {}, "torch.float32 of shape"),
        (torch.ones(7, 11, dtype=torch.bool), {}, r"shape \(7, 11\)"),
        (torch.ones(3, 7, 11, dtype=torch.bool), {}, "2 maps are given for 3 images"),
        (torch.tensor([1, 0], dtype=torch.bool).view(2, 1, 1).repeat(1, 7, 11), {}, "image 1 has no object"),
        (torch.ones(2, 7, 11, dtype=torch.bool), {"tolerance": -1}, "must be 0 or more"),
    ],
)
def test_bad_input_is_named(mask, how, reason):
    with pytest.raises(MiradaError, match=reason):
        localisation(torch.rand(2, 3, 4), mask, **how)
