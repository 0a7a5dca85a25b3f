"""Deletion, insertion and perturbation against hand calculations and a loop over single images."""

import math

import pytest
import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain import faithfulness as subject
from mirada.explain.cells import cells_of
from mirada.explain.erasing import blurred, erased
from mirada.explain.faithfulness import (
    Curve,
    deletion,
    faithfulness,
    insertion,
    is_above_half,
    is_highest,
    perturbation,
    ranks,
)

BLACK = (0.0,)


def brightness(images_BCHW: Tensor) -> Tensor:
    """Class 0: the mean pixel; class 1: the rest."""
    mean_B = images_BCHW.mean((1, 2, 3))
    return torch.stack([mean_B, 1 - mean_B], dim=1)


def linear(channels: int, height: int, width: int, num_classes: int):
    weights = torch.randn(channels * height * width, num_classes)
    return lambda images_BCHW: (images_BCHW.flatten(1) @ weights).sigmoid()


def test_deletion_of_white_images_is_the_share_of_pixels_left():
    # Five rows in patches of 3 and 2, seven columns in patches of 3, 3 and 1: of 35 pixels 9, 9, 3, 6, 6, 2.
    relevance = torch.tensor([[[1.0, 6.0, 2.0], [5.0, 4.0, 3.0]]])
    given = (brightness, torch.ones(1, 1, 5, 7), relevance, torch.tensor([0]))
    curve = deletion(*given, baseline="black", black_C=BLACK, cells=cells_of((5, 7), (2, 3), 3), patches_per_step=1)
    pixels = torch.tensor([0, 9, 6, 6, 2, 3, 9]).cumsum(0)
    torch.testing.assert_close(curve.shares_S, torch.arange(7) / 6)
    torch.testing.assert_close(curve.scores_BS, 1 - pixels[None] / 35)
    other = insertion(*given, baseline="black", black_C=BLACK, cells=cells_of((5, 7), (2, 3), 3), patches_per_step=1)
    torch.testing.assert_close(other.scores_BS, pixels[None] / 35)


def test_the_area_is_by_trapezoids():
    scores = torch.tensor([[0.9, 0.6, 0.5, 0.1]])
    equal = Curve(torch.arange(4) / 3, scores)
    torch.testing.assert_close(equal.area_B, torch.tensor([(2.1 - 0.5) / 3]))
    unequal = Curve(torch.tensor([0, 0.4, 0.8, 1.0]), scores)
    torch.testing.assert_close(unequal.area_B, torch.tensor([0.4 * 0.75 + 0.4 * 0.55 + 0.2 * 0.3]))
    torch.testing.assert_close(equal.mean_B, torch.tensor([0.525]))


@pytest.mark.parametrize("baseline", ["blur", "black", "mean"])
@pytest.mark.parametrize("step", [1, 4, 5])
def test_curves_equal_a_loop_over_images_and_patches(baseline, step):
    batch, channels, height, width, patch = 3, 2, 11, 14, 5
    predict, black = linear(channels, height, width, 7), (-0.7, 0.3)
    images, relevance, target = torch.randn(batch, channels, height, width), torch.rand(batch, 3, 3), torch.arange(3)
    how = {"baseline": baseline, "black_C": black, "cells": cells_of((11, 14), (3, 3), 5), "patches_per_step": step}
    deleted, inserted = (f(predict, images, relevance, target, **how) for f in (deletion, insertion))
    for number, image in enumerate(images):
        blank = erased(image[None], baseline, sigma=(patch, patch), black_C=black)[0]
        order = sorted(range(9), key=lambda cell: -relevance[number].flatten()[cell].item())
        for at, count in enumerate([*range(0, 9, step), 9]):
            gone, put_back = image.clone(), blank.clone()
            for cell in order[:count]:
                rows, columns = (slice(patch * i, patch * i + patch) for i in divmod(cell, 3))
                gone[:, rows, columns] = blank[:, rows, columns]
                put_back[:, rows, columns] = image[:, rows, columns]
            both = predict(torch.stack([gone, put_back]))[:, target[number]]
            torch.testing.assert_close(deleted.scores_BS[number, at], both[0])
            torch.testing.assert_close(inserted.scores_BS[number, at], both[1])


