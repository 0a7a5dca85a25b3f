"""Image GPT of transformers through our loader, its palette too, and the way back."""

import json

import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, ImageGPTConfig, ImageGPTForCausalImageModeling, ImageGPTModel

from mirada.errors import MiradaError
from mirada.systems import create
from mirada.systems.registry import all_arguments
from mirada.weights import layout_for, layout_of, read_checkpoint
from tests.weights.references import shaken

COLOURS = 7


def reference(**arguments) -> ImageGPTForCausalImageModeling:
    given = {"vocab_size": COLOURS + 1, "n_positions": 16, "n_embd": 12, "n_layer": 3, "n_head": 2, **arguments}
    return shaken(ImageGPTForCausalImageModeling(ImageGPTConfig(**given)))


def with_palette(model, folder):
    model.save_pretrained(folder)
    colours = torch.rand(COLOURS, 3) * 2 - 1
    (folder / "preprocessor_config.json").write_text(json.dumps({"clusters": colours.tolist()}), "utf-8")
    return read_checkpoint(folder), colours


def test_equals_transformers_through_the_loader(tmp_path):
    theirs = reference(n_inner=40)
    checkpoint, colours = with_palette(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("image_gpt", "transformers")
    ours = checkpoint.model()
    torch.testing.assert_close(ours.palette_TC, colours)
    read_BN = torch.randint(0, COLOURS + 1, (2, 16))
    found, wanted = ours.next_logits(read_BN), theirs(read_BN).logits
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    found.square().sum().backward(), wanted.square().sum().backward()
    torch.testing.assert_close(ours.embedding.weight.grad, theirs.transformer.wte.weight.grad, atol=1e-5, rtol=1e-4)


def test_images_that_are_not_square_say_so(tmp_path):
    model = reference(n_positions=15)
    model.save_pretrained(tmp_path)
    with pytest.raises(MiradaError, match="15 positions, which are no square grid"):
        read_checkpoint(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"image_size": [3, 5]}), "utf-8")
    assert read_checkpoint(tmp_path).arguments["image_size"] == (3, 5)


def test_model_without_its_output_lacks_that_and_the_palette_only(tmp_path):
    bare = ImageGPTModel(reference().config)
    bare.save_pretrained(tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    needed = set(checkpoint.outline().state_dict())
    assert needed - set(checkpoint.state) == {"to_colour.weight", "palette_TC"}
    assert set(checkpoint.state) <= needed
    checkpoint, colours = with_palette(bare, tmp_path)
    torch.testing.assert_close(checkpoint.state["palette_TC"], colours)
    assert checkpoint.normalisation == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def test_masks_of_old_files_are_no_weights(tmp_path):
    theirs = reference()
    state = dict(theirs.state_dict()) | {
        "transformer.h.0.attn.bias": torch.ones(1, 1, 16, 16),
        "transformer.h.0.attn.masked_bias": torch.tensor(-1e4),
    }
    theirs.config.save_pretrained(tmp_path)
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, tmp_path / "model.safetensors")
    assert "palette_TC" not in read_checkpoint(tmp_path).state


def test_way_back_is_loaded_by_transformers(tmp_path):
    given = {"image_size": (4, 4), "in_channels": 3, "num_colours": COLOURS, "dim": 12, "depth": 2, "num_heads": 3}
    ours = shaken(create("image_gpt", **given))
    ours.give_palette(torch.rand(COLOURS, 3))
    layout, arguments = layout_for("image_gpt", "transformers"), all_arguments("image_gpt", **given)
    tensors = layout.to_theirs(ours.state_dict(), arguments)
    save_file({n: t.contiguous() for n, t in tensors.items()}, tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps(layout.config(arguments)), "utf-8")
    theirs = ImageGPTForCausalImageModeling.from_pretrained(tmp_path).eval()
    read_BN = torch.randint(0, COLOURS + 1, (2, 16))
    torch.testing.assert_close(theirs(read_BN).logits, ours.next_logits(read_BN), atol=1e-5, rtol=1e-5)
    again = read_checkpoint(tmp_path).model()
    images = torch.rand(2, 3, 4, 4)
    torch.testing.assert_close(again(images), ours(images))


def test_gpt2_is_not_taken_for_it():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=16, n_embd=12, n_layer=1, n_head=2))
    assert layout_of({}, model.state_dict()).system == "gpt"


@pytest.mark.parametrize("variant", [{"activation_function": "gelu"}, {"scale_attn_by_inverse_layer_idx": True}])
def test_unknown_variants_are_refused(variant, tmp_path):
    reference(**variant).save_pretrained(tmp_path)
    with pytest.raises(MiradaError, match=next(iter(variant))):
        read_checkpoint(tmp_path)
