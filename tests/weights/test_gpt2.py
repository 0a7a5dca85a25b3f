"""GPT-2 of transformers through our loader: the same outputs and gradients, old files, and the way back."""

import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel, GPT2Model

from mirada.errors import MiradaError
from mirada.systems import create
from mirada.systems.registry import all_arguments
from mirada.weights import layout_for, load_adapted, read_checkpoint
from tests.weights.references import saved, shaken, written

TOKENS, PAD, CLOSE = 13, 12, {"atol": 1e-5, "rtol": 1e-5}
SHAPE = {
    "vocab_size": TOKENS, "n_positions": 19, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": 40,
    "pad_token_id": PAD, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip


def reference(kind=GPT2LMHeadModel, **arguments):
    return shaken(kind(GPT2Config(**{**SHAPE, **arguments})))


def padded(lengths=(11, 5, 8)):
    token_BN = torch.randint(0, PAD, (len(lengths), max(lengths)))
    return token_BN.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


def assert_same(ours, theirs, is_real_BN=None):
    token_BN = padded()
    real_BN = token_BN != PAD
    found, wanted = ours(token_BN), theirs(token_BN, attention_mask=real_BN.long()).logits
    if wanted.ndim == 3:
        found, wanted = found[real_BN], wanted[real_BN]
    torch.testing.assert_close(found, wanted, **CLOSE)
    found.square().sum().backward(), wanted.square().sum().backward()
    for own, other in ((ours.embedding, theirs.transformer.wte), (ours.position, theirs.transformer.wpe)):
        torch.testing.assert_close(own.weight.grad, other.weight.grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", [GPT2LMHeadModel, GPT2ForSequenceClassification])
def test_equals_transformers_with_padding(kind, tmp_path):
    theirs = reference(kind, num_labels=5, layer_norm_epsilon=1e-3)
    checkpoint = saved(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("gpt", "transformers")
    assert_same(checkpoint.model(), theirs)


def test_decoding_equals_transformers_with_its_cache(tmp_path):
    theirs = reference()
    ours = saved(theirs, tmp_path).model()
    token_BN = torch.randint(0, PAD, (2, 9))
    with torch.no_grad():
        state, past = ours.begin(), None
        for piece in token_BN.split([4, 1, 1, 3], dim=1):
            answer = theirs(piece, past_key_values=past, use_cache=True)
            past = answer.past_key_values
            torch.testing.assert_close(ours.next_logits(piece, state), answer.logits, **CLOSE)


def test_published_size_is_recognised_without_config():
    shapes = {name: tuple(p.shape) for name, p in GPT2LMHeadModel(GPT2Config(**SHAPE)).state_dict().items()}
    layout = layout_for("gpt", "transformers")
    assert layout.recognises({}, shapes)
    shapes |= {"transformer.wte.weight": (50_257, 768), "transformer.wpe.weight": (1024, 768)}
    shapes |= {"transformer.h.0.mlp.c_fc.weight": (768, 3072)}
    found = layout.arguments({"eos_token_id": 50_256}, shapes)
    assert found["num_heads"] == 12 and found["pad"] == 50_256 and found["max_length"] == 1024


def test_old_file_without_prefix_and_with_masks(tmp_path):
    """As the first published files are: names of the bare model, masks among the weights, the embedding twice."""
    theirs = reference()
    state = {name.removeprefix("transformer."): tensor for name, tensor in theirs.transformer.state_dict().items()}
    state |= {"h.0.attn.bias": torch.ones(1, 1, 19, 19), "h.1.attn.masked_bias": torch.tensor(-1e4)}
    theirs.config.save_pretrained(tmp_path)
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, tmp_path / "model.safetensors")
    assert_same(read_checkpoint(tmp_path).model(), theirs)


def test_tied_output_that_is_written_twice_is_read_once(tmp_path):
    theirs = reference()
    theirs.config.save_pretrained(tmp_path)
    state = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    assert "lm_head.weight" in state
    save_file(state, tmp_path / "model.safetensors")
    assert_same(read_checkpoint(tmp_path).model(), theirs)


def test_bare_model_is_a_whole_one(tmp_path):
    """Its output is its embedding, so nothing is missing."""
    bare = shaken(GPT2Model(GPT2Config(**SHAPE)))
    ours, token_BN = saved(bare, tmp_path).model(), padded((7, 7))
    torch.testing.assert_close(ours.features(token_BN), bare(token_BN).last_hidden_state, **CLOSE)


def test_what_we_save_transformers_loads(tmp_path):
    given = {"num_tokens": TOKENS, "pad": PAD, "dim": 24, "depth": 2, "num_heads": 3, "max_length": 19}
    for kind, num_classes in ((GPT2LMHeadModel, None), (GPT2ForSequenceClassification, 5)):
        arguments = all_arguments("gpt", **given, num_classes=num_classes)
        ours = written("gpt", arguments, tmp_path)
        theirs, info = kind.from_pretrained(tmp_path, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"]
        assert_same(ours, theirs.eval())


def test_rotary_positions_have_no_place_there():
    arguments = all_arguments("gpt", num_tokens=TOKENS, position="rotary")
    with pytest.raises(MiradaError, match="position='rotary' is no part of the gpt of transformers"):
        layout_for("gpt", "transformers").config(arguments)


@pytest.mark.parametrize("variant", [{"activation_function": "relu"}, {"scale_attn_by_inverse_layer_idx": True}])
def test_unknown_variants_are_refused(variant, tmp_path):
    reference(**variant).save_pretrained(tmp_path)
    with pytest.raises(MiradaError, match=next(iter(variant))):
        read_checkpoint(tmp_path)


def test_a_writer_becomes_a_classifier_of_shorter_texts(tmp_path):
    checkpoint = saved(reference(), tmp_path)
    arguments = {**checkpoint.all_arguments, "num_classes": 5, "max_length": 7}
    model = create("gpt", **arguments)
    rows = load_adapted(model, arguments, checkpoint)
    assert {row.name: row.done for row in rows} == {
        "position.weight": "the first 7 kept",
        "head.weight": "started anew: the checkpoint has none",
    }
    assert torch.equal(model.position.weight, checkpoint.state["position.weight"][:7])
    assert checkpoint.settings["name"] == "gpt"
