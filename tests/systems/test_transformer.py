"""Transformer: counts, equality with torch.nn.Transformer, every position and neighbourhood, ties, dropout."""

import pytest
import torch
from torch import nn

from mirada.core import Fixed, Learned, Strided, attention_layers, causal, full, line, record, window
from mirada.errors import MiradaError
from mirada.nn import neighbours_named
from mirada.systems import Transformer, card, create
from tests.nn.torch_layers import (
    DIM,
    HEADS,
    HIDDEN,
    assert_same_result_and_gradients,
    copy,
    of_decoder_layer,
    of_encoder_layer,
    of_stack,
    shake,
)
from tests.systems.common_text_checks import CLOSE, PAD, PAIR_CHECKS, START, TOKENS, pair, pair_maker, shaken

COUNTS = {"base": 63_084_544, "big": 214_249_472}  # of torch.nn.Transformer and 37,000 shared tokens
POSITIONS = ("sinusoidal", "sinusoidal_half", "learned", "rotary", "shaw", "none")
NEIGHBOURS = ("full", "window:2", "strided:3", "fixed:3", "fixed:4:2")


@pytest.mark.parametrize(("size", "count"), COUNTS.items())
def test_parameters_of_the_papers_sizes(size, count):
    def num_parameters(**arguments):
        with torch.device("meta"):
            model = create("transformer", size, num_tokens=37_000, **arguments)
        return sum(parameter.numel() for parameter in model.parameters())

    dim = card("transformer").sizes[size]["dim"]
    assert num_parameters() == count
    assert num_parameters(final_norm=False) == count - 4 * dim
    assert num_parameters(num_target_tokens=30_000) == count + 30_000 * dim
    assert num_parameters(tie="none") == count + 2 * 37_000 * dim


def torch_transformer(norm_first: bool, final_norm: bool) -> nn.Transformer:
    # torch warns that it cannot use nested tensors with pre-norm, unless told not to.
    layer = nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(DIM) if final_norm else None, enable_nested_tensor=False)
    theirs = nn.Transformer(
        DIM, HEADS, 2, 3, HIDDEN, dropout=0.0, batch_first=True, norm_first=norm_first, custom_encoder=encoder
    )
    if not final_norm:
        theirs.decoder.norm = None
    theirs.double()
    shake(theirs)
    return theirs


@pytest.mark.parametrize(("norm", "final_norm"), [("pre", True), ("post", True), ("post", False)])
def test_G5_equals_torch_transformer_in_output_and_gradients(norm, final_norm):
    theirs = torch_transformer(norm == "pre", final_norm)
    ours = Transformer(
        num_tokens=TOKENS, dim=DIM, depth=2, decoder_depth=3, num_heads=HEADS, mlp_ratio=(HIDDEN + 0.5) / DIM,
        norm=norm, final_norm=final_norm, dropout=0.0,
    ).double()  # fmt: skip
    pairs = []
    for stack, their_stack, of_layer in (
        (ours.encoder, theirs.encoder, of_encoder_layer),
        (ours.decoder, theirs.decoder, of_decoder_layer),
    ):
        if not final_norm:
            their_stack.norm = nn.Identity()
        of_it = of_stack(stack, their_stack, of_layer)
        copy(of_it, stack)
        pairs += of_it
    source, read = pair()
    tokens = ours.tokens.source.weight

    def embedded(token_BN):
        x = DIM**0.5 * tokens[token_BN]
        return x + ours.source_position.table(line(x.shape[1]))

    hidden = theirs(
        embedded(source), embedded(read),
        tgt_mask=torch.ones(read.shape[1], read.shape[1], dtype=torch.bool).triu(1),
        src_key_padding_mask=source == PAD, memory_key_padding_mask=source == PAD,
    )  # fmt: skip
    assert_same_result_and_gradients(ours(source, read), hidden @ tokens.T, [tokens], pairs)


CHECKED = (
    "pair_learns_with_every_parameter",
    "pair_reads_in_steps_as_at_once",
    "pair_sees_no_later_token",
    "pair_is_independent_of_padding_and_batch",
    "pair_recording",
)


@pytest.mark.parametrize("check", CHECKED)
@pytest.mark.parametrize(
    "variant",
    [
        *({"position": position} for position in POSITIONS),
        *({"neighbours": neighbours} for neighbours in NEIGHBOURS[1:]),
        {"norm": "post"},
        {"position": "rotary", "neighbours": "window:2"},
        {"position": "shaw", "neighbours": "strided:3"},
    ],
    ids=str,
)
def test_every_part_passes_the_common_checks(variant, check):
    PAIR_CHECKS[check](pair_maker(card("transformer"), **variant))


@pytest.mark.parametrize("position", [name for name in POSITIONS if name != "none"])
def test_positions_give_order_to_the_source(position):
    source, read = pair()
    source = source[:1, :5]
    ordered, orderless = (shaken(pair_maker(card("transformer"), position=p)()) for p in (position, "none"))
    torch.testing.assert_close(orderless(source.flip(1), read[:1]), orderless(source, read[:1]), **CLOSE)
    assert not torch.allclose(ordered(source.flip(1), read[:1]), ordered(source, read[:1]), atol=1e-3)


