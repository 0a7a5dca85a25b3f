"""Batches of images with masks, both moved alike. Shape letters: B batch, C channels, H height, W width."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from mirada.data.augment import random_affine, random_crop_flip, random_erase
from mirada.data.batches import Batch, TrainBatches
from mirada.data.colour import colour_jitter, random_tone
from mirada.data.masks.store import MaskImages
from mirada.data.normalise import Normalisation
from mirada.data.recipe import Augmentation, Sample


class MaskBatches(TrainBatches):
    """Targets are masks: uint8 (B, H, W) as int64."""

    def _augmented(self, images: torch.Tensor, rows: torch.Tensor, generator: torch.Generator) -> Sample:
        assert isinstance(self.store, MaskImages)
        masks_BHW = self.store.masks.index_select(0, rows)
        images, masks_BHW = augment_pairs(images, masks_BHW, generator, self.augmentation, self.normalisation)
        return images, masks_BHW.long()

    def _mixed(self, batches: list[Sample], generator: torch.Generator) -> list[Sample]:
        return batches


def augment_pairs(
    images_BCHW: torch.Tensor,
    masks_BHW: torch.Tensor,
    generator: torch.Generator,
    recipe: Augmentation,
    normalisation: Normalisation,
) -> Sample:
    """What moves an image moves its mask; colours and erased boxes are the image's alone. Borders are mirrored."""
    images, masks_B1HW = images_BCHW, masks_BHW[:, None]
    if recipe.crop or recipe.flip:
        state = generator.get_state()
        images = random_crop_flip(images, generator, recipe.crop, recipe.flip)
        generator.set_state(state)
        masks_B1HW = random_crop_flip(masks_B1HW, generator, recipe.crop, recipe.flip)
    if recipe.affine or recipe.colour or recipe.tone:
        images = images.to(torch.float32).div_(255)
    if recipe.affine:
        state = generator.get_state()
        images = random_affine(images, generator, recipe.affine, recipe.degrees)
        generator.set_state(state)
        moved = random_affine(masks_B1HW.float(), generator, recipe.affine, recipe.degrees, mode="nearest")
        masks_B1HW = moved.to(torch.uint8)
    if recipe.colour:
        images = colour_jitter(images, generator, recipe.colour)
    if recipe.tone:
        images = random_tone(images, generator, recipe.tone)
    images = normalisation.apply(images)
    return random_erase(images, generator, recipe.erase) if recipe.erase else images, masks_B1HW[:, 0]


def evaluation_masks(
    store: MaskImages, rows: np.ndarray, *, batch_size: int, normalisation: Normalisation
) -> Iterator[Batch]:
    """All rows once, in order, as they are."""
    wanted = torch.from_numpy(np.asarray(rows, dtype=np.int64))
    for images, found in store.fetch(wanted.split(batch_size) if len(wanted) else ()):
        yield Batch(normalisation.apply(images), store.masks.index_select(0, found).long(), found)
