"""Where the tokens of other people's models are: patches of an image after extra tokens, or the words of a line.

    rows × columns = ⌊height / patch⌋ × ⌊width / patch⌋,   N = num_extra + rows · columns

The patch size and the extra tokens (class, distillation, registers) are read off the model, and the sides off the
image. Nothing is guessed from the number of tokens: where the two do not agree the model is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.explain.capture import CapturedMap
from mirada.explain.looks import Tokens

Inputs = Tensor | Mapping[str, Any]

# Parameters that timm, transformers, torchvision and vit-pytorch put before the patches.
EXTRA_TOKENS = {
    *("cls_token", "class_token", "class_embedding", "dist_token", "distillation_token", "reg_token"),
    *("register_tokens",),
}
# Layers whose maps have the shape of attention over tokens and are none.
NOT_OVER_TOKENS = {
    "XCA": "weighs channels by channels, not tokens by tokens",
    "CrossCovarianceAttn": "weighs channels by channels, not tokens by tokens",
    "ChannelAttention": "weighs channels by channels, not tokens by tokens",
    "ChannelAttentionV2": "weighs channels by channels, not tokens by tokens",
    "DiffAttention": "subtracts one attention from another, so that neither is what the token saw",
}
ADVICE = "give tokens=Tokens((rows, columns), num_extra) if you know how they lie"


@dataclass(frozen=True)
class Layout:
    """Which tokens a map is about: by its batch and how many look or are looked at."""

    model_class: str
    tokens: dict[tuple[int, int], Tokens]  # by (batch, count)

    def of(self, found: CapturedMap) -> tuple[Tokens, Tokens]:
        """Tokens of the queries and of the keys of a map."""
        batch, _, num_queries, num_keys = found.weights_BHNM.shape
        batches = sorted({size for size, _ in self.tokens})
        if batch not in batches:
            samples = " or ".join(map(str, batches))
            reason = f"gives {batch} maps for {samples} samples, as attention inside windows or parts of them does"
            raise _refusal(self.model_class, found, reason)
        pool = Tokens((1,)) if num_queries == 1 else None
        queries, keys = self.tokens.get((batch, num_queries), pool), self.tokens.get((batch, num_keys))
        if queries is None or keys is None:
            expected = " or ".join(sorted({_in_words(tokens) for tokens in self.tokens.values()}))
            reason = f"has {num_queries} queries and {num_keys} keys, expected {expected}; {ADVICE}"
            raise _refusal(self.model_class, found, reason)
        return queries, keys


def _in_words(tokens: Tokens) -> str:
    size = " × ".join(map(str, tokens.size))
    return f"{tokens.num_extra} + {size} tokens" if tokens.num_extra else f"{size} tokens"


def _refusal(model_class: str, found: CapturedMap, reason: str) -> MiradaError:
    return MiradaError(f"{model_class} cannot be explained: its layer {found.name!r} ({found.layer}) {reason}")


def must_be_over_tokens(model: nn.Module, maps: list[CapturedMap]) -> None:
    """Refuse layers that no layout can make sense of."""
    for found in maps:
        shape = tuple(found.weights_BHNM.shape)
        if found.layer in NOT_OVER_TOKENS:
            raise _refusal(type(model).__name__, found, NOT_OVER_TOKENS[found.layer])
        if len(shape) != 4:
            reason = f"has weights of shape {shape}, not (batch, heads, queries, keys)"
            raise _refusal(type(model).__name__, found, reason)


def layout_of(model: nn.Module, inputs: Inputs, tokens: Tokens | None = None) -> Layout:
    """How tokens lie when the model runs on these inputs; `tokens` says it for models that do not tell."""
    name = type(model).__name__
    tensors = [inputs] if isinstance(inputs, Tensor) else [x for x in inputs.values() if isinstance(x, Tensor)]
    if not tensors:
        raise MiradaError(f"the inputs of {name} hold no tensor: give a tensor or keyword arguments with tensors")
    if isinstance(inputs, Mapping) and {"pixel_values", "input_ids"} <= set(inputs):
        raise MiradaError(f"{name} reads images and text at once: explain its image or its text model alone")
    main = _main(model, inputs, tensors)
    is_image = main.ndim == 4 and main.is_floating_point()
    if is_image or tokens is not None:
        tokens = tokens or patches_of(model, (main.shape[-2], main.shape[-1]))
        batches = {main.shape[0]} if is_image else {1, *main.shape[:2]}
        # The class token may join later than the patches.
        counted = {math.prod(tokens.size): Tokens(tokens.size), len(tokens): tokens}
        return Layout(name, {(batch, count): some for batch in batches for count, some in counted.items()})
    lines = {line: Tokens((line[1],)) for tensor in tensors for line in _lines(tensor)}
    if not lines:
        raise MiradaError(
            f"{name} was given an input of shape {tuple(main.shape)}: expected images (batch, channels, height, "
            f"width), token numbers (batch, length) or vectors (batch, length, dim); {ADVICE}"
        )
    return Layout(name, lines)


def patches_of(model: nn.Module, image_size: tuple[int, int]) -> Tokens:
    """The patches of an image of (height, width) and the extra tokens before them, as the model declares both."""
    inner = getattr(model, "timm_model", model)  # transformers' wrapper around timm
    embedding: Any = getattr(inner, "patch_embed", None)
    if hasattr(embedding, "dynamic_feat_size"):
        rows, columns = embedding.dynamic_feat_size(image_size)
    else:
        height, width = _patch_size(inner)
        rows, columns = image_size[0] // height, image_size[1] // width
    return Tokens((int(rows), int(columns)), _num_extra(inner))


def _patch_size(model: nn.Module) -> tuple[int, int]:
    config = getattr(model, "config", None)
    for owner in (model, config, getattr(config, "vision_config", None)):
        size = getattr(owner, "patch_size", None)
        if isinstance(size, int):
            return size, size
        if isinstance(size, list | tuple) and len(size) == 2:
            return int(size[0]), int(size[1])
    raise MiradaError(f"{type(model).__name__} does not tell its patch size: {ADVICE}")


def square_patch(model: nn.Module) -> int | None:
    """The side of a patch in pixels, where the model tells it and it is a square."""
    inner = getattr(model, "timm_model", model)
    size = getattr(getattr(inner, "patch_embed", None), "patch_size", None)
    try:
        height, width = size if isinstance(size, tuple) else _patch_size(inner)
    except MiradaError:
        return None
    return int(height) if height == width else None


def _num_extra(model: nn.Module) -> int:
    declared = getattr(model, "num_prefix_tokens", None)
    if isinstance(declared, int):
        return declared
    extra = [p for name, p in model.named_parameters() if name.rsplit(".", 1)[-1] in EXTRA_TOKENS]
    return sum(parameter.numel() // parameter.shape[-1] for parameter in extra)


def _main(model: nn.Module, inputs: Inputs, tensors: list[Tensor]) -> Tensor:
    named = inputs.get(str(getattr(model, "main_input_name", None))) if isinstance(inputs, Mapping) else None
    return named if isinstance(named, Tensor) else tensors[0]


def _lines(tensor: Tensor) -> list[tuple[int, int]]:
    """(batch, length) that a tensor may stand for: vectors come batch first or length first, or unbatched."""
    if tensor.ndim not in (2, 3):
        return []
    first, second = tensor.shape[:2]
    if tensor.ndim == 3:
        return [(first, second), (second, first)]
    return [(1, first)] if tensor.is_floating_point() else [(first, second)]
