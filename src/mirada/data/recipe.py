"""Which augmentation, how strong, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mirada.data.augment import random_affine, random_crop_flip, random_erase
from mirada.data.colour import colour_jitter, random_tone
from mirada.data.mixing import as_distribution, blended, cutmix_shares, mixup_shares
from mirada.data.normalise import Normalisation
from mirada.errors import MiradaError

Sample = tuple[torch.Tensor, torch.Tensor]  # images of a batch, and their targets


@dataclass(frozen=True)
class Augmentation:
    """Strength of each operation; 0 turns it off."""

    crop: float = 0.0  # shift by up to this share of each side
    padding: str = "reflect"  # what comes in at the border: 'reflect' | 'zero'
    flip: float = 0.0  # probability of mirroring left and right
    affine: float = 0.0  # share of images that are rotated, sheared, moved and scaled
    degrees: float = 15.0
    colour: float = 0.0  # brightness, contrast and saturation change by up to this share
    tone: float = 0.0  # share of images that are posterised, solarised, sharpened, blurred or stretched
    erase: float = 0.0  # share of images that lose a rectangle
    mixup: float = 0.0  # Beta parameter
    cutmix: float = 0.0  # Beta parameter
    mix: float = 1.0  # share of batches that are mixed at all, if mixup or cutmix is on

    def __post_init__(self):
        for name in ("flip", "affine", "tone", "erase", "mix"):
            if not 0 <= getattr(self, name) <= 1:
                raise MiradaError(f"augmentation {name} is {getattr(self, name)}, expected a share between 0 and 1.")
        for name, most in (("crop", 0.5), ("colour", 1.0), ("degrees", 180.0), ("mixup", 100.0), ("cutmix", 100.0)):
            if not 0 <= getattr(self, name) <= most:
                raise MiradaError(f"augmentation {name} is {getattr(self, name)}, expected 0 to {most:g}.")
        if self.padding not in ("reflect", "zero"):
            raise MiradaError(f"augmentation padding is {self.padding!r}, expected 'reflect' or 'zero'.")


STRENGTHS = {
    "none": Augmentation(),
    "light": Augmentation(crop=0.125, flip=0.5),
    "medium": Augmentation(crop=0.125, flip=0.5, affine=0.3, colour=0.2, erase=0.25, cutmix=1.0, mix=0.5),
    "strong": Augmentation(
        crop=0.125, flip=0.5, affine=0.5, colour=0.4, tone=0.3, erase=0.25, mixup=0.8, cutmix=1.0, mix=0.8
    ),
}


def augmentation_named(strength: str) -> Augmentation:
    """'none', 'light', 'medium' or 'strong'."""
    if strength not in STRENGTHS:
        raise MiradaError(f"augmentation is {strength!r}, expected one of {', '.join(STRENGTHS)}.")
    return STRENGTHS[strength]


def flipping_is_safe(class_names: Sequence[str], channels: int) -> bool:
    """A mirrored cat is a cat, a mirrored 2 is not a 2: grey images with one-character classes are likely writing."""
    return not (channels == 1 and class_names and all(len(name) == 1 for name in class_names))


def augment_images(
    images_BCHW: torch.Tensor, generator: torch.Generator, recipe: Augmentation, normalisation: Normalisation
) -> torch.Tensor:
    """uint8 to normalised float32: crop and flip (on bytes), geometry, colour, tone, normalisation, erasing."""
    images = images_BCHW
    if recipe.crop or recipe.flip:
        images = random_crop_flip(images, generator, recipe.crop, recipe.flip, recipe.padding)
    if recipe.affine or recipe.colour or recipe.tone:
        images = images.to(torch.float32).div_(255)
    if recipe.affine:
        images = random_affine(images, generator, recipe.affine, recipe.degrees)
    if recipe.colour:
        images = colour_jitter(images, generator, recipe.colour)
    if recipe.tone:
        images = random_tone(images, generator, recipe.tone)
    images = normalisation.apply(images)
    return random_erase(images, generator, recipe.erase) if recipe.erase else images


def mix_batches(
    batches: list[Sample], generator: torch.Generator, recipe: Augmentation, num_classes: int
) -> list[Sample]:
    """Mixup or CutMix (even odds if both are on) of whole batches, the others staying as they are."""
    if not batches or not (recipe.mixup or recipe.cutmix):
        return batches
    chances, coins = torch.rand(2, len(batches), generator=generator).tolist()
    are_cut = [bool(recipe.cutmix) and (not recipe.mixup or coin < 0.5) for coin in coins]
    mixed = list(batches)
    for is_cut, draw, alpha in ((True, cutmix_shares, recipe.cutmix), (False, mixup_shares, recipe.mixup)):
        chosen = [n for n, cut in enumerate(are_cut) if cut == is_cut and chances[n] < recipe.mix]
        if not chosen:
            continue
        # Drawn for all of them at once: it takes many operations, on few numbers.
        sizes = [len(batches[n][0]) for n in chosen]
        height, width = batches[0][0].shape[2:]
        of_pixels, of_targets = draw(sum(sizes), (height, width), generator, alpha)
        for n, in_pixels, in_targets in zip(chosen, of_pixels.split(sizes), of_targets.split(sizes), strict=True):
            images, targets = batches[n]
            mixed[n] = blended(images, as_distribution(targets, num_classes), in_pixels, in_targets)
    return mixed
