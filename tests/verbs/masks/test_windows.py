"""Large images in tiles: exact for convolutions, smooth for attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mirada.systems import create
from mirada.verbs.masks.windows import Plan, classes_in_tiles, enlarged_classes, plan_for

SIZE = (93, 118)


def reader(pixels):
    return lambda rows, cols: pixels[rows[0] : rows[1], cols[0] : cols[1]]


def test_weights_of_all_tiles_sum_to_one():
    """Whatever is said of a pixel is one thing: with weights that sum to one, it comes out as it went in."""
    truth = np.random.default_rng(0).random((3, *SIZE)).astype(np.float32)
    seen: list[tuple[int, int]] = []

    def read(rows, cols):
        seen.append((rows[1] - rows[0], cols[1] - cols[0]))
        return truth[:, rows[0] : rows[1], cols[0] : cols[1]]

    for plan in (Plan(32, 8, 8, True), Plan(32, 16, 0, False), Plan(29, 5, 3, True), Plan(500, 10, 10, True)):
        found = classes_in_tiles(read, SIZE, lambda said: said, plan)
        np.testing.assert_array_equal(found, truth.argmax(0), err_msg=str(plan))
    assert set(seen[: 3 * 4]) == {(48, 48)}, "windows that are moved inside all have one size"


@pytest.mark.parametrize("tile", [32, 48])
def test_a_unet_in_tiles_is_the_unet_at_once(tile):
    torch.manual_seed(3)
    model = create("unet", image_size=SIZE, in_channels=3, num_classes=4, dim=4, depth=2).double().eval()
    pixels = np.random.default_rng(1).integers(0, 256, (*SIZE, 3)).astype(np.float64)

    @torch.inference_mode()
    def say(window):
        return model(torch.from_numpy(window.transpose(2, 0, 1)[None]) / 255)[0].softmax(0).numpy()

    plan = plan_for(model, SIZE)
    assert plan.blend == 0 and plan.halo >= model.reach and plan.halo % 4 == 0
    said = []
    found = classes_in_tiles(
        reader(pixels), SIZE, lambda window: said.append(window.shape) or say(window), Plan(tile, plan.halo, 0, False)
    )
    at_once = say(pixels)
    sure = np.sort(at_once, axis=0)[-1] - np.sort(at_once, axis=0)[-2] > 1e-9
    np.testing.assert_array_equal(found[sure], at_once.argmax(0)[sure])
    assert len(said) > 4 and sure.mean() > 0.99


def test_attention_gets_windows_of_the_size_it_was_trained_at():
    model = create("transunet", "nano", image_size=64, in_channels=3, num_classes=2)
    assert plan_for(model, (64, 96)) == Plan(48, 8, 8, is_moved=True)


def test_enlarging_in_strips_is_enlarging_at_once():
    logits = torch.randn(3, 11, 13, generator=torch.Generator().manual_seed(2))
    at_once = torch.nn.functional.interpolate(logits[None], size=(301, 97), mode="bilinear")[0].argmax(0)
    assert (enlarged_classes(logits, (301, 97), strip=64) == at_once.numpy()).mean() > 0.999
    assert np.array_equal(enlarged_classes(logits, (11, 13)), logits.argmax(0).numpy())
