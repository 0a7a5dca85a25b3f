"""Images written pixel by pixel by a model of pixels, from nothing or from the upper part of one."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from mirada.core import Cache
from mirada.errors import MiradaError
from mirada.tasks.pixels import first_rows
from mirada.tasks.sampling import check_choice, drawn

Size = tuple[int, int]


class PixelModel(Protocol):
    """What can be drawn with: ImageGPT, or anything else that says which colour comes next."""

    start: int
    image_size: Size

    def next_logits(self, read_BN: Tensor, size: Size | None = None, cache: Cache | None = None) -> Tensor: ...
    def colours_of(self, images_BCHW: Tensor) -> Tensor: ...
    def images_of(self, colour_BN: Tensor, size: Size | None = None) -> Tensor: ...


@torch.inference_mode()
def continued(
    model: PixelModel,
    colour_BN: Tensor,
    *,
    size: Size | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """(B, H·W) colours that go on from the first N: each is drawn given all before it, which a cache reads once."""
    check_choice(temperature=temperature, top_k=top_k)
    height, width = model.image_size if size is None else size
    start_B1 = torch.full((len(colour_BN), 1), model.start, dtype=torch.long, device=colour_BN.device)
    written, unread, cache = colour_BN, torch.cat([start_B1, colour_BN], dim=1), Cache()
    while written.shape[1] < height * width:
        logits_BT = model.next_logits(unread, (height, width), cache)[:, -1]
        unread = drawn(logits_BT, temperature=temperature, top_k=top_k, generator=generator)[:, None]
        written = torch.cat([written, unread], dim=1)
    return written


def generate(model: PixelModel, count: int, *, device: torch.device | str | None = None, **how: object) -> Tensor:
    """`count` new images (B, C, H, W); `how` as in `continued`."""
    nothing = torch.empty(count, 0, dtype=torch.long, device=device)
    return model.images_of(continued(model, nothing, **how), how.get("size"))  # type: ignore[arg-type]


def complete(model: PixelModel, images_BCHW: Tensor, *, share: float = 0.5, **how: object) -> Tensor:
    """The images with all but the upper `share` of their rows drawn anew, in the palette's colours."""
    if not 0 <= share <= 1:
        raise MiradaError(f"share={share}: must be between 0 and 1")
    size = images_BCHW.shape[-2], images_BCHW.shape[-1]
    known_BN = first_rows(model.colours_of(images_BCHW), size, share)
    return model.images_of(continued(model, known_BN, size=size, **how), size)  # type: ignore[arg-type]
