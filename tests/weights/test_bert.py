"""BERT of transformers through our loader: the same outputs and gradients, old names, and the way back."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification, BertModel

from mirada.errors import MiradaError
from mirada.systems import create
from mirada.systems.registry import all_arguments
from mirada.weights import load_adapted, read_checkpoint
from tests.weights.references import SHAPE, saved, shaken, written

TOKENS, PAD, CLOSE = 13, 1, {"atol": 1e-5, "rtol": 1e-5}
KINDS = [BertForMaskedLM, BertForSequenceClassification]


def reference(kind=BertForMaskedLM, **arguments):
    given = {"vocab_size": TOKENS, "max_position_embeddings": 19, "pad_token_id": PAD, "type_vocab_size": 3}
    return shaken(kind(BertConfig(**SHAPE, **{**given, **arguments})))


def padded(lengths=(11, 5, 8)):
    token_BN = torch.randint(PAD + 1, TOKENS, (len(lengths), max(lengths)))
    return token_BN.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


def assert_same(ours, theirs):
    """Of real tokens: what padding sees itself nobody uses."""
    token_BN = padded()
    real_BN = token_BN != PAD
    segment_BN = torch.randint(0, ours.segment.weight.shape[0], token_BN.shape)
    for given in ({}, {"segment_BN": segment_BN}):
        ours.zero_grad(), theirs.zero_grad()
        found = ours(token_BN, **given)
        said = {"token_type_ids": given["segment_BN"]} if given else {}
        wanted = theirs(token_BN, attention_mask=real_BN.long(), **said).logits
        if wanted.ndim == 3:
            found, wanted = found[real_BN], wanted[real_BN]
        torch.testing.assert_close(found, wanted, **CLOSE)
        found.square().sum().backward(), wanted.square().sum().backward()
        embeddings = theirs.bert.embeddings
        for own, other in (
            (ours.embedding, embeddings.word_embeddings),
            (ours.position, embeddings.position_embeddings),
            (ours.segment, embeddings.token_type_embeddings),
        ):
            wanted_TD = other.weight.grad.clone()
            if own is ours.embedding and wanted.shape[-1] != TOKENS:
                wanted_TD[PAD] = own.weight.grad[PAD]  # theirs never trains that row as an input
            torch.testing.assert_close(own.weight.grad, wanted_TD, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_transformers_with_padding_and_segments(kind, tmp_path):
    theirs = reference(kind, num_labels=5, layer_norm_eps=1e-6)
    checkpoint = saved(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("bert", "transformers")
    assert_same(checkpoint.model(), theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_old_names_are_read_too(kind, tmp_path):
    """gamma and beta for norms, the places as a tensor, the output matrix beside the embedding it equals."""
    theirs = reference(kind, num_labels=5)
    theirs.config.save_pretrained(tmp_path)
    state = {"bert.embeddings.position_ids": torch.arange(19)[None]}
    for name, tensor in theirs.state_dict().items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        state[name] = tensor.clone()
    assert any("gamma" in name for name in state)
    save_file(state, tmp_path / "model.safetensors")
    assert_same(read_checkpoint(tmp_path).model(), theirs)


def test_features_of_layers_are_the_hidden_states_of_transformers(tmp_path):
    theirs = reference()
    ours, token_BN = saved(theirs, tmp_path).model(), padded((7, 7))
    states = theirs(token_BN, attention_mask=torch.ones_like(token_BN), output_hidden_states=True).hidden_states
    for layer, wanted in enumerate(states):
        torch.testing.assert_close(ours.features(token_BN, layer), wanted, **CLOSE)


def test_pretraining_file_fills_gaps_and_keeps_its_pooler_for_classes(tmp_path):
    theirs = reference(BertForPreTraining)
    checkpoint = saved(theirs, tmp_path)
    token_BN = padded((7, 7))
    wanted = theirs(token_BN, attention_mask=torch.ones_like(token_BN)).prediction_logits
    torch.testing.assert_close(checkpoint.model()(token_BN), wanted, **CLOSE)
    arguments = {**checkpoint.all_arguments, "num_classes": 5, "max_length": 7}
    model = create("bert", **arguments)
    done = {row.name: row.done for row in load_adapted(model, arguments, checkpoint)}
    assert torch.equal(model.pooler.weight, theirs.bert.pooler.dense.weight)
    assert done["position.weight"] == "the first 7 kept"
    assert {name for name, what in done.items() if "anew" in what} == {"head.weight", "head.bias"}
    assert {name for name, what in done.items() if "not used" in what} == {
        "fill.bias", *(f"fill.{part}.{kind}" for part in ("dense", "norm") for kind in ("weight", "bias"))
    }  # fmt: skip


def test_longer_texts_get_positions_that_start_at_zero(tmp_path):
    checkpoint = saved(reference(), tmp_path)
    arguments = {**checkpoint.all_arguments, "max_length": 23}
    model = create("bert", **arguments)
    (row,) = load_adapted(model, arguments, checkpoint)
    assert row.done == "the first 19 kept, 4 more start at zero"
    assert torch.equal(model.position.weight[:19], checkpoint.state["position.weight"])
    assert not model.position.weight[19:].any()


def test_bare_model_lacks_the_output_for_hidden_tokens_only(tmp_path):
    bare = shaken(BertModel(reference().config))
    checkpoint = saved(bare, tmp_path)
    missing = set(checkpoint.outline().state_dict()) - set(checkpoint.state)
    assert {name.split(".")[0] for name in missing} == {"fill"}
    with pytest.raises(MiradaError, match=r"'fill.bias' is missing; train from it instead"):
        checkpoint.model()


@pytest.mark.parametrize(("kind", "num_classes"), [*zip(KINDS, (None, 5), strict=True)])
def test_what_we_save_transformers_loads(kind, num_classes, tmp_path):
    given = {"num_tokens": TOKENS, "pad": PAD, "dim": 24, "depth": 2, "num_heads": 3, "max_length": 19}
    arguments = all_arguments("bert", **given, num_classes=num_classes)
    ours = written("bert", arguments, tmp_path)
    theirs, info = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert_same(ours, theirs.eval())
    assert not any("gamma" in name for name in load_file(tmp_path / "model.safetensors"))


@pytest.mark.parametrize("variant", [{"hidden_act": "relu"}, {"is_decoder": True}])
def test_unknown_variants_are_refused(variant, tmp_path):
    reference(**variant).save_pretrained(tmp_path)
    with pytest.raises(MiradaError, match=next(iter(variant))):
        read_checkpoint(tmp_path)
