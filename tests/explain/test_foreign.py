"""Looks of models that are not ours: torch's and transformers', whatever kernel they run (timm's: tests/peers)."""

import threading

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import scaled_dot_product_attention as imported_by_name

from mirada.core import Attention, Concatenated
from mirada.errors import MiradaError
from mirada.explain.foreign import capture, foreign_looks, logits_of, reading_rows
from mirada.explain.looks import Tokens

TEXT = {"vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 29}
VISION = {key: TEXT[key] for key in TEXT if key != "vocab_size"} | {"image_size": (12, 20), "patch_size": 4}
SQUARE = VISION | {"image_size": 20}  # of 5 × 5 patches, and interpolated to other sizes
GPT2 = {"vocab_size": 53, "n_embd": 24, "n_layer": 3, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2}
DISTILBERT = {"vocab_size": 53, "dim": 24, "n_layers": 3, "n_heads": 2, "hidden_dim": 29}

# Class and configuration; extra tokens of images; what the classifier reads.
TEXTS = {
    "BERT": ("BertForSequenceClassification", TEXT, "first"),
    "RoBERTa": ("RobertaForSequenceClassification", TEXT, "first"),
    "ELECTRA": ("ElectraForSequenceClassification", TEXT | {"embedding_size": 11}, "first"),
    "ALBERT": ("AlbertForSequenceClassification", TEXT | {"embedding_size": 11}, "first"),
    "DistilBERT": ("DistilBertForSequenceClassification", DISTILBERT, "first"),
    "GPT-2": ("GPT2ForSequenceClassification", GPT2, "last"),
    "Llama": ("LlamaForSequenceClassification", TEXT | {"num_key_value_heads": 1}, "last"),
}
REGISTERS = SQUARE | {"num_register_tokens": 3}
IMAGES = {
    "ViT": ("ViTForImageClassification", VISION, 1, "first"),
    "DeiT": ("DeiTForImageClassificationWithTeacher", VISION, 2, "first two"),
    "DINOv2": ("Dinov2ForImageClassification", SQUARE, 1, "first and mean"),
    "DINOv2 with registers": ("Dinov2WithRegistersForImageClassification", REGISTERS, 4, "first and mean"),
    "BEiT": ("BeitForImageClassification", VISION | {"use_relative_position_bias": True}, 1, "mean"),
}


def build(class_name, arguments, **kernel):
    torch.manual_seed(0)
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(**arguments, num_labels=5, pad_token_id=0)
    model = model_class._from_config(config, **kernel).eval()
    # Attention of a fresh model is all but uniform: sharper, so that an error shows.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def words(batch=2):
    ids = torch.randint(3, 53, (batch, 7))
    mask = torch.ones_like(ids)
    ids[0, 5:], mask[0, 5:] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


def pixels(size=(12, 20)):
    return {"pixel_values": torch.randn(2, 3, *size)}


def second_class(output):
    return output.logits[:, 1]


def assert_looks_are_whole(looks, count):
    assert len(looks) == count and len({look.name for look in looks}) == count
    for look in looks:
        assert look.weights_BHNM.shape[2:] == (len(look.queries), len(look.keys))
        assert look.gradient_BHNM.shape == look.weights_BHNM.shape
        assert not look.weights_BHNM.requires_grad and look.gradient_BHNM.abs().max() > 0
        torch.testing.assert_close(look.weights_BHNM.sum(-1), torch.ones(look.weights_BHNM.shape[:3]))


def rows_that_are_read(look):
    """Queries of the last layer that the score depends on: those of its gradient's rows that are not zero."""
    return [row for row in range(len(look.queries)) if look.gradient_BHNM[1, :, row].abs().max() > 0]


@pytest.mark.parametrize("name", TEXTS)
def test_all_layers_of_a_text_model(name):
    class_name, arguments, reads = TEXTS[name]
    model, inputs = build(class_name, arguments), words()
    with torch.no_grad():
        plain = model(**inputs).logits
    looks, output = foreign_looks(model, inputs, second_class)
    torch.testing.assert_close(output.logits, plain, rtol=0, atol=1e-5)
    assert_looks_are_whole(looks, 3)
    assert all(look.queries == look.keys == Tokens((7,)) and look.kind == "self" for look in looks)
    assert all(look.weights_BHNM[0, :, :, 5:].max() == 0 for look in looks)  # nobody looks at padding
    assert reading_rows(model) == reads
    assert rows_that_are_read(looks[-1]) == ([0] if reads == "first" else [6])
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("name", IMAGES)
def test_all_layers_of_an_image_model(name):
    class_name, arguments, num_extra, reads = IMAGES[name]
    model, inputs = build(class_name, arguments), pixels()
    with torch.no_grad():
        plain = model(**inputs).logits
    looks, output = foreign_looks(model, inputs, second_class)
    torch.testing.assert_close(output.logits, plain, rtol=0, atol=1e-5)
    assert_looks_are_whole(looks, 3)
    assert all(look.queries == look.keys == Tokens((3, 5), num_extra) for look in looks)
    assert reading_rows(model) == reads
    patches = list(range(num_extra, num_extra + 15))
    rows = {"first": [0], "first two": [0, 1], "mean": patches, "first and mean": [0, *patches]}[reads]
    assert rows_that_are_read(looks[-1]) == rows


def test_attention_pooling_of_siglip():
    model = build("SiglipVisionModel", SQUARE)
    inputs = pixels((20, 20))
    plain = model(**inputs).pooler_output
    looks, output = foreign_looks(model, inputs, lambda output: output.pooler_output[:, 0])
    torch.testing.assert_close(output.pooler_output, plain, rtol=0, atol=1e-5)
    assert_looks_are_whole(looks, 4)
    assert [look.kind for look in looks] == ["self"] * 3 + ["cross"]
    assert (looks[-1].queries, looks[-1].keys) == (Tokens((1,)), Tokens((5, 5)))
    assert looks[-1].weights_BHNM.shape == (2, 2, 1, 25)
    assert reading_rows(model) == "pool"
    classifier = build("SiglipForImageClassification", {"vision_config": SQUARE})
    assert reading_rows(classifier) == "mean"
    assert foreign_looks(classifier, inputs)[0][0].keys == Tokens((5, 5))


@pytest.mark.parametrize("name", ["BERT", "GPT-2", "Llama", "ViT", "DeiT", "BEiT"])
def test_maps_are_those_of_eager_attention(name):
    class_name, arguments = (TEXTS | IMAGES)[name][:2]
    inputs = words() if name in TEXTS else pixels()
    fused, eager = (build(class_name, arguments, attn_implementation=kernel) for kernel in ("sdpa", "eager"))
    with torch.no_grad():
        wanted = eager(**inputs, output_attentions=True)
        assert not fused(**inputs).attentions
    for model in (fused, eager):
        looks, output = foreign_looks(model, inputs, second_class)
        torch.testing.assert_close(output.logits, wanted.logits, rtol=0, atol=1e-5)
        for look, weights in zip(looks, wanted.attentions, strict=True):
            torch.testing.assert_close(look.weights_BHNM, weights, rtol=0, atol=1e-6)
    gradients = [[look.gradient_BHNM for look in foreign_looks(m, inputs, second_class)[0]] for m in (fused, eager)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_images_of_another_size():
    model = build("ViTForImageClassification", SQUARE)
    looks, _ = foreign_looks(model, pixels((24, 8)) | {"interpolate_pos_encoding": True})
    assert all(look.keys == Tokens((6, 2), 1) and look.gradient_BHNM is None for look in looks)


def test_layers_are_named_after_the_module_that_ran():
    names = [look.name for look in foreign_looks(build(*TEXTS["BERT"][:2]), words())[0]]
    assert names == [f"bert.encoder.layer.{number}.attention.self" for number in range(3)]
    albert = [look.name for look in foreign_looks(build(*TEXTS["ALBERT"][:2]), words())[0]]
    assert albert == [albert[0], f"{albert[0]} (run 2)", f"{albert[0]} (run 3)"]  # one layer, three times


class Attends(nn.Module):
    """torch's fused attention with the arguments given, imported before any capture."""

    def forward(self, q, k, v, **arguments):
        return imported_by_name(q, k, v, **arguments)


MASK = torch.arange(70).view(2, 1, 5, 7) % 3 > 0
MASK[0, 0, 2] = False  # a query that may look nowhere


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"attn_mask": MASK},
        {"attn_mask": torch.randn(5, 7)},
        {"attn_mask": torch.zeros(2, 1, 5, 7).masked_fill(~MASK, -torch.inf)},
        {"is_causal": True},
        {"scale": 0.3},
    ],
)
@pytest.mark.parametrize("num_key_heads", [6, 2])
def test_explicit_attention_is_the_fused_one(arguments, num_key_heads):
    q, k, v = torch.randn(2, 6, 5, 11), torch.randn(2, num_key_heads, 7, 11), torch.randn(2, num_key_heads, 7, 13)
    arguments = arguments | {"enable_gqa": num_key_heads != 6}
    with capture(model := Attends()) as captured:
        out = model(q, k, v, **arguments)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, **arguments), rtol=0, atol=1e-5)
    [found] = captured.maps
    assert (found.name, found.layer, found.weights_BHNM.shape) == ("Attends", "Attends", (2, 6, 5, 7))
    torch.testing.assert_close(found.weights_BHNM @ v.repeat_interleave(6 // num_key_heads, 1), out)


@pytest.mark.parametrize(("lead", "shape"), [((), (1, 1)), ((3,), (3, 1)), ((3, 2), (3, 2))])
def test_heads_and_batch_may_be_missing(lead, shape):
    x, model = torch.randn(*lead, 5, 11), Attends()
    with capture(model, differentiable=True) as captured:
        out = model(x, x, x)
    assert captured.maps[0].weights_BHNM.shape == (*shape, 5, 5)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(x, x, x), rtol=0, atol=1e-5)
    assert torch.autograd.grad(out.sum(), captured.maps[0].weights_BHNM)[0].abs().max() > 0


def test_gradient_by_hand():
    """score = Σ_i c_i · (α v)_i has ∂score/∂α_ij = c_i · v_j; and no parameter or input asks for gradients."""
    q, k, v, c = (torch.randn(2, 3, 5, 7) for _ in range(4))
    with torch.no_grad(), capture(model := Attends(), differentiable=True) as captured:
        score = (c * model(q, k, v)).sum()
    torch.testing.assert_close(torch.autograd.grad(score, captured.maps[0].weights_BHNM)[0], c @ v.mT)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("asked", [{"need_weights": False}, {}, {"average_attn_weights": False}])
def test_multihead_attention_gives_weights_with_gradient(asked, frozen):
    model = nn.MultiheadAttention(24, 2, batch_first=True).requires_grad_(not frozen).eval()
    x, padding = torch.randn(3, 5, 24), torch.zeros(3, 5, dtype=torch.bool)
    padding[0, 4] = True
    plain, weights = model(x, x, x, key_padding_mask=padding, **asked)
    with capture(model, differentiable=True) as captured:
        out, given = model(x, x, x, key_padding_mask=padding, **asked)
    torch.testing.assert_close(out, plain, rtol=0, atol=1e-5)
    [found] = captured.maps
    assert found.name == "MultiheadAttention" and not found.is_cross
    assert torch.autograd.grad(out[..., 0].sum(), found.weights_BHNM)[0].abs().max() > 0
    torch.testing.assert_close(given, weights)  # None, the mean of the heads, or all of them
    whole = model(x, x, x, key_padding_mask=padding, average_attn_weights=False)[1]
    torch.testing.assert_close(found.weights_BHNM, whole)


def test_multihead_attention_of_one_sequence_and_of_others():
    model = nn.MultiheadAttention(24, 2).eval()
    x, other = torch.randn(5, 24), torch.randn(7, 24)
    masked = {"attn_mask": torch.full((5, 5), -torch.inf).triu(2), "is_causal": True}  # a wrong hint, not followed
    with torch.no_grad(), torch.device("cpu"), capture(model) as captured:  # the device is a mode of torch, too
        own, own_weights = model(x, x, x, **masked)
        crossed, _ = model(x, other, other)
    torch.testing.assert_close(own, model(x, x, x, **masked)[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(crossed, model(x, other, other)[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(own_weights, model(x, x, x, **masked)[1])
    assert [found.is_cross for found in captured.maps] == [False, True]
    looks, _ = foreign_looks(model, {"query": x, "key": other, "value": other})
    assert (looks[0].kind, looks[0].queries, looks[0].keys) == ("cross", Tokens((5,)), Tokens((7,)))


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder_leaves_its_fast_path(norm_first):
    layer = nn.TransformerEncoderLayer(24, 2, 29, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(3, 5, 24)
    with torch.no_grad():
        plain = model(x)  # by the fast path
    looks, output = foreign_looks(model, x)
    torch.testing.assert_close(output, plain, rtol=0, atol=1e-5)
    assert [look.name for look in looks] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert all(look.weights_BHNM.shape == (3, 2, 5, 5) and look.keys == Tokens((5,)) for look in looks)
    padding = torch.tensor([[False] * 3 + [True] * 2] * 3)
    looks, _ = foreign_looks(model, {"src": x, "src_key_padding_mask": padding}, lambda output: output[:, 0, 0])
    assert all(look.weights_BHNM[..., 3:].max() == 0 for look in looks) and looks[0].gradient_BHNM.abs().max() > 0


def test_a_model_in_training_is_explained_as_in_evaluation_and_left_as_it_was():
    model = build("BertForSequenceClassification", TEXT | {"attention_probs_dropout_prob": 0.5})
    inputs = words()
    expected = [look.weights_BHNM for look in foreign_looks(model, inputs)[0]]
    model.train()
    model.bert.pooler.eval()
    flags = [module.training for module in model.modules()]
    found = [look.weights_BHNM for look in foreign_looks(model, inputs)[0]]
    torch.testing.assert_close(found, expected)
    assert [module.training for module in model.modules()] == flags
    with pytest.raises(ZeroDivisionError):
        foreign_looks(model, inputs, lambda output: 1 / 0)
    assert [module.training for module in model.modules()] == flags


def test_other_threads_are_not_recorded():
    ours, theirs = Attention(Concatenated(24, 2)).eval(), build(*TEXTS["BERT"][:2])
    x, inputs, stop, runs, failures = torch.randn(3, 5, 24), words(), threading.Event(), [], []
    expected, expected_theirs = ours(x), theirs(**inputs).logits

    def run():
        try:
            while not stop.is_set():
                assert torch.equal(ours(x), expected) and torch.equal(theirs(**inputs).logits, expected_theirs)
                runs.append(F.scaled_dot_product_attention)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        with capture(theirs) as captured:
            for _ in range(5):
                theirs(**inputs)
            before = len(runs)
            while len(runs) < before + 3 and not failures:
                thread.join(0.01)
            ours(x)  # in this thread, but not part of the model
    finally:
        stop.set()
        thread.join()
    assert not failures and len(captured.maps) == 15
    assert set(runs) == {imported_by_name}


def test_after_an_exception_all_is_as_before():
    x, model = torch.randn(2, 3, 5, 7), Attends()
    with pytest.raises(RuntimeError), capture(model, differentiable=True) as captured:
        model(x, x, x, attn_mask=torch.ones(11, 13))
    model(x, x, x)
    with pytest.raises(MiradaError, match="Attends ran no attention"):
        assert captured.maps
    assert not torch.overrides._get_current_function_mode_stack()
    assert F.scaled_dot_product_attention is imported_by_name


def test_logits():
    logits = torch.randn(2, 5)
    assert logits_of(logits) is logits
    assert logits_of({"logits": logits}) is logits
    assert logits_of(transformers.modeling_outputs.SequenceClassifierOutput(logits=logits)) is logits
    with pytest.raises(MiradaError, match="BaseModelOutput with last_hidden_state and no logits"):
        logits_of(transformers.modeling_outputs.BaseModelOutput(last_hidden_state=logits))
    with pytest.raises(MiradaError, match="tuple and no logits"):
        logits_of((logits, None))


class Own(nn.Module):
    """Rows of an image look at each other by a softmax of its own; `then` comes before the values."""

    def __init__(self, then=lambda weights: weights, fold=False, dim=-1):
        super().__init__()
        self.then, self.fold, self.dim = then, fold, dim

    def forward(self, images_BCHW):
        x = images_BCHW.flatten(0, 1) if self.fold else images_BCHW
        return self.then(nn.Softmax(self.dim)(x @ x.mT)) @ x


CLIP = {"vision_config": SQUARE, "text_config": TEXT}
T5 = {"vocab_size": 53, "d_model": 24, "d_kv": 12, "d_ff": 29, "num_layers": 2, "num_heads": 2}
SWIN = {"image_size": 16, "patch_size": 2, "window_size": 4, "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2]}
REFUSED = {
    "no attention": (lambda: nn.Sequential(nn.Conv2d(3, 5, 3)), pixels, "Sequential ran no attention"),
    "talking heads": (lambda: Own(lambda w: w + w.flip(1)), pixels, r"'Own' \(Own\) has a softmax of its own"),
    "folded": (lambda: Own(fold=True), pixels, r"weights of shape \(6, 12, 12\)"),
    "no patch size": (Own, pixels, "Own does not tell its patch size: give tokens="),
    "columns": (lambda: Own(dim=2), pixels, "has a softmax of its own, of shape"),
    "compiled": (lambda: nn.Sequential(torch.compile(Attends(), backend="eager")), pixels, r"is compiled \(0\)"),
    "Swin": (
        lambda: build("SwinForImageClassification", SWIN),
        lambda: pixels((16, 16)),
        "SwinForImageClassification cannot be .* gives 8 maps for 2 samples, as attention inside windows",
    ),
    "YOLOS": (
        lambda: build("YolosForObjectDetection", VISION | {"image_size": [12, 20]}),
        pixels,
        r"YolosForObjectDetection .* has 116 queries and 116 keys, expected 1 \+ 3 × 5 tokens or 3 × 5 tokens",
    ),
    "T5": (lambda: build("T5ForSequenceClassification", T5), words, "T5For.* an encoder and a decoder"),
    "CLIP": (lambda: build("CLIPModel", CLIP), lambda: words() | pixels((20, 20)), "images and text"),
    "no batch": (
        lambda: nn.Sequential(nn.Embedding(53, 24), nn.TransformerEncoderLayer(24, 2)),
        lambda: {"input": torch.arange(7)},
        r"Sequential was given an input of shape \(7,\): expected images",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_names_the_model_and_the_reason(name):
    make, inputs, reason = REFUSED[name]
    given = inputs()
    with pytest.raises(MiradaError, match=reason):
        foreign_looks(make(), given["pixel_values"] if list(given) == ["pixel_values"] else given)


def test_layout_may_be_given():
    tokens = Tokens((4, 3))
    looks, _ = foreign_looks(Own(), torch.randn(2, 3, 12, 20), lambda out: out[:, 0, 1, 2], tokens=tokens)
    assert_looks_are_whole(looks, 1)
    assert looks[0].keys == tokens


def test_scores_and_modes_that_cannot_work():
    model, inputs = build(*TEXTS["BERT"][:2]), words()
    for score, reason in [
        (lambda output: output.logits, r"score gave \(2, 5\): expected .* a tensor of \(2,\)"),
        (lambda output: 1.0, "score gave float"),
        (lambda output: torch.zeros(2), "does not depend on any attention of BertForSequenceClassification"),
    ]:
        with pytest.raises(MiradaError, match=reason):
            foreign_looks(model, inputs, score)
    with torch.inference_mode(), pytest.raises(MiradaError, match="inference_mode"):
        foreign_looks(model, inputs, second_class)
    with pytest.raises(MiradaError, match="which tokens BertModel reads"):
        reading_rows(model.bert)
