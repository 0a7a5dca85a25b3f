"""Masks: the loss by hand, the scores by hand and by scipy, and what happens where a mask is empty."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree
from torch.nn import functional as F

from mirada.data.masks.classes import IGNORED
from mirada.tasks.mask_result import Predicted, mask_result
from mirada.tasks.mask_scores import dice_of, edge_of, edge_scores, iou_of, mask_confusion
from mirada.tasks.segment import Segment, dice_loss

NAMES = ("background", "cell", "wall")


def logits_and_targets(dtype=torch.float64):
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(2, 3, 5, 7, generator=generator, dtype=dtype)
    targets = torch.randint(0, 3, (2, 5, 7), generator=generator)
    targets[0, 0] = IGNORED
    return logits, targets


# --- the loss ---


def test_the_loss_by_hand():
    logits, targets = logits_and_targets()
    entropy, both, sizes, count = 0.0, np.zeros(3), np.zeros(3), 0
    for b in range(2):
        for y in range(5):
            for x in range(7):
                target = int(targets[b, y, x])
                if target == IGNORED:
                    continue
                p = torch.softmax(logits[b, :, y, x], 0).numpy()
                entropy, count = entropy - math.log(p[target]), count + 1
                both[target] += p[target]
                sizes += p**2
                sizes[target] += 1
    dice = 1 - np.mean((2 * both + 1e-5) / (sizes + 1e-5))
    expected = 0.7 * entropy / count + 0.3 * dice
    assert Segment(NAMES, dice_weight=0.3).loss(logits, targets).item() == pytest.approx(expected, rel=1e-6)
    assert dice_loss(logits, targets).item() == pytest.approx(dice, rel=1e-9)


def test_what_counts_for_nothing_has_no_gradient():
    logits, targets = logits_and_targets()
    logits.requires_grad_()
    Segment(NAMES).loss(logits, targets).backward()
    assert not logits.grad[0, :, 0].any() and logits.grad[0, :, 1].any()


def test_a_batch_of_which_nothing_counts():
    logits, targets = logits_and_targets()
    logits.requires_grad_()
    loss = Segment(NAMES).loss(logits, torch.full_like(targets, IGNORED))
    loss.backward()
    assert loss.item() == 0 and not logits.grad.any()


def test_a_perfect_mask_costs_nothing():
    _, targets = logits_and_targets()
    sure = 100 * F.one_hot(targets.masked_fill(targets == IGNORED, 0), 3).permute(0, 3, 1, 2).double()
    assert Segment(NAMES).loss(sure, targets).item() == pytest.approx(0, abs=1e-6)


def test_the_background_is_not_judged_unless_there_is_nothing_else():
    assert Segment(NAMES).judged == (1, 2)
    assert Segment(("cell", "wall")).judged == (0, 1)


# --- scores ---


def test_dice_and_iou_by_hand():
    target = np.array([[0, 0, 1, 1], [0, 2, 1, IGNORED]])
    predicted = np.array([[0, 1, 1, 1], [0, 0, 0, 2]])
    confusion = mask_confusion(predicted, target, 4)
    assert confusion[:3, :3].tolist() == [[2, 1, 0], [1, 2, 0], [1, 0, 0]]
    np.testing.assert_allclose(dice_of(confusion), [2 * 2 / (3 + 4), 2 * 2 / (3 + 3), 0, np.nan])
    np.testing.assert_allclose(iou_of(confusion), [2 / 5, 2 / 4, 0, np.nan])


def hausdorff(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances from each pixel of either edge to the nearest of the other, by a tree of points."""
    points = [np.argwhere(edge_of(mask)) for mask in (one, other)]
    return cKDTree(points[1]).query(points[0])[0], cKDTree(points[0]).query(points[1])[0]


