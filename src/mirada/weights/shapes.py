"""Arguments of a system, read from the shapes of its tensors and from what a config.json says."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mirada.errors import MiradaError
from mirada.systems import cards

USUAL_HEAD_DIM = 64  # of every published ViT but H/14


def require_only(config: Mapping[str, Any], only: Mapping[str, Any]) -> None:
    """A config.json that names one of these settings must say this of it."""
    for name, known in only.items():
        if config.get(name, known) != known:
            raise MiradaError(
                f"the checkpoint's config.json says {name}={config[name]!r}: only {known!r} is known here"
            )


def depth_of(names: Iterable[str], template: str) -> int:
    """How many numbers stand for {i} in these names: depth_of(names, "blocks.{i}.")."""
    before, after = template.split("{i}")
    pattern = re.compile(re.escape(before) + "([0-9]+)" + re.escape(after))
    return len({match[1] for match in map(pattern.match, names) if match})


def ratio_of(hidden_dim: int, dim: int) -> float:
    """The mlp_ratio with int(dim · ratio) = hidden_dim, also where the quotient is rounded down."""
    ratio = hidden_dim / dim
    return ratio if int(dim * ratio) == hidden_dim else (hidden_dim + 0.5) / dim


def image_size_of(stated: int | Sequence[int] | None, patch_size: int, num_patches: int) -> tuple[int, int]:
    """The image size at which a table of `num_patches` positions was learned.

    Only where no size is stated, or another than the table has, the grid is taken to be a square.
    """
    if stated is not None:
        height, width = (stated, stated) if isinstance(stated, int) else (stated[-2], stated[-1])
        if (height // patch_size) * (width // patch_size) == num_patches:
            return height, width
    side = math.isqrt(num_patches)
    if side * side != num_patches:
        raise MiradaError(
            f"the checkpoint has {num_patches} positions, which are no square grid, and does not say which: "
            f"put image_size into a config.json beside it"
        )
    return side * patch_size, side * patch_size


def num_heads_of(stated: int | None, system: str, dim: int, depth: int) -> int:
    """As stated, else that of the published size with this dim and depth, else 64 channels a head."""
    if stated is not None:
        return stated
    for arguments in cards()[system].sizes.values():
        if (arguments.get("dim"), arguments.get("depth")) == (dim, depth):
            num_heads = arguments["num_heads"]
            assert isinstance(num_heads, int)
            return num_heads
    if dim % USUAL_HEAD_DIM:
        raise MiradaError(
            f"the checkpoint does not say how many heads share its {dim} channels: "
            f"put num_attention_heads into a config.json beside it"
        )
    return dim // USUAL_HEAD_DIM
