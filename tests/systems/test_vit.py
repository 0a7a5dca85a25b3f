"""ViT: the paper's parameter counts, equality with transformers, every part, other sizes, and fewer patches."""

from itertools import cycle, product

import pytest
import torch
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification

from mirada.core import plane, record
from mirada.errors import MiradaError
from mirada.systems import ViT, card, create
from mirada.systems.vit import derived_patch_size, some_patches
from tests.systems.common_checks import CHECKS, images, maker

PUBLISHED = {
    "Ti/16": 5_717_416,
    "S/16": 22_050_664,
    "B/16": 86_567_656,
    "B/32": 88_224_232,
    "L/16": 304_326_632,
    "H/14": 632_045_800,
}


@pytest.mark.parametrize(("size", "count"), PUBLISHED.items())
def test_parameters_are_those_of_the_paper(size, count):
    with torch.device("meta"):
        model = create("vit", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def from_transformers(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Their weights under our names."""
    names = {
        "vit.embeddings.cls_token": "extra.weight",
        "vit.embeddings.position_embeddings": "position.weight",
        "vit.embeddings.patch_embeddings.projection": "patches.projection",
        "vit.layers.": "encoder.layers.",
        "attention.q_proj": "attention.inner.heads.to_q",
        "attention.k_proj": "attention.inner.heads.to_k",
        "attention.v_proj": "attention.inner.heads.to_v",
        "attention.o_proj": "attention.inner.heads.to_out",
        "layernorm_before": "attention.norm",
        "layernorm_after": "mlp.norm",
        "mlp.fc1": "mlp.inner.expand",
        "mlp.fc2": "mlp.inner.contract",
        "vit.layernorm": "encoder.norm",
        "classifier": "head",
    }
    ours = {}
    for name, weight in theirs.items():
        for their_part, our_part in names.items():
            name = name.replace(their_part, our_part)
        ours[name] = weight.flatten(1) if weight.ndim == 4 else weight[0] if weight.ndim == 3 else weight
    return ours


def twins(image_size: tuple[int, int]) -> tuple[ViT, ViTForImageClassification]:
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48}
    theirs = ViTForImageClassification(
        ViTConfig(**sizes, image_size=image_size, patch_size=4, num_channels=5, num_labels=7, layer_norm_eps=1e-6)
    ).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    ours = ViT(
        image_size=image_size, in_channels=5, num_classes=7, dim=24, depth=3, num_heads=2, mlp_ratio=2.0, patch_size=4
    ).eval()
    ours.load_state_dict(from_transformers(theirs.state_dict()))
    return ours, theirs


@pytest.mark.parametrize(("built_for", "seen"), [((16, 16), (16, 16)), ((12, 20), (12, 20)), ((16, 16), (20, 12))])
def test_equals_transformers_in_output_and_input_gradient(built_for, seen):
    ours, theirs = twins(built_for)
    x = torch.randn(3, 5, *seen)
    own, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    logits, expected = ours(own), theirs(other, interpolate_pos_encoding=seen != built_for).logits
    assert logits.shape == (3, 7)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    direction = torch.randn(3, 7)
    logits.backward(direction), expected.backward(direction)
    torch.testing.assert_close(own.grad, other.grad, atol=1e-5, rtol=1e-5)


STEM_AND_POSITION = list(product(("linear", "conv", "shifted", "pooled"), ("learned", "sinusoidal", "rotary", "none")))
REST = cycle(product(("class", "sequence", "mean"), ("standard", "locality")))


@pytest.mark.parametrize(
    ("stem", "position", "pooling", "attention"),
    [(*first, *rest) for first, rest in zip(STEM_AND_POSITION, REST, strict=False)],
)
def test_common_checks_hold_for_every_part(stem, position, pooling, attention):
    make = maker(card("vit"), stem=stem, position=position, pooling=pooling, attention=attention)
    for check in set(CHECKS) - {"overfits_eight_samples", "accepts_any_class_count"}:
        CHECKS[check](make)


@pytest.mark.parametrize(
    ("stem", "position", "pooling", "attention"),
    [("shifted", "rotary", "class", "locality"), ("linear", "none", "mean", "standard")],
)
def test_overfits_with_other_parts_and_half_of_the_patches(stem, position, pooling, attention):
    make = maker(
        card("vit"), stem=stem, position=position, pooling=pooling, attention=attention, patch_keep=0.5, drop_path=0.1
    )
    CHECKS["overfits_eight_samples"](make)


def test_locality_attention_never_looks_at_itself():
    model = maker(card("vit"), attention="locality", pooling="class")().eval()
    with record(model) as maps:
        model(images())
    for name in maps:
        assert not maps[name].diagonal(dim1=-2, dim2=-1).any()


def test_all_patches_in_training_equal_evaluation():
    model = maker(card("vit"), stem="linear")()
    torch.testing.assert_close(model.train()(images()), model.eval()(images()))


@pytest.mark.parametrize("position", ["learned", "rotary"])
def test_kept_patches_are_as_if_the_others_had_never_been(position):
    """Patches keep their places: with the kept ones written out as a mask over all patches the result is the same."""
    model = maker(
        card("vit"), stem="linear", position=position, pooling="class", patch_keep=0.5, attention="locality"
    )()
    x = images(batch=2)
    torch.manual_seed(3)
    dropped = model.train()(x)
    torch.manual_seed(3)
    rows, columns = model.grid(x)
    kept_BN = torch.rand(2, rows * columns).argsort(1)[:, : round(0.5 * rows * columns)]
    valid_BN = torch.zeros(2, 1 + rows * columns, dtype=torch.bool).scatter(1, kept_BN + 1, True)
    valid_BN[:, 0] = True
    model.eval()
    model.encoder.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {**kwargs, "valid_BM": valid_BN}), with_kwargs=True
    )
    torch.testing.assert_close(model(x), dropped)


def test_each_image_draws_its_own_patches_in_order():
    places = plane(5, 7, num_extra=2)
    x = torch.arange(37.0).view(1, 37, 1).expand(3, -1, 2)
    kept, kept_places = some_patches(x, places, 0.4)
    assert kept.shape == (3, 2 + 14, 2)
    assert torch.equal(kept[..., 0].long(), kept_places.index_N[:, 0])
    assert (kept[:, 1:, 0] > kept[:, :-1, 0]).all()
    assert not torch.equal(kept[0], kept[1])
    cell = kept_places.coords_NA[:, 0]
    assert torch.equal(cell[..., 0] * 7 + cell[..., 1] + 2, kept_places.index_N[:, 0, 2:])


@pytest.mark.parametrize(
    ("size", "patch"), [((8, 8), 1), ((28, 28), 4), ((32, 32), 4), ((64, 64), 8), ((64, 48), 8), ((224, 224), 32)]
)
def test_derived_patch_size(size, patch):
    assert derived_patch_size(size) == patch
    small = {"dim": 8, "depth": 1, "num_heads": 2}
    model = create("vit", "nano", image_size=size, in_channels=1, num_classes=2, **small)
    assert model.grid(torch.empty(1, 1, *size)) == (-(-size[0] // patch), -(-size[1] // patch))


@pytest.mark.parametrize(
    ("size", "patch", "first"),
    [
        *(((13, 11), 4, (4, 2)), ((28, 28), 8, (4, 2)), ((48, 31), 8, (4, 2)), ((49, 49), 16, (4, 2))),
        *(((96, 96), 16, (4, 2)), ((97, 128), 32, (8, 4)), ((224, 224), 64, (16, 8))),
    ],
)
def test_pooled_stem_costs_what_a_small_image_costs(size, patch, first):
    """Few tokens, three stages at most, and the rest is the stride of the first convolution."""
    arguments = {"image_size": size, "in_channels": 2, "num_classes": 3, "dim": 32, "depth": 1, "num_heads": 2}
    model = create("vit", "nano", stem="pooled", patch_size=None, **arguments)
    convolution = model.patches.first[0]
    assert (model.patch_size, convolution.kernel_size[0], convolution.stride[0]) == (patch, *first)
    assert len(model.patches.stages) <= 3
    padded = torch.zeros(1, 2, *(-(-side // patch) * patch for side in size))
    tokens_BND, grid = model.patches(padded)
    assert grid == model.grid(torch.empty(1, 2, *size))
    assert tokens_BND.shape == (1, grid[0] * grid[1], 32)
    assert grid[0] * grid[1] <= 36


@pytest.mark.parametrize("stem", ["linear", "conv"])
def test_remainder_is_a_choice(stem):
    small = {"image_size": (16, 16), "in_channels": 2, "num_classes": 3, "dim": 8, "depth": 1, "num_heads": 2}
    x = torch.randn(2, 2, 13, 18)
    grids = {"pad": (4, 5), "crop": (3, 4)}
    for remainder, grid in grids.items():
        model = ViT(**small, patch_size=4, stem=stem, remainder=remainder).eval()
        assert model.grid(x) == grid
        assert model(x).shape == (2, 3)
    cropped = model(x[..., :12, :16])
    assert torch.equal(model(x), cropped)
    with pytest.raises(MiradaError, match="13 × 18 pixels is no whole number of patches"):
        ViT(**small, patch_size=4, stem=stem, remainder="refuse")(x)


def test_dropout_acts_in_training_only():
    model = maker(card("vit"), dropout=0.5)()
    assert torch.equal(model.eval()(images()), model(images()))
    assert not torch.equal(model.train()(images()), model(images()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"patch_keep": 0.0}, "patch_keep=0"),
        ({"patch_keep": 1.5}, "patch_keep=1.5"),
        ({"stem": "convs"}, "stem='convs'.*did you mean 'conv'"),
        ({"position": "fixed"}, "position='fixed'.*must be one of learned"),
        ({"pooling": "max"}, "pooling='max'"),
        ({"attention": "local"}, "attention='local'.*locality"),
        ({"stem": "conv", "patch_size": 6}, "patch_size=6.*power of two"),
        ({"num_heads": 5}, "dim=24 cannot be shared by num_heads=5"),
        ({"remainder": "ignore"}, "remainder='ignore'"),
    ],
)
def test_wrong_argument_is_refused(arguments, message):
    with pytest.raises(MiradaError, match=message):
        maker(card("vit"))(**arguments)
