"""Which preset suits the data, and why."""

from __future__ import annotations


def choose_preset(num_train: int, image_size: tuple[int, int]) -> tuple[str, str]:
    """Name of a preset and the reason, from the number of training images and their size."""
    side = max(image_size)
    if side <= 16:
        return "tiny-images", f"images of {side} px leave room for patches of 1 or 2 pixels only"
    if num_train < 5_000:
        return "small-data", f"{num_train:,} training images are few for a transformer, so convolutions come first"
    return "medium-data", f"{num_train:,} training images of {side} px"
