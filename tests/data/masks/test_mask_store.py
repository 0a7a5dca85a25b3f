"""Images and masks at one size: fitted alike, cut alike, moved alike."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from tests.shapes import make_shapes

from mirada.data.masks.batches import MaskBatches, augment_pairs
from mirada.data.masks.classes import IGNORED
from mirada.data.masks.store import fit_mask, load_masks
from mirada.data.masks.table import open_masks
from mirada.data.normalise import Normalisation
from mirada.data.recipe import STRENGTHS, Augmentation
from mirada.data.resize import fit_image
from mirada.data.sizing import ImageShape
from mirada.errors import MiradaError


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return open_masks(make_shapes(tmp_path_factory.mktemp("masks") / "shapes", num=6), classes=None, ignore=None)


def load(table, size=(24, 32), fit="squash", **options):
    return load_masks(table, ImageShape(size, 3, ""), fit=fit, **options)


def test_at_their_own_size_nothing_changes(table):
    store = load(table)
    for row in range(6):
        np.testing.assert_array_equal(store.masks[row], table.read_mask(row))
        np.testing.assert_array_equal(store.images[row].permute(1, 2, 0), table.read_image(row))
    assert store.table.targets[0].tolist() == [1, 1, 1]
    assert store.pixel_counts(np.arange(6)).tolist() == table.pixels_NC.sum(0).tolist()


@pytest.mark.parametrize("fit", ["squash", "pad"])
def test_a_mask_is_fitted_as_its_image(fit):
    """The image is the mask in grey: where it is well inside a class, both agree."""
    mask = np.zeros((40, 60), np.uint8)
    mask[10:30, 20:50] = 1
    image = (mask * 200)[..., None]
    small, small_mask = fit_image(image, (32, 32), fit)[..., 0], fit_mask(mask, (32, 32), fit)
    counts = small_mask != IGNORED
    assert ((small > 100) == (small_mask == 1))[counts].mean() > 0.97
    assert counts.all() == (fit == "squash")


def test_tiles_cover_everything_and_stay_together(table):
    store = load(table, (16, 16), "tile")
    assert len(store) == 6 * 2 * 3  # 24 = 16 + 8, 32 = 16 + 12 + 4
    assert store.table.groups.tolist() == np.repeat(np.arange(6), 6).tolist()
    assert store.table.name(5).endswith("00.jpg (8, 16)")
    np.testing.assert_array_equal(store.masks[5], table.read_mask(0)[8:24, 16:32])


def test_tiles_larger_than_an_image_are_filled_with_what_counts_for_nothing(table):
    store = load(table, (24, 48), "tile")
    assert (store.masks[0, :, 32:] == IGNORED).all() and not (store.masks[0, :, :32] == IGNORED).any()


def test_too_much_for_memory(table):
    with pytest.raises(MiradaError, match=r"need 0\.0 GB .*data\.memory_gb"):
        load(table, memory_limit=1000)


@pytest.mark.parametrize(
    "recipe", [Augmentation(crop=0.2, flip=0.5), Augmentation(affine=1.0), STRENGTHS["strong"]], ids=str
)
def test_images_and_masks_move_alike(recipe):
    """The image shows its own mask: after moving, it still does."""
    generator = torch.Generator().manual_seed(3)
    masks = (torch.rand(7, 5, 5, generator=generator) > 0.5).repeat_interleave(8, 1).repeat_interleave(8, 2)
    images = (masks * 255).to(torch.uint8)[:, None].expand(-1, 3, -1, -1).contiguous()
    plain = Augmentation(crop=recipe.crop, flip=recipe.flip, affine=recipe.affine)
    moved, moved_masks = augment_pairs(
        images, masks.to(torch.uint8), generator, plain, Normalisation((0.5,) * 3, (1.0,) * 3)
    )
    agree = (moved[:, 0] > 0) == (moved_masks == 1)
    assert agree.double().mean() > 0.95
    assert not torch.equal(moved_masks, masks.to(torch.uint8))
    augment_pairs(images, masks.to(torch.uint8), generator, recipe, Normalisation((0.5,) * 3, (1.0,) * 3))


def test_batches_are_a_function_of_seed_epoch_and_step(table):
    store = load(table)
    given = {"batch_size": 2, "normalisation": store.normalisation(np.arange(6)), "augmentation": STRENGTHS["medium"]}
    one, other = (MaskBatches(store, np.arange(6), seed=5, **given) for _ in range(2))
    list(one)
    first, again = one.batch(1, 2), other.batch(1, 2)
    assert torch.equal(first.inputs, again.inputs) and torch.equal(first.targets, again.targets)
    assert first.targets.dtype == torch.int64 and first.targets.shape == (2, 24, 32)


def test_blank_tiles_do_not_tie_images_together(table):
    store = load(table, (16, 16), "tile")
    store.images[::6] = 7
    assert [found is None for found in store.hashes()] == [row % 6 == 0 for row in range(len(store))]


def sparse_table(folder, labelled_at):
    """Two labelled pixels each, the rest counts for nothing."""
    make_shapes(folder, num=len(labelled_at))
    for number, (row, column) in enumerate(labelled_at):
        mask = np.full((24, 32), 255, np.uint8)
        mask[row, column], mask[row, column + 2] = 0, 1
        Image.fromarray(mask).save(folder / "masks" / f"{number:02}.png")
    return open_masks(folder, classes=None, ignore=[255])


def test_labels_that_vanish_are_told(tmp_path):
    kept, lost = (5, 7), (4, 6)  # halved, every second pixel is left
    store = load(sparse_table(tmp_path / "some", [kept, lost, kept]), (12, 16))
    assert len(store) == 2 and "1 images are not used" in store.table.notes[-1]
    gone = sparse_table(tmp_path / "all", [lost, lost])
    with pytest.raises(MiradaError, match=r"of no mask a pixel that counts is left at 16 x 12; data\.fit=tile"):
        load(gone, (12, 16))
    assert not load(gone, (12, 16), "tile").table.notes
