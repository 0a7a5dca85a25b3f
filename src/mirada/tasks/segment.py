"""A class for every pixel: cross-entropy and Dice. Shape letters: B batch, C classes, H height, W width.

    loss = (1 − w) CE + w (1 − mean_c (2 Σ p_c y_c + ε) / (Σ p_c² + Σ y_c² + ε)),   w = ½  (TransUNet)

Sums go over the pixels of the batch that count.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.data.masks.classes import IGNORED, judged_of
from mirada.tasks.mask_result import Predicted, mask_result, watched_numbers

SMOOTH = 1e-5


class Segment:
    """Targets are numbers of classes (B, H, W), IGNORED where they count for nothing."""

    metric = "dice"

    def __init__(
        self, class_names: Sequence[str], *, dice_weight: float = 0.5, class_weights: Tensor | None = None
    ) -> None:
        self.class_names = tuple(class_names)
        self.dice_weight, self.class_weights = dice_weight, class_weights
        self.judged = judged_of(self.class_names)

    def loss(self, logits_BCHW: Tensor, targets_BHW: Tensor) -> Tensor:
        weight = None if self.class_weights is None else self.class_weights.to(logits_BCHW)
        logits_BCHW = logits_BCHW.float()
        if not (targets_BHW != IGNORED).any():  # a batch whose pixels all count for nothing
            return logits_BCHW.sum() * 0.0
        entropy = F.cross_entropy(logits_BCHW, targets_BHW, weight=weight, ignore_index=IGNORED)
        return (1 - self.dice_weight) * entropy + self.dice_weight * dice_loss(logits_BCHW, targets_BHW)

    def quick(self, logits_BCHW: Tensor, targets_BHW: Tensor) -> dict[str, float]:
        """What is watched during training."""
        masks, num_classes = self._predicted(logits_BCHW, targets_BHW), len(self.class_names)
        return {"loss": self.loss(logits_BCHW, targets_BHW).item(), **watched_numbers(masks, num_classes, self.judged)}

    def result(self, logits_BCHW: Tensor, targets_BHW: Tensor) -> dict:
        """Everything the report says about held-out predictions."""
        return mask_result(self._predicted(logits_BCHW, targets_BHW), self.class_names, self.judged)[0]

    def answers(self, logits_BCHW: Tensor) -> list[dict]:
        """The share of the image that each class has, one row per image."""
        return self.shares("share", classes_of(logits_BCHW))

    def named(self, targets_BHW: Tensor) -> list[dict]:
        return self.shares("target", targets_BHW)

    def shares(self, word: str, masks_BHW: Tensor) -> list[dict]:
        """Of each class in each mask, called `word`_class."""
        return [
            {f"{word}_{name}": round((mask == c).double().mean().item(), 6) for c, name in enumerate(self.class_names)}
            for mask in masks_BHW
        ]

    def _predicted(self, logits_BCHW: Tensor, targets_BHW: Tensor) -> Predicted:
        return Predicted(classes_of(logits_BCHW).numpy(), targets_BHW.to(torch.uint8).numpy())


def dice_loss(logits_BCHW: Tensor, targets_BHW: Tensor) -> Tensor:
    """1 − mean over classes of the soft Dice, its denominator of squares."""
    counts_B1HW = (targets_BHW != IGNORED)[:, None]
    p_BCHW = probabilities(logits_BCHW, 1) * counts_B1HW
    y_BHWC = F.one_hot(targets_BHW.masked_fill(~counts_B1HW[:, 0], 0), logits_BCHW.shape[1])
    y_BCHW = y_BHWC.permute(0, 3, 1, 2).to(p_BCHW) * counts_B1HW
    over = (0, 2, 3)
    both_C = (p_BCHW * y_BCHW).sum(over)
    dice_C = (2 * both_C + SMOOTH) / (p_BCHW.square().sum(over) + y_BCHW.sum(over) + SMOOTH)
    return 1 - dice_C.mean()


def probabilities(logits: Tensor, classes: int) -> Tensor:
    """Of the classes along this dimension."""
    return logits.softmax(classes)


def classes_of(logits_BCHW: Tensor) -> Tensor:
    """uint8 (B, H, W): the class with the largest logit."""
    return logits_BCHW.argmax(1).to(torch.uint8)
