"""What a checkpoint becomes in a model of another size: identities, hand numbers, and a row for each change."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.systems import create
from mirada.systems.registry import all_arguments
from mirada.weights import Checkpoint, load_adapted
from mirada.weights.resize import other_channels, other_patch
from tests.weights.references import shaken

SMALL = {"dim": 24, "depth": 2, "num_heads": 3, "patch_size": 4, "stem": "linear", "pooling": "class"}
SOURCE = {"image_size": (12, 20), "in_channels": 3, "num_classes": 7}


def stored(**arguments) -> tuple[nn.Module, Checkpoint]:
    resolved = all_arguments("vit", **{**SMALL, **SOURCE, **arguments})
    model = shaken(create("vit", **resolved))
    names = tuple(f"class {number}" for number in range(resolved["num_classes"]))
    return model, Checkpoint("there", "mirada", "vit", resolved, model.state_dict(), class_names=names)


def adapted(checkpoint, class_names=(), **arguments):
    resolved = {**checkpoint.arguments, **arguments}
    model = create("vit", **resolved).eval()
    return model, load_adapted(model, resolved, checkpoint, class_names)


def test_nothing_to_adapt_is_a_copy_without_rows():
    source, checkpoint = stored()
    model, rows = adapted(checkpoint)
    assert rows == []
    images = torch.randn(2, 3, 12, 20)
    assert torch.equal(model(images), source(images))


def test_other_image_size_is_what_the_source_gives_at_that_size():
    source, checkpoint = stored()
    model, (row,) = adapted(checkpoint, image_size=(28, 16))
    images = torch.randn(2, 3, 28, 16)
    assert torch.allclose(model(images), source(images), atol=1e-6)
    assert (row.name, row.found, row.wanted) == ("position.weight", "3 × 5 positions", "7 × 4 positions")
    assert row.done == "bicubic interpolation, 1 extra kept"


def test_a_grid_with_as_many_places_but_other_sides_is_resized_too():
    source, checkpoint = stored()
    model, (row,) = adapted(checkpoint, image_size=(20, 12))
    assert row.wanted == "5 × 3 positions"
    images = torch.randn(2, 3, 20, 12)
    assert torch.allclose(model(images), source(images), atol=1e-6)


def test_one_channel_sees_a_grey_image_as_three_did():
    source, checkpoint = stored()
    model, (row,) = adapted(checkpoint, in_channels=1)
    grey = torch.randn(2, 1, 12, 20)
    assert torch.allclose(model(grey), source(grey.expand(-1, 3, -1, -1)), atol=1e-5)
    assert (row.found, row.wanted) == ("3 channels, patches of 4 × 4", "1 channels, patches of 4 × 4")
    assert row.done == "sum over 3 channels"


def test_thirteen_channels_take_turns():
    kernel = torch.tensor([[1.0, 2.0, 4.0]]).reshape(1, 3, 1, 1)
    wanted = torch.tensor([1.0, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4, 1]) * 3 / 13
    assert torch.allclose(other_channels(kernel, 13).flatten(), wanted)
    _, checkpoint = stored()
    model, (row,) = adapted(checkpoint, in_channels=13)
    assert row.done == "3 channels in turn, times 3/13"
    assert model(torch.randn(2, 13, 12, 20)).isfinite().all()


def test_larger_patches_of_a_resized_image_are_the_old_tokens():
    kernel, image = torch.randn(11, 3, 4, 4), torch.randn(2, 3, 4, 4)
    larger = F.interpolate(image, size=(7, 6), mode="bicubic", antialias=True)
    tokens = torch.einsum("dcpq,bcpq->bd", kernel, image)
    assert torch.allclose(torch.einsum("dcpq,bcpq->bd", other_patch(kernel, (7, 6)), larger), tokens, atol=1e-4)


def test_smaller_patches_of_a_flat_image_are_the_old_tokens():
    kernel = torch.randn(11, 3, 8, 8)
    smaller = other_patch(kernel, (4, 4))
    assert smaller.shape == (11, 3, 4, 4)
    # Flat patches survive shrinking, so least squares must get them right but for what else it fits.
    assert torch.allclose(other_patch(torch.ones(1, 1, 8, 8), (4, 4)).sum(), torch.tensor(64.0), rtol=0.05)


def test_patch_size_and_channels_together():
    _, checkpoint = stored()
    model, rows = adapted(checkpoint, patch_size=2, in_channels=12)
    row = next(row for row in rows if row.name == "patches.projection.weight")
    assert row.found == "3 channels, patches of 4 × 4" and row.wanted == "12 channels, patches of 2 × 2"
    # As many numbers as before, and still not just copied.
    assert model.patches.projection.weight.numel() == checkpoint.state["patches.projection.weight"].numel()
    assert "in turn" in row.done and "pseudo-inverse" in row.done
    assert {row.name for row in rows} == {"patches.projection.weight", "position.weight"}


def test_convolution_stem_takes_other_channels():
    _, checkpoint = stored(stem="conv")
    model, (row,) = adapted(checkpoint, in_channels=1)
    assert row.name == "patches.layers.0.weight" and row.done == "sum over 3 channels"
    assert torch.allclose(model.patches.layers[0].weight, checkpoint.state[row.name].sum(1, keepdim=True))


def test_other_number_of_classes_starts_the_head_anew():
    _, checkpoint = stored()
    model, rows = adapted(checkpoint, num_classes=5)
    assert [(row.name, row.found, row.wanted) for row in rows] == [
        ("head.weight", "7 × 24", "5 × 24"),
        ("head.bias", "7", "5"),
    ]
    assert {row.done for row in rows} == {"started anew: other classes"}
    assert model.head.weight.std() < 0.05  # random, as a new model has it


def test_as_many_classes_of_other_names_start_the_head_anew():
    _, checkpoint = stored()
    assert {row.name for row in adapted(checkpoint, tuple("abcdefg"))[1]} == {"head.weight", "head.bias"}
    assert adapted(checkpoint, checkpoint.class_names)[1] == []


def test_missing_and_superfluous_tensors_are_told():
    _, checkpoint = stored(depth=3)
    _, rows = adapted(checkpoint, depth=2, pooling="sequence")
    assert {row.name for row in rows if row.found == "—"} == {"pooling.query"}
    assert next(row for row in rows if row.name == "position.weight").found == "1 + 3 × 5 positions"
    assert sum(row.wanted == "—" and row.name.startswith("encoder.layers.2.") for row in rows) == 16


def test_another_width_is_refused():
    _, checkpoint = stored()
    with pytest.raises(MiradaError, match=r"there: .* is 24 .* there and 48 .* only classes, channels"):
        adapted(checkpoint, dim=48)


def test_named_size_is_found_with_what_differs_from_it():
    resolved = all_arguments("vit", "S/16", image_size=(224, 224), in_channels=3, num_classes=9, norm_eps=1e-12)
    settings = Checkpoint("there", "timm", "vit", resolved, {}).settings
    assert settings == {"name": "vit", "size": "S/16", "arguments": {"norm_eps": 1e-12}}


@pytest.mark.parametrize("odd", [{"dim": 39, "depth": 5}, {}])
def test_settings_make_the_same_model(odd):
    _, checkpoint = stored(**odd)
    settings = checkpoint.settings
    again = all_arguments("vit", settings["size"], **settings["arguments"], **SOURCE)
    assert again == dict(checkpoint.arguments)


def test_a_derived_patch_size_stays_at_another_image_size():
    arguments = {"image_size": (32, 32), "in_channels": 3, "num_classes": 7, "patch_size": None}
    checkpoint = Checkpoint("there", "mirada", "vit", arguments, {}, size="nano")
    assert checkpoint.settings == {"name": "vit", "size": "nano", "arguments": {"patch_size": 4}}
