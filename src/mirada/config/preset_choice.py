"""Which preset suits the data, and why."""

from __future__ import annotations

FEW = 5_000


def choose_preset(num_train: int, image_size: tuple[int, int]) -> tuple[str, str]:
    """Name of a preset and the reason, from the number of training images and their size."""
    side = max(image_size)
    if side <= 16:
        return "tiny-images", f"images of {side} px leave room for small patches only"
    if side > 64:
        return "large-images", f"images of {side} px need larger patches"
    if num_train < FEW:
        return "small-data", f"{num_train:,} training images are few for a transformer, so they are varied strongly"
    return "medium-data", f"{num_train:,} training images of {side} px"
