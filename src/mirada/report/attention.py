"""Where the last attention layer looks, on some held-out images. Shape letters: B batch, H heads, N queries, M keys.

a_BM = mean over heads of weights[:, :, query],   drawn as M · a: 1 is the share of an average patch
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from mirada.core import record
from mirada.core.record import attention_layers
from mirada.data import Normalisation
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import Row, Tile, tiles
from mirada.report.held_out import Reader
from mirada.train.checkpoint import load_model

NUM_PICTURES = 6
SHOWN_SIDE = 120  # px of the shorter side at least, so that patches have sharp borders
COLOUR = np.array([255.0, 106.0, 0.0])
OPACITY = 0.85


@dataclass(frozen=True)
class Overlay:
    """An image beside the same image under its attention."""

    tile: Tile
    picture: np.ndarray


@dataclass(frozen=True)
class AttentionPictures:
    overlays: list[Overlay]
    layer: str
    looks: str  # whose attention it is
    low: float  # shares, in average patches, at which the colour begins and is full
    high: float
    grid: tuple[int, int]


@dataclass(frozen=True)
class Shown:
    """Some held-out images as tiles and as what the model reads."""

    model: nn.Module
    tiles: list[Tile]
    inputs: Tensor


def shown_images(run: Contents, rows: list[Row], reader: Reader) -> Shown:
    """Raises a MiradaError that says why, where the model has nothing to show."""
    model = load_model(run.folder.best)
    if not attention_layers(model):
        raise MiradaError(f"{run.system} has no attention layers, so there is nothing to show")
    if not hasattr(model, "grid"):
        raise MiradaError(f"{run.system} does not say where its tokens lie in the image")
    rows = rows[:NUM_PICTURES]
    found = tiles(run, rows, reader)
    names = {tile.name for tile in found}
    pixels = np.stack([reader.read(row) for row in rows if row["name"] in names])
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()
    statistics = run.data["normalisation"]
    inputs = Normalisation(tuple(statistics["mean"]), tuple(statistics["std"])).apply(images)
    return Shown(model, found, inputs)


def attention_pictures(images: Shown) -> AttentionPictures:
    """Raises a MiradaError that says why, where there are no such pictures."""
    model, found = images.model, images.tiles
    seen = last_attention(model, images.inputs)
    relative, layer, looks, grid = seen.relative_BRC, seen.layer, seen.looks, seen.grid
    low, high = (float(end) for end in np.percentile(relative, [1, 99]))
    patch = getattr(model, "patch_size", None)
    overlays = [
        Overlay(tile, overlay(tile.picture, (values - low) / max(high - low, 1e-9), patch))
        for tile, values in zip(found, relative, strict=True)
    ]
    return AttentionPictures(overlays, layer, looks, low, high, grid)


@dataclass(frozen=True)
class LastAttention:
    """Of every image, how much the last layer looks at each patch: 1 is the share of an average patch."""

    relative_BRC: np.ndarray  # rows and columns of patches
    layer: str
    looks: str

    @property
    def grid(self) -> tuple[int, int]:
        rows, columns = self.relative_BRC.shape[1:]
        return rows, columns


def last_attention(model: nn.Module, inputs: Tensor) -> LastAttention:
    weights_BHNM, layer = _last_weights(model, inputs)
    grid = tuple(model.grid(inputs))  # type: ignore[operator]
    attention_BM, looks = _share_per_patch(weights_BHNM, grid, int(getattr(model, "num_extra", 0)))
    relative = (attention_BM / attention_BM.mean(1, keepdim=True)).reshape(-1, *grid).double().numpy()
    return LastAttention(relative, layer, looks)


def overlay(picture: np.ndarray, strength: np.ndarray, patch_size: object = None) -> np.ndarray:
    """The image in grey, each patch as orange as its strength of 0..1, at a whole multiple of its size."""
    height, width = picture.shape[:2]
    factor = max(1, -(-SHOWN_SIDE // min(height, width)))
    shown = (height * factor, width * factor)
    grey = np.asarray(Image.fromarray(picture).convert("L").resize(shown[::-1], Image.Resampling.NEAREST))
    rows, columns = (
        _patch_of_pixel(side, num, patch_size, factor) for side, num in zip(shown, strength.shape, strict=True)
    )
    return _coloured(grey, np.clip(strength, 0, 1)[rows][:, columns])


def colour_bar() -> np.ndarray:
    """From a grey patch without attention to one with all of it."""
    return _coloured(np.full((1, 64), 128), np.linspace(0, 1, 64)[None])


def _coloured(grey: np.ndarray, strength: np.ndarray) -> np.ndarray:
    opacity = OPACITY * strength[..., None]
    return np.rint((1 - opacity) * grey[..., None] + opacity * COLOUR).astype(np.uint8)


def _patch_of_pixel(length: int, num_patches: int, patch_size: object, factor: int) -> np.ndarray:
    """Patches of a padded image reach beyond its border; without a patch size they share the side evenly."""
    if isinstance(patch_size, int) and num_patches * patch_size * factor >= length:
        return np.arange(length) // (patch_size * factor)
    return np.arange(length) * num_patches // length


@torch.inference_mode()
def _last_weights(model: nn.Module, inputs: Tensor) -> tuple[Tensor, str]:
    with record(model, layers=[-1]) as maps:
        model(inputs)
    (layer,) = maps.names
    weights = maps[layer]
    if weights.ndim != 4 or weights.shape[0] != inputs.shape[0]:
        raise MiradaError(f"the attention of {layer} is not one map per image, and has no simple picture")
    return weights, layer


def _share_per_patch(weights_BHNM: Tensor, grid: tuple[int, ...], num_extra: int) -> tuple[Tensor, str]:
    num_queries, num_keys = weights_BHNM.shape[-2:]
    num_patches = grid[0] * grid[1]
    if num_keys not in (num_patches, num_patches + num_extra):
        raise MiradaError(f"the last layer looks at {num_keys} tokens, which are not the {grid[0]} × {grid[1]} patches")
    mean_BNM = weights_BHNM.mean(1)
    if num_queries == 1:
        attention_BM, looks = mean_BNM[:, 0], "the learned query that pools the patches"
    elif num_extra:
        attention_BM, looks = mean_BNM[:, 0], "the class token"
    else:
        attention_BM, looks = mean_BNM.mean(1), "the mean over all patches"
    return attention_BM[:, num_keys - num_patches :], looks
