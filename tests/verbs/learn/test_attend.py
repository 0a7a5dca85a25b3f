"""The lesson shows what the core computes, neither more nor less."""

from __future__ import annotations

import pytest
import torch

from mirada.core import Attention, Collaborative, Concatenated, Rotary, causal, count_flops, line, record, window
from mirada.errors import MiradaError
from mirada.verbs.learn import attend
from mirada.verbs.learn.drawing_weights import word_vectors
from mirada.verbs.learn.parts import HEADS, POSITIONS, SCORES

SENTENCE = "el gato negro salta la cuerda"


def test_weights_are_those_of_the_core_called_directly():
    rules = [{"kind": "window", "reach": 2}, {"kind": "causal"}]
    lesson = attend(SENTENCE, neighbours=rules, position="rotary", num_heads=3, dim=12, seed=5)
    layer = Attention(Concatenated(12, 3), neighbours=window(2) & causal(), position=Rotary(4)).eval()
    layer.load_state_dict(lesson.model.attention.state_dict())
    x = word_vectors(SENTENCE.split(), 12, 5)[None]
    with torch.no_grad(), record(layer) as maps:
        layer(x)
    torch.testing.assert_close(lesson.weights_HNN, maps[0][0])
    assert lesson.mask_NN.equal((window(2) & causal()).allowed(line(6), line(6)))
    assert lesson.num_pairs == 1 + 2 + 4 * 3
    assert lesson.flops_formula == 2 * (4 * 6 * 12**2 + 2 * 15 * 12)
    assert lesson.flops_full == 2 * (4 * 6 * 12**2 + 2 * 36 * 12)
    assert lesson.count_flops() == count_flops(layer, x)


def test_softmax_of_the_logits_over_the_mask_is_the_weights():
    lesson = attend(SENTENCE, score="additive", neighbours=[{"kind": "not self"}])
    expected = lesson.logits_HNN.masked_fill(~lesson.mask_NN, -torch.inf).softmax(-1)
    torch.testing.assert_close(lesson.weights_HNN, expected)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("position", POSITIONS)
def test_every_position_goes_with_every_kind_of_heads_on_a_line_and_on_a_plane(position, heads):
    for rules in ([], [{"kind": "grid", "radius": 1}]):
        lesson = attend(12, position=position, heads=heads, neighbours=rules, dim=16, num_heads=2)
        assert lesson.weights_HNN.shape == (2, 12, 12) and lesson.weights_HNN.isfinite().all()
        if heads != "re-attention":
            torch.testing.assert_close(lesson.weights_HNN.sum(-1), torch.ones(2, 12))


@pytest.mark.parametrize("score", SCORES)
def test_every_score(score):
    weights = attend(SENTENCE, score=score, heads="collaborative").weights_HNN
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 6))


@pytest.mark.parametrize(
    ("chosen", "kernel"),
    [
        ({}, "fused"),
        ({"neighbours": [{"kind": "window", "reach": 1}]}, "block local"),
        ({"neighbours": [{"kind": "window", "reach": 6}]}, "fused"),
        ({"neighbours": [{"kind": "strided", "stride": 2}]}, "block sparse"),
        ({"neighbours": [{"kind": "windows", "size": 2}]}, "block grid"),
        ({"neighbours": [{"kind": "edges", "edges": [(0, 1)]}]}, "edge list"),
        ({"score": "random features"}, "features"),
        ({"score": "distance"}, "distances"),
        ({"heads": "re-attention"}, "reference"),
        ({"position": "relative"}, "reference"),
    ],
)
def test_the_kernel_is_named_and_every_other_has_a_reason(chosen, kernel):
    lesson = attend(12, **chosen)
    assert lesson.kernel == kernel
    assert [one.name for one in lesson.kernels if one.reason is None] == [kernel]


def test_a_band_that_is_wide_is_served_but_not_worth_it():
    lesson = attend(12, neighbours=[{"kind": "window", "reach": 6}])
    reasons = {one.name: one.reason for one in lesson.kernels}
    assert "not narrow" in reasons["block local"] and "later in the table" in reasons["reference"]


def test_equal_words_have_equal_vectors_and_the_picture_is_the_same_each_time():
    first = attend("la luna y la luna", position="learned", score="random features")
    torch.manual_seed(7)
    torch.rand(3)
    again = attend("la luna y la luna", position="learned", score="random features")
    assert first.weights_HNN.equal(again.weights_HNN)
    assert first.x_BND[0, 0].equal(first.x_BND[0, 3]) and not first.x_BND[0, 0].equal(first.x_BND[0, 1])
    assert not attend("la luna y la luna", seed=1).weights_HNN.equal(attend("la luna y la luna").weights_HNN)


def test_it_draws_nothing_that_others_would_miss_of_their_own_seed():
    lesson = attend(SENTENCE, heads="collaborative")
    assert isinstance(lesson.model.attention.heads, Collaborative)
    assert lesson.weights_HNN.equal(attend(SENTENCE, heads="collaborative").weights_HNN)


def test_a_token_without_neighbours_has_no_weights():
    lesson = attend(3, neighbours=[{"kind": "edges", "edges": [(0, 1), (0, 2), (1, 1)]}])
    assert lesson.num_pairs == 3
    assert lesson.weights_HNN[:, 2].abs().sum() == 0
    torch.testing.assert_close(lesson.weights_HNN[:, 0, 1:].sum(-1), torch.ones(2))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tokens": ""}, "0 tokens"),
        ({"tokens": 65}, "65 tokens"),
        ({"tokens": "a" * 41}, "41 letters"),
        ({"tokens": "\ud800 a"}, "cannot be shown"),
        ({"score": "scaled dog"}, "did you mean 'scaled dot'"),
        ({"position": "rotari"}, "did you mean 'rotary'"),
        ({"heads": "many"}, "there are concatenated"),
        ({"dim": 1}, "dim is 1"),
        ({"num_heads": 9}, "num_heads is 9"),
        ({"dim": 16, "num_heads": 3}, "cannot be shared"),
        ({"seed": -1}, "seed is -1"),
        ({"dim": 9, "num_heads": 1, "position": "sinusoidal"}, "multiple of 2"),
        ({"neighbours": [{"kind": "circle"}]}, "the neighbourhood 'circle'"),
        ({"neighbours": [{"kind": "window"}]}, "reach of window is None"),
        ({"neighbours": [{"kind": "window", "reach": 1.5}]}, "whole number"),
        ({"neighbours": [{"kind": "fixed", "block": 2, "num_summary": 3}]}, "num_summary ≤ block"),
        ({"neighbours": [{"kind": "grid", "radius": 1}], "columns": 4}, "do not fill rows of 4"),
        ({"neighbours": [{"kind": "edges", "edges": [(0, 6)]}]}, "leaves the 6 tokens"),
        ({"neighbours": [{"kind": "strided", "stride": 2}, {"kind": "grid", "radius": 1}]}, "choose one of them"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(given, sentence):
    tokens = given.pop("tokens", SENTENCE)
    with pytest.raises(MiradaError) as error:
        attend(tokens, **given)
    assert sentence in str(error.value)