def test_learned_positions_end_at_max_length():
    model = pair_maker(card("transformer"), position="learned", max_length=12)()
    assert isinstance(model.target_position, Learned)
    source, read = pair()
    assert model(source, read).isfinite().all()
    state = model.begin(source)
    with pytest.raises(MiradaError, match="13 tokens, but learned positions exist for 12"):
        model.next_logits(read.repeat(1, 2)[:, :13], state)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbourhoods_look_both_ways_in_the_encoder_and_back_in_the_decoder(name):
    places = line(13)
    both, back = (neighbours_named(name, is_causal=c).allowed(places, places) for c in (False, True))
    assert torch.equal(both, both.T), "as far ahead as back"
    assert torch.equal(back, both & causal().allowed(places, places))
    model, (source, read) = shaken(pair_maker(card("transformer"), neighbours=name)()), pair()
    with record(model) as maps:
        model(source, read)
    for layer in attention_layers(model):
        num_queries, num_keys = maps[layer].shape[-2:]
        if layer.startswith("encoder") or ".attention." in layer:
            allowed = (both if layer.startswith("encoder") else back)[:num_queries, :num_keys]
            assert not maps[layer][..., ~allowed].any()
        else:
            assert maps[layer][1].all(), "every target token looks at every source token"


def test_neighbourhoods_by_name():
    assert neighbours_named("full", is_causal=False) == full()
    assert neighbours_named("full", is_causal=True) == causal()
    assert neighbours_named("window:8", is_causal=False) == window(8)
    assert neighbours_named("window:8", is_causal=True) == window(8) & causal()
    assert neighbours_named("strided:16", is_causal=True) == Strided(16)
    assert neighbours_named("fixed:16", is_causal=True) == Fixed(16, 1)
    assert neighbours_named("fixed:16:2", is_causal=True) == Fixed(16, 2)


@pytest.mark.parametrize("name", ["windows:8", "window", "window:x", "full:3", "strided:1:2", "", "fixed:2:1:1"])
def test_unknown_neighbourhoods_are_refused_with_the_forms(name):
    with pytest.raises(MiradaError, match=rf"neighbours='{name}': must be full, window:<reach>.*whole numbers"):
        neighbours_named(name, is_causal=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": "middle"}, "norm='middle': must be one of pre, post"),
        ({"norm": "pre", "final_norm": False}, "use final_norm=True"),
        ({"position": "sinus"}, r"position='sinus' \(did you mean 'sinusoidal'\?\)"),
        ({"activation": "tanh"}, "must be one of relu, gelu, silu"),
        ({"tie": "some"}, "tie='some': must be one of all, output, none"),
        ({"tie": "all", "num_target_tokens": 17}, "13 source and 17 target tokens: .*tie='output'"),
        ({"neighbours": "window:-1"}, "reaches before=-1"),
        ({"neighbours": "strided:0"}, "must be at least 1"),
    ],
)
def test_misuse_is_refused(arguments, message):
    with pytest.raises(MiradaError, match=message):
        pair_maker(card("transformer"))(**arguments)


@pytest.mark.parametrize(("tie", "num_matrices"), [("all", 1), ("output", 2), ("none", 3)])
def test_ties(tie, num_matrices):
    model = pair_maker(card("transformer"))(tie=tie)
    assert sum(parameter.shape == (TOKENS, 24) for parameter in model.parameters()) == num_matrices
    assert (model.tokens.target is model.tokens.source) == (tie == "all")
    h = torch.randn(2, 3, 24)
    matrix = model.tokens.own_output.weight if tie == "none" else model.tokens.target.weight
    torch.testing.assert_close(model.tokens.scores(h), h @ matrix.T)


def test_A10_tokens_are_scaled_by_the_root_of_dim_before_positions_are_added():
    model = pair_maker(card("transformer"), depth=0, decoder_depth=0, norm="post", final_norm=False)()
    source, _ = pair()
    expected = 24**0.5 * model.tokens.source.weight[source] + model.source_position.table(line(source.shape[1]))
    torch.testing.assert_close(model.encode(source), expected.float())


def test_G4_E46_the_encoder_is_trained_through_the_decoder():
    model, (source, read) = pair_maker(card("transformer"))(), pair()
    model(source, read).square().sum().backward()
    for name, parameter in model.encoder.named_parameters():
        assert parameter.grad.any() or name.endswith("to_k.bias"), name


def test_dropout_acts_where_the_paper_has_it():
    """On both embedded sides and on each sublayer's result: 2 of an encoder layer, 3 of a decoder layer."""
    model, (source, read) = pair_maker(card("transformer"), dropout=0.3)().train(), pair()
    acting = []
    for module in model.modules():
        if isinstance(module, nn.Dropout) and module.p:
            module.register_forward_hook(lambda *_: acting.append(1))
    model(source, read)
    assert len(acting) == 2 + 2 * 2 + 3 * 2
    assert not torch.equal(model(source, read), model(source, read))


def test_target_may_begin_with_the_padding_token():
    """As Marian's do: the first token is read, whatever it is."""
    model, (source, read) = shaken(pair_maker(card("transformer"))()), pair()
    begun = read.masked_fill(read == START, PAD)
    assert not torch.allclose(model(source, begun)[:, 1], model(source, read)[:, 1])
    state = model.begin(source)
    with torch.no_grad():
        steps = [model.next_logits(piece, state) for piece in begun.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(source, begun), **CLOSE)


def test_source_is_encoded_once():
    model, (source, read) = shaken(pair_maker(card("transformer"))()), pair()
    calls = []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    state = model.begin(source)
    with torch.no_grad():
        for piece in read.split(1, dim=1):
            model.next_logits(piece, state)
            assert state.memory_BMD.shape == (*source.shape, 0), "its keys and values are in the cache"
    assert len(calls) == 1 and state.length == read.shape[1]