@pytest.mark.parametrize("seed", range(5))
def test_edges_against_a_tree_of_points(seed):
    generator = np.random.default_rng(seed)
    one, other = (generator.random((23, 31)) > 0.8 for _ in range(2))
    there, back = hausdorff(one, other)
    found = edge_scores(one, other)
    assert found.hd95 == pytest.approx(max(np.percentile(there, 95), np.percentile(back, 95)))
    precision, recall = (there <= 1).mean(), (back <= 1).mean()  # 0.75 % of the diagonal is less than a pixel
    assert found.boundary_f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_a_square_moved_by_three_pixels():
    square = np.zeros((40, 50), bool)
    square[10:20, 10:20] = True
    moved = np.roll(square, 3, axis=1)
    assert edge_scores(square, square).hd95 == 0 and edge_scores(square, square).boundary_f1 == 1
    assert edge_scores(square, moved).hd95 == 3


def test_edges_of_a_mask_are_its_rim_and_the_rim_of_the_image():
    full = np.ones((4, 5), bool)
    assert edge_of(full).sum() == 2 * 5 + 2 * 2


def test_empty_masks():
    empty, some = np.zeros((3, 4), bool), np.eye(3, 4, dtype=bool)
    assert edge_scores(empty, empty) is None
    assert edge_scores(empty, some).hd95 == edge_scores(some, empty).hd95 == 5.0
    assert edge_scores(empty, some).boundary_f1 == 0


def test_means_leave_out_images_that_say_nothing_of_a_class():
    targets = np.zeros((2, 4, 4), np.uint8)
    targets[0, :2] = 1
    said = targets.copy()
    said[0, 0] = 0  # half of the cell is missed
    result, rows = mask_result(Predicted(said, targets), NAMES, (1, 2))
    assert result["per_class"][1]["dice"] == pytest.approx(2 * 4 / (4 + 8))
    assert result["per_class"][2]["dice"] is None
    assert result["value"] == pytest.approx(2 / 3) and result["iou"] == pytest.approx(0.5)
    assert rows[0]["dice"] == pytest.approx(0.666667) and rows[1]["dice"] is None
    # Whoever says cell everywhere is half right on the first image and wrong on the second.
    assert result["majority"] == pytest.approx((2 * 8 / (8 + 16) + 0) / 2)


def test_outputs_in_words():
    logits, targets = logits_and_targets(torch.float32)
    task = Segment(NAMES)
    quick, result = task.quick(logits, targets), task.result(logits, targets)
    assert quick["dice"] == pytest.approx(result["value"]) and 0 < quick["loss"]
    assert sum(task.answers(logits)[0].values()) == pytest.approx(1, abs=1e-5)
    assert task.named(targets)[1].keys() == {"target_background", "target_cell", "target_wall"}


def test_dice_and_iou_of_torchmetrics():
    segmentation = pytest.importorskip("torchmetrics.functional.segmentation")
    generator = np.random.default_rng(3)
    target, predicted = (generator.integers(0, 4, (6, 13, 17)) for _ in range(2))
    given = torch.from_numpy(predicted), torch.from_numpy(target)
    ours = [mask_confusion(p, t, 4) for p, t in zip(predicted, target, strict=True)]
    dice_NC = segmentation.dice_score(*given, num_classes=4, average="none", input_format="index")
    np.testing.assert_allclose(np.stack([dice_of(one) for one in ours]), dice_NC, rtol=1e-5)
    iou_NC = segmentation.mean_iou(*given, num_classes=4, per_class=True, input_format="index")
    np.testing.assert_allclose(np.stack([iou_of(one) for one in ours]), iou_NC, rtol=1e-5)


def test_hausdorff_of_scipy():
    """Our distances, at their largest instead of the 95th percentile, are scipy's."""
    from scipy.spatial.distance import directed_hausdorff

    generator = np.random.default_rng(4)
    one, other = (generator.random((19, 23)) > 0.85 for _ in range(2))
    points = [np.argwhere(edge_of(mask)) for mask in (one, other)]
    there, back = hausdorff(one, other)
    assert there.max() == pytest.approx(directed_hausdorff(*points)[0])
    assert back.max() == pytest.approx(directed_hausdorff(*points[::-1])[0])