def test_both_curves_join_the_image_and_nothing():
    predict, images = linear(3, 13, 17, 5), torch.randn(2, 3, 13, 17)
    given = (predict, images, torch.rand(2, 4, 6), torch.tensor([4, 1]))
    deleted, inserted = (f(*given, baseline="blur") for f in (deletion, insertion))
    whole = predict(images)[torch.arange(2), given[3]]
    torch.testing.assert_close(deleted.scores_BS[:, 0], whole)
    torch.testing.assert_close(inserted.scores_BS[:, -1], whole)
    torch.testing.assert_close(deleted.scores_BS[:, -1], inserted.scores_BS[:, 0])
    assert len(deleted.shares_S) == 13  # 24 patches, a sixteenth of them rounded up to 2


def test_equal_relevance_goes_in_raster_order_and_negative_is_its_reverse():
    relevance = torch.tensor([[[0.0, 1.0, 0.0], [1.0, 0.0, 2.0]]])
    assert ranks(relevance, 1).tolist() == [[[3, 1, 4], [2, 5, 0]]]


def test_perturbation_by_hand():
    # Ten patches of one pixel; the class is seen as long as the third most relevant one is.
    relevance = torch.arange(10.0)[None, None]
    image = torch.ones(1, 1, 1, 10)

    def predict(shown_BCHW: Tensor) -> Tensor:
        seen_B = shown_BCHW[:, 0, 0, 7]
        return torch.stack([1 - seen_B, seen_B], dim=1)

    positive, negative = perturbation(
        predict, image, relevance, torch.tensor([1]), black_C=BLACK, is_predicted=is_highest
    )
    assert positive.scores_BS.tolist() == [[1, 1, 0, 0, 0, 0, 0, 0, 0]]
    assert negative.scores_BS.tolist() == [[1, 1, 1, 1, 1, 1, 1, 0, 0]]
    assert positive.mean_B.item() == pytest.approx(2 / 9)
    torch.testing.assert_close(positive.shares_S, torch.arange(1, 10) / 10)


def test_what_counts_as_predicted():
    probability, target = torch.tensor([[0.6, 0.7, 0.2], [0.4, 0.3, 0.2]]), torch.tensor([0, 0])
    assert is_highest(probability, target).tolist() == [False, True]
    assert is_above_half(probability, target).tolist() == [True, False]


def test_a_batch_is_its_images_one_by_one():
    predict, images = linear(3, 12, 20, 5), torch.randn(3, 3, 12, 20)
    relevance, target = torch.rand(3, 3, 5), torch.tensor([2, 0, 4])
    how = {"baseline": "mean", "black_C": (0.1, 0.2, 0.3), "is_predicted": is_above_half}
    together = faithfulness(predict, images, relevance, target, **how)
    for number in range(3):
        one = slice(number, number + 1)
        alone = faithfulness(predict, images[one], relevance[one], target[one], **how)
        for name in ("deletion", "insertion", "positive", "negative"):
            ours, single = getattr(together, name), getattr(alone, name)
            torch.testing.assert_close(ours.scores_BS[one], single.scores_BS)


def test_pixels_that_the_model_crops_never_change():
    seen: list[Tensor] = []

    def predict(shown_BCHW: Tensor) -> Tensor:
        seen.append(shown_BCHW)
        return brightness(shown_BCHW)

    given = (predict, torch.ones(1, 1, 10, 11), torch.rand(1, 3, 3), torch.tensor([0]))
    deletion(*given, baseline="black", black_C=BLACK, cells=cells_of((10, 11), (3, 3), 3))
    assert seen[-1].sum() == 10 * 11 - 81
    assert seen[-1][0, 0, 9].min() == seen[-1][0, 0, :, 9:].min() == 1


