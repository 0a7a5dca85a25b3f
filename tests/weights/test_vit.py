"""ViT and DeiT of transformers through our loader: the same outputs and input gradients, and the way back."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForImageClassification,
    DeiTConfig,
    DeiTForImageClassificationWithTeacher,
    DeiTModel,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from mirada.errors import MiradaError
from mirada.systems import create
from mirada.systems.registry import all_arguments
from mirada.weights import layout_for, read_checkpoint
from tests.weights.references import SHAPE, assert_same, saved, shaken

KINDS = {
    "vit": (ViTConfig, ViTForImageClassification),
    "deit": (DeiTConfig, DeiTForImageClassificationWithTeacher),
}


def reference(system, **arguments):
    configuration, model = KINDS[system]
    config = configuration(
        **SHAPE, image_size=arguments.pop("image_size", 20), patch_size=4, num_channels=5, num_labels=7, **arguments
    )
    return shaken(model(config))


@pytest.mark.parametrize("image_size", [20, (12, 20)])
@pytest.mark.parametrize("system", KINDS)
def test_equals_transformers_at_its_size_and_another(system, image_size, tmp_path):
    theirs = reference(system, image_size=image_size)
    checkpoint = saved(theirs, tmp_path)
    assert checkpoint.system == system and checkpoint.origin == "transformers"
    ours = checkpoint.model()
    size = (20, 20) if image_size == 20 else image_size
    assert_same(ours, theirs, torch.randn(2, 5, *size))
    if image_size == 20:  # else transformers takes the root of the number of patches, and stops
        assert_same(ours, theirs, torch.randn(2, 5, 28, 16), interpolate_pos_encoding=True)


@pytest.mark.parametrize("system", KINDS)
def test_names_of_the_running_transformers_are_read_too(system, tmp_path):
    theirs = reference(system)
    theirs.config.save_pretrained(tmp_path)
    save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    names = set(theirs.state_dict())
    assert f"{system}.layers.0.attention.q_proj.weight" in names  # if not, transformers renamed them once more
    assert_same(read_checkpoint(tmp_path).model(), theirs, torch.randn(2, 5, 20, 20))


@pytest.mark.parametrize(("system", "bare"), [("vit", ViTModel), ("deit", DeiTModel)])
def test_model_without_head_and_prefix_lacks_the_head_only(system, bare, tmp_path):
    whole = reference(system)
    model = bare(whole.config)
    model.save_pretrained(tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    needed = set(checkpoint.outline().state_dict())
    heads = {"head.weight", "head.bias", *(("distillation_head.weight", "distillation_head.bias") * (system == "deit"))}
    assert needed - set(checkpoint.state) == heads and set(checkpoint.state) <= needed
    assert any("pooler" in name for name in load_file(tmp_path / "model.safetensors"))


@pytest.mark.parametrize("system", KINDS)
def test_without_config_what_shapes_tell_is_enough_for_a_published_width(system, tmp_path):
    configuration, model = KINDS[system]
    theirs = shaken(model(configuration(hidden_size=128, num_hidden_layers=1, intermediate_size=200, image_size=20,
                                        patch_size=4, num_attention_heads=2)))  # fmt: skip
    save_file(theirs.state_dict(), tmp_path / "weights.safetensors")
    ours = read_checkpoint(tmp_path / "weights.safetensors").model()
    assert_same(ours, theirs, torch.randn(2, 3, 20, 20))


def plain(system, **arguments):
    extra = {"stem": "linear", "patch_size": 4, "dim": 24, "depth": 2, "num_heads": 3}
    return all_arguments(system, **{**({"pooling": "class"} if system == "vit" else {}), **extra, **arguments})


@pytest.mark.parametrize("image_size", [(20, 20), (12, 20)])
@pytest.mark.parametrize("system", KINDS)
def test_what_we_save_transformers_loads(system, image_size, tmp_path):
    arguments = plain(system, image_size=image_size, in_channels=5, num_classes=7)
    ours = shaken(create(system, **arguments))
    layout = layout_for(system, "transformers")
    theirs_state = layout.to_theirs(ours.state_dict(), arguments)
    back = layout.to_ours(theirs_state, arguments)
    assert set(back) == set(ours.state_dict())
    assert all(torch.equal(back[name], tensor) for name, tensor in ours.state_dict().items())
    config = {**layout.config(arguments), "id2label": {str(i): f"c{i}" for i in range(7)}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = {name: tensor.contiguous() for name, tensor in theirs_state.items()}
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    kind = AutoModelForImageClassification if system == "vit" else KINDS[system][1]
    theirs, info = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert_same(ours, theirs.eval(), torch.randn(2, 5, *image_size))


def test_tensor_without_a_place_is_refused(tmp_path):
    theirs = reference("vit")
    theirs.config.save_pretrained(tmp_path)
    save_file({**theirs.state_dict(), "vit.registers": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(MiradaError, match=r"'vit.registers' has no place in system 'vit'"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"stem": "conv"}, "stem='conv' is no part of the vit of transformers, which has 'linear'"),
        ({"position": "rotary"}, "position='rotary'"),
        ({"image_size": (18, 20)}, "no whole number of patches of 4"),
    ],
)
def test_what_transformers_has_not_is_refused(changed, message):
    arguments = plain("vit", **{"image_size": (20, 20), "in_channels": 3, "num_classes": 2, **changed})
    with pytest.raises(MiradaError, match=message):
        layout_for("vit", "transformers").config(arguments)
