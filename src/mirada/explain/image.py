"""What an image model's answer rests on, by any of the methods: a number for every cell of the image.

Shape letters: B batch, H and W pixels, R rows and C columns of cells, N tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from mirada.core import attention_layers, record
from mirada.errors import MiradaError
from mirada.explain.cells import Cells, cells_of
from mirada.explain.erasing import Baseline, erased
from mirada.explain.grad_cam import grad_cam, layer_cam
from mirada.explain.integrated_gradients import integrated_gradients
from mirada.explain.legrad import legrad
from mirada.explain.looks import Tokens
from mirada.explain.methods import DEFAULT, Method, method_named
from mirada.explain.occlusion import occlusion
from mirada.explain.raw_attention import look_named, raw_attention
from mirada.explain.readers import before_the_answer, inner_layers, one_reader, readers
from mirada.explain.target import Asking
from mirada.explain.trace import require_eval, trace
from mirada.explain.walk import Relevance
from mirada.systems.image_gpt import ImageGPT

UNLOOKED_CELLS = 8  # rows and columns of cells for models without attention


@dataclass(frozen=True)
class ExplainedImages:
    """`relevance_BRC` of every cell, larger where the answer rests on it; `target_B` what was asked about."""

    relevance_BRC: Tensor
    cells: Cells | None  # None of a volume
    target_B: Tensor | None
    method: Method

    @property
    def pixels_BHW(self) -> Tensor:
        """Every pixel with the number of its cell."""
        if self.cells is None:
            raise MiradaError("a volume has boxes, not pixels of an image: use relevance_BRC")
        return self.cells.spread(self.relevance_BRC)


def explain_images(
    model: nn.Module,
    images_BCHW: Tensor,
    *,
    method: str = DEFAULT,
    target: Tensor | int | None = None,
    layer: int | str = -1,
    head: int | None = None,
    at: tuple[int, ...] | None = None,
    baseline: Baseline | None = None,
) -> ExplainedImages:
    """Explain the score of `target` (of the class that the model names, if None) for each of a batch of images.

    layer, head   of the method "attention"
    at            (row, column): follow what this token of the last layer has seen, not those that give the answer
    baseline      "mean" or "blur": what integrated gradients start from ("mean" if None), what covers ("blur" if None)
    """
    require_eval(model)
    if images_BCHW.ndim not in (4, 5) or not len(images_BCHW):
        raise MiradaError(f"images of shape {tuple(images_BCHW.shape)}: give a batch (B, C, H, W) with at least one")
    known = method_named(method)
    if method not in ("integrated_gradients", "occlusion"):
        require_attention(model)
    if at is not None and method not in ("attention", "rollout"):
        raise MiradaError(
            f"{method} explains the answer, not what the token at {at} has seen: use attention or rollout"
        )
    # ImageGPT gives nats per pixel: what makes an image likely is asked.
    asked = _Asked(model, images_BCHW, Asking(target, -1.0 if isinstance(model, ImageGPT) else 1.0), at)
    if known.follow is not None or method == "attention":
        relevance = asked.by_looks(known, layer, head)
    elif method == "legrad":
        layers, read_out = inner_layers(model)
        relevance = legrad(model, images_BCHW, layers=layers, read_out=read_out, score=asked.asking.score)
    elif method in ("grad_cam", "layer_cam"):
        form = grad_cam if method == "grad_cam" else layer_cam
        relevance = form(model, images_BCHW, module=before_the_answer(model), score=asked.asking.score)
    else:
        return asked.by_pixels(known, baseline)
    return asked.on_cells(known, relevance)


@dataclass(frozen=True)
class _Asked:
    model: nn.Module
    images_BCHW: Tensor
    asking: Asking
    at: tuple[int, ...] | None

    def by_looks(self, method: Method, layer: int | str, head: int | None) -> Relevance:
        found = trace(self.model, self.images_BCHW, score=self.asking.score if method.needs_gradient else None)
        self.asking.about(found.output)
        looks = found.looks
        if self.at is not None and layer == -1:  # a query that pools is no patch
            looks = looks[: 1 + max((n for n, look in enumerate(looks) if len(look.queries) > 1), default=0)]
        if method.follow is None:
            look = look_named(looks, layer)
            seen = raw_attention(look, self._start(look.queries), head)
            # A layer that pools sees the tokens of the layers before it, without knowing where they lie.
            known = [tokens for tokens in (other.queries for other in looks) if len(tokens) == len(seen.tokens)]
            return replace(seen, tokens=known[-1]) if len(seen.tokens.size) == 1 and known else seen
        return method.follow(looks, self._start(looks[-1].queries))

    def _start(self, tokens: Tokens) -> Tensor:
        share_N = readers(self.model, tokens) if self.at is None else one_reader(self._placed(tokens), self.at)
        return share_N.to(self.images_BCHW).expand(len(self.images_BCHW), 1, -1)

    def on_cells(self, method: Method, relevance: Relevance) -> ExplainedImages:
        values_BN, tokens = relevance.values_BRX[:, 0, relevance.tokens.num_extra :], relevance.tokens
        if isinstance(self.model, ImageGPT):  # token n stands for pixel n − 1, after one that starts the image
            values_BN = values_BN.roll(-1, 1)
            values_BN[:, -1] = 0
        size = self._placed(tokens).size
        if len(size) == 1:
            raise MiradaError(f"{size[0]} tokens of {type(self.model).__name__} do not say where they lie in the image")
        cells = self._cells(size) if len(size) == 2 else None
        return ExplainedImages(values_BN.unflatten(1, size).float(), cells, self.asking.target_B, method)

    def _placed(self, tokens: Tokens) -> Tokens:
        """A line of as many tokens as the model's grid has, on that grid."""
        if len(tokens.size) == 1 and hasattr(self.model, "grid"):
            grid = tuple(self.model.grid(self.images_BCHW))  # type: ignore[operator]
            return Tokens(grid, tokens.num_extra) if math.prod(grid) == tokens.size[0] else tokens
        return tokens

    def by_pixels(self, method: Method, baseline: Baseline | None) -> ExplainedImages:
        if self.images_BCHW.ndim != 4:
            raise MiradaError(f"{method.name} is for images; for volumes use chefer or rollout")
        if isinstance(self.model, ImageGPT) and method.needs_gradient:
            raise MiradaError("ImageGPT reads colours of a palette, which have no gradient: use chefer or occlusion")
        with torch.no_grad():
            question = self.asking.about(self.model(self.images_BCHW))
        default: Baseline = "mean" if method.name == "integrated_gradients" else "blur"
        cells = self._cells(self._grid())
        if method.name == "occlusion":
            cells = cells.coarser()
        start_BCHW = erased(self.images_BCHW, baseline or default, sigma=(cells.height, cells.width))
        if method.name == "occlusion":

            def score(images_NCHW: Tensor, index_N: Tensor) -> Tensor:
                return question.of(index_N).score(self.model(images_NCHW))

            values = occlusion(score, self.images_BCHW, start_BCHW, cells)
        else:
            whole: Callable[[Tensor], Tensor] = lambda images: question.score(self.model(images))  # noqa: E731
            values = cells.summed(integrated_gradients(whole, self.images_BCHW, start_BCHW).sum(1))
        return ExplainedImages(values.float(), cells, self.asking.target_B, method)

    def _grid(self) -> tuple[int, int]:
        """Of the finest tokens; of a model without attention, some cells."""
        if attention_layers(self.model):
            # One row of weights each: only the places of the tokens are of interest.
            with torch.inference_mode(), record(self.model, queries=[0]) as maps:
                self.model(self.images_BCHW[:1])
            first = maps.in_order[0]
            size = max(Tokens.at(first.queries), Tokens.at(first.keys), key=len).size
            if len(size) == 2:
                return size[0], size[1]
        height, width = self.images_BCHW.shape[-2:]
        return min(UNLOOKED_CELLS, height), min(UNLOOKED_CELLS, width)

    def _cells(self, grid: tuple[int, ...]) -> Cells:
        height, width = self.images_BCHW.shape[-2:]
        patch_size = getattr(self.model, "patch_size", None)
        return cells_of((height, width), (grid[0], grid[1]), patch_size if isinstance(patch_size, int) else None)


def require_attention(model: nn.Module) -> None:
    if not attention_layers(model):
        raise MiradaError(f"{type(model).__name__} has no attention layer: use integrated_gradients or occlusion")