def test_no_gradient_is_kept():
    weights = torch.randn(3 * 4 * 4, 2, requires_grad=True)
    given = (lambda x: (x.flatten(1) @ weights).sigmoid(), torch.randn(2, 3, 4, 4), torch.rand(2, 2, 2))
    assert not deletion(*given, torch.tensor([0, 1]), baseline="blur").scores_BS.requires_grad


def test_blur_is_a_weighted_mean_of_the_pixels_there_are():
    image = torch.randn(1, 2, 5, 7, dtype=torch.float64)
    result = blurred(image, (1.5, 2.5))
    row, column = 4, 0
    weights = torch.tensor(
        [[math.exp(-((row - i) ** 2) / 4.5 - (column - j) ** 2 / 12.5) for j in range(7)] for i in range(5)]
    ).double()
    torch.testing.assert_close(result[0, 1, row, column], (weights * image[0, 1]).sum() / weights.sum())
    torch.testing.assert_close(blurred(torch.full_like(image, 0.3), (1.5, 2.5)), torch.full_like(image, 0.3))


def test_the_mean_of_the_data_is_zero_and_black_is_said_for_each_channel():
    images = torch.randn(2, 3, 5, 7)
    assert torch.equal(erased(images, "mean", sigma=(1, 1)), torch.zeros(2, 3, 5, 7))
    assert erased(images, "black", sigma=(1, 1), black_C=(1, 2, 3))[0, :, 0, 0].tolist() == [1, 2, 3]


IMAGES, MAPS, TARGET = torch.zeros(2, 3, 4, 4), torch.zeros(2, 2, 2), torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("given", "how", "reason"),
    [
        ((IMAGES, MAPS[:1], TARGET), {}, "1 maps are given for 2 images"),
        ((IMAGES, MAPS[0], TARGET), {}, r"shape \(2, 2\): expected floating-point maps"),
        ((IMAGES, MAPS.long(), TARGET), {}, "torch.int64"),
        ((IMAGES, torch.stack([MAPS[0], MAPS[0] / 0]), TARGET), {}, "image 1 has values that are no finite"),
        ((IMAGES, MAPS, TARGET[:1]), {}, r"shape \(1,\) for 2 images"),
        ((IMAGES, MAPS, TARGET.float()), {}, "torch.float32"),
        ((IMAGES, MAPS, TARGET + 1), {}, "classes from 1 to 2 and predict gives 2: expected 0 to 1"),
        ((IMAGES, MAPS, TARGET), {"baseline": "white"}, "'blur', 'black', 'mean'"),
        ((IMAGES, MAPS, TARGET), {"baseline": "black"}, "is given nothing as black_C"),
        ((IMAGES, MAPS, TARGET), {"baseline": "black", "black_C": (0,)}, "is given 1 numbers"),
        ((IMAGES, MAPS, TARGET), {"patches_per_step": 5}, "from 1 to the 4 patches"),
        (
            (IMAGES, MAPS, TARGET),
            {"cells": cells_of((4, 6), (2, 2))},
            "2 × 2 on 4 × 6 pixels, for maps of 2 × 2 on 4 × 4",
        ),
        ((IMAGES + 2, MAPS, TARGET), {}, "numbers from -1 to 2: expected probabilities"),
    ],
)
def test_bad_input_is_named(given, how, reason):
    with pytest.raises(MiradaError, match=reason):
        deletion(brightness, *given, **{"baseline": "blur", **how})


def test_predict_must_give_one_row_per_image():
    with pytest.raises(MiradaError, match=r"gave \(2,\) for 2 images"):
        insertion(lambda images: images.mean((1, 2, 3)), IMAGES, MAPS, TARGET, baseline="mean")


def test_the_steps_of_perturbation_are_tenths():
    assert pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) == subject.MASKED
