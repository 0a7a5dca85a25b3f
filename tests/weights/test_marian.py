"""Marian's translators of transformers through our loader: equal logits, gradients and translations."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel

from mirada.errors import MiradaError
from mirada.systems import card
from mirada.weights import read_checkpoint
from tests.weights.references import saved, shaken

END, PAD, TOKENS = 0, 12, 13
EQUAL = {"atol": 1e-5, "rtol": 1e-5}


def reference(**arguments) -> MarianMTModel:
    shape = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 3, "max_position_embeddings": 32}
    for side in ("encoder", "decoder"):
        shape |= {f"{side}_ffn_dim": 20, f"{side}_attention_heads": 2}
    given = {"vocab_size": TOKENS, "pad_token_id": PAD, "decoder_start_token_id": PAD, "eos_token_id": END,
             "activation_function": "swish", "scale_embedding": True, "forced_eos_token_id": None}  # fmt: skip
    model = shaken(MarianMTModel(MarianConfig(**{**shape, **given, **arguments})))
    torch.nn.init.normal_(model.final_logits_bias)
    for side in (model.model.encoder, model.model.decoder):  # computed, not stored: as they are in a loaded model
        side.embed_positions.weight.data = side.embed_positions.create_weight()
    return model


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """Two sources, one of them padded, and targets that begin with the padding token."""
    source = torch.randint(1, PAD, (2, 7))
    source[0, 6], source[1, 3], source[1, 4:] = END, END, PAD
    return source, torch.cat([torch.full((2, 1), PAD), torch.randint(1, PAD, (2, 5))], dim=1)


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"activation_function": "relu"},
        {"activation_function": "gelu", "scale_embedding": False},
        {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 17},
    ],
    ids=str,
)
def test_equals_transformers_in_output_and_gradients(variant, tmp_path):
    theirs = reference(**variant)
    checkpoint = saved(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("transformer", "transformers")
    ours, (source, read) = checkpoint.model(), sentences()
    logits = ours(source, read)
    expected = theirs(input_ids=source, attention_mask=source != PAD, decoder_input_ids=read).logits
    assert logits.shape == (2, 6, variant.get("decoder_vocab_size", TOKENS))
    torch.testing.assert_close(logits, expected, **EQUAL)
    logits.square().sum().backward(), expected.square().sum().backward()
    pairs = {
        "tokens.source.weight": "model.encoder.embed_tokens.weight",
        "encoder.layers.1.attention.inner.heads.to_q.weight": "model.encoder.layers.1.self_attn.q_proj.weight",
        "decoder.layers.2.cross.norm.bias": "model.decoder.layers.2.encoder_attn_layer_norm.bias",
        "decoder.layers.0.mlp.inner.expand.weight": "model.decoder.layers.0.fc1.weight",
    }
    # The row of the last token is left out: their embedding of padding (padding_idx) gets no gradient.
    for our, their in pairs.items():
        found, wanted = ours.get_parameter(our).grad[:PAD], theirs.get_parameter(their).grad[:PAD]
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def test_writes_the_same_translations(tmp_path):
    theirs, (source, _) = reference(), sentences()
    ours = saved(theirs, tmp_path).model()
    expected = theirs.generate(source, attention_mask=source != PAD, max_new_tokens=12, num_beams=1, do_sample=False)
    written, state = torch.full((2, 1), PAD), ours.begin(source)
    with torch.no_grad():
        while written.shape[1] < expected.shape[1]:
            best = ours.next_logits(written[:, -1:], state)[:, -1:].argmax(-1)
            is_over = (written == END).any(1, keepdim=True)
            written = torch.cat([written, best.masked_fill(is_over, PAD)], dim=1)
    assert torch.equal(written, expected)


def test_settings_name_the_nearest_size_and_what_differs(tmp_path):
    settings = saved(reference(), tmp_path).settings
    assert settings["name"] == "transformer" and settings["size"] == card("transformer").default_size
    assert settings["arguments"]["position"] == "sinusoidal_half" and "num_tokens" not in settings["arguments"]


def test_old_files_hold_the_tokens_under_every_name_and_positions(tmp_path):
    theirs = reference()
    theirs.save_pretrained(tmp_path)
    kept = load_file(tmp_path / "model.safetensors")
    names = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
    extra = {f"{name}.weight": kept["model.shared.weight"].clone() for name in names}
    extra |= {f"model.{side}.embed_positions.weight": torch.randn(32, 8) for side in ("encoder", "decoder")}
    save_file(kept | extra, tmp_path / "model.safetensors")
    source, read = sentences()
    expected = theirs(input_ids=source, attention_mask=source != PAD, decoder_input_ids=read).logits
    torch.testing.assert_close(read_checkpoint(tmp_path).model()(source, read), expected, **EQUAL)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("normalize_before", True, "normalize_before=True: only False"),
        ("tie_word_embeddings", False, "tie_word_embeddings=False: only True"),
        ("activation_function", "tanh", "activation_function='tanh': only swish"),
        ("decoder_attention_heads", 4, "encoder_attention_heads=2 and decoder_attention_heads=4"),
    ],
)
def test_unknown_variants_are_refused(key, value, message, tmp_path):
    reference().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value}), "utf-8")
    with pytest.raises(MiradaError, match=message):
        read_checkpoint(tmp_path)
