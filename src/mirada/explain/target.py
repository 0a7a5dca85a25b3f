"""The one number per input that is explained, from whatever a model gives.

    classes    (B, C)         y_c, the score of the class before any softmax
    one number (B,)           itself
    masks      (B, C, H, W)   mean of y_c over the pixels that are called c

Shape letters: B batch, C classes, H and W pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mirada.errors import MiradaError


@dataclass(frozen=True)
class Question:
    """`score(outputs)` is (B,); `target_B` the class of each, None where there is one number."""

    target_B: Tensor | None
    named_BHW: Tensor | None = None  # of masks: the pixels that are called so
    factor: float = 1.0  # −1 where a model gives a cost, so that relevance is what makes it good

    def score(self, outputs: Any) -> Tensor:
        if self.target_B is None:
            return self.factor * outputs.view(len(outputs))
        chosen = outputs[torch.arange(len(outputs), device=outputs.device), self.target_B]
        if self.named_BHW is None:
            return chosen
        return (chosen * self.named_BHW).flatten(1).sum(1) / self.named_BHW.flatten(1).sum(1).clamp(min=1)

    def of(self, index_N: Tensor) -> Question:
        """The question about some of the batch, in any order and number."""
        target = None if self.target_B is None else self.target_B[index_N]
        named = None if self.named_BHW is None else self.named_BHW[index_N]
        return replace(self, target_B=target, named_BHW=named)


class Asking:
    """A question that is asked of the first answer that is seen: which class, only the model's outputs tell."""

    def __init__(self, target: Tensor | int | None, factor: float = 1.0) -> None:
        self.target, self.factor = target, factor
        self._question: Question | None = None

    def about(self, outputs: Any) -> Question:
        if self._question is None:
            seen = outputs.detach() if isinstance(outputs, Tensor) else outputs
            self._question = replace(question_of(seen, self.target), factor=self.factor)
        return self._question

    def score(self, outputs: Any) -> Tensor:
        return self.about(outputs).score(outputs)

    @property
    def target_B(self) -> Tensor | None:
        return None if self._question is None else self._question.target_B


def question_of(outputs: Any, target: Tensor | int | None) -> Question:
    """`target` None: the class that scores highest; of masks, the most frequent one besides class 0."""
    if not isinstance(outputs, Tensor):
        raise MiradaError(f"the model gives {type(outputs).__name__}, and only a tensor of scores can be explained")
    if outputs.ndim == 1 or (outputs.ndim == 2 and outputs.shape[1] == 1 and target is None):
        if target is not None:
            raise MiradaError(f"target={target}: the model gives one number for each input; leave the target out")
        return Question(None)
    batch, num_classes = outputs.shape[:2]
    named = outputs.argmax(1)
    if target is None:
        target_B = named if outputs.ndim == 2 else _most_named(named, num_classes)
    else:
        target_B = _given(target, batch, num_classes).to(outputs.device)
    if target_B.is_floating_point() or not ((target_B >= 0) & (target_B < num_classes)).all():
        raise MiradaError(f"target={target}: must be classes from 0 to {num_classes - 1}, one or {batch} of them")
    if outputs.ndim == 2:
        return Question(target_B)
    is_named = named == target_B.view(-1, *[1] * (named.ndim - 1))
    # Of a class that no pixel is called, the score is that of all pixels.
    nobody = ~is_named.flatten(1).any(1)
    is_named[nobody] = True
    return Question(target_B, is_named.to(outputs))


def _given(target: Any, batch: int, num_classes: int) -> Tensor:
    try:
        return torch.as_tensor(target).expand(batch)
    except (TypeError, ValueError, RuntimeError):
        raise MiradaError(
            f"target={target!r}: must be classes from 0 to {num_classes - 1}, one or {batch} of them"
        ) from None


def _most_named(named_BHW: Tensor, num_classes: int) -> Tensor:
    counts = torch.stack([(named_BHW == number).flatten(1).sum(1) for number in range(num_classes)], dim=1)
    counts[:, 0] = torch.where(counts[:, 1:].any(1), -1, counts[:, 0])
    return counts.argmax(1)
