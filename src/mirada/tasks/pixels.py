"""How surprising images are to a model of their pixels. Shape letters: N images, T colours, P pixels.

    nats = − (1/P) Σ_p log p(x_p | x_1 … x_{p−1}),      bits per dimension = nats / (channels · log 2)

Both are of the image in the palette's colours, not of its 256 levels per channel.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.tasks.words import surprise_words


class Pixels:
    """loss = mean over images of nats per pixel; the images are their own targets."""

    metric = "bits_per_dimension"

    def __init__(self, in_channels: int) -> None:
        self.in_channels = in_channels

    def loss(self, nats_N: Tensor, targets: Tensor) -> Tensor:
        return nats_N.mean()

    def bits(self, nats: float) -> float:
        return nats / (self.in_channels * math.log(2))

    def quick(self, nats_N: Tensor, targets: Tensor) -> dict[str, float]:
        """What is watched during training."""
        nats = nats_N.double().mean().item()
        return {"loss": nats, "bits_per_dimension": self.bits(nats)}

    def result(self, nats_N: Tensor, targets: Tensor) -> dict:
        """Everything that is said about held-out images."""
        nats_N = nats_N.double()
        error = 1.96 * nats_N.std().item() / len(nats_N) ** 0.5 if len(nats_N) > 1 else math.nan
        mean = nats_N.mean().item()
        return {
            "metric": self.metric,
            "value": self.bits(mean),
            "low": self.bits(mean - error),
            "high": self.bits(mean + error),
            "interval": "normal over images, 95 %",
            "n": len(nats_N),
            "nats_per_pixel": mean,
            **self.quick(nats_N, targets),
        }

    def answers(self, nats_N: Tensor) -> list[dict]:
        """One row per image: the higher, the more unusual."""
        return surprise_words(self.in_channels, nats_N.detach().cpu().numpy())

    def named(self, targets: Tensor) -> list[dict]:
        """Images have no target but themselves."""
        return [{} for _ in range(len(targets))]


def colour_counts(colour_NP: Tensor, num_colours: int) -> Tensor:
    """(T,) how many pixels have each colour."""
    return torch.bincount(colour_NP.flatten().cpu(), minlength=num_colours).double()


def nats_of_single_pixels(count_T: Tensor, held_out_T: Tensor) -> float:
    """Nats per pixel of a model that knows how frequent colours are and nothing else: what looking at others must beat.

    Colours that training never showed count as seen once, so that none is impossible.
    """
    known_T = count_T + 1
    log_share_T = known_T.log() - known_T.sum().log()
    return -(held_out_T * log_share_T).sum().item() / held_out_T.sum().item()


def first_rows(colour_NP: Tensor, size: tuple[int, int], share: float) -> Tensor:
    """The pixels of the upper `share` of the rows."""
    height, width = size
    return colour_NP.unflatten(1, (height, width))[:, : round(share * height)].flatten(1)


def padded_grid(images_NCHW: Tensor, columns: int, gap: float = 1.0) -> Tensor:
    """One picture (C, H, W) of many images in rows, with a line of `gap` between them."""
    missing = -len(images_NCHW) % columns
    images_NCHW = F.pad(F.pad(images_NCHW, (0, 1, 0, 1), value=gap), (0, 0, 0, 0, 0, 0, 0, missing), value=gap)
    rows = images_NCHW.unflatten(0, (-1, columns)).permute(2, 0, 3, 1, 4).flatten(3, 4).flatten(1, 2)
    return F.pad(rows, (1, 0, 1, 0), value=gap)
