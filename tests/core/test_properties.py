"""What holds for every attention, on generated sizes, parts and numbers."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mirada.core import (
    Additive,
    Attend,
    Attention,
    Bilinear,
    Concatenated,
    Distance,
    Dot,
    Edges,
    Fixed,
    GraphAdditive,
    LearnedTemperature,
    Mask,
    NotSelf,
    ScaledDot,
    SoftCapped,
    Strided,
    causal,
    full,
    kernels,
    line,
    record,
    window,
)  # fmt: skip

B, H, K, V, D = 2, 3, 5, 7, 11

sizes = st.integers(1, 40)
seeds = st.integers(0, 2**31)


@st.composite
def scores(draw):
    return draw(
        st.sampled_from(
            [
                ScaledDot,
                Dot,
                lambda: Bilinear(K, K, H),
                lambda: Additive(K, K, 13, H, bias=True),
                lambda: GraphAdditive(K, H),
                lambda: LearnedTemperature(K),
                lambda: Distance(H),
                lambda: SoftCapped(ScaledDot(), 2.0),
            ]
        )
    )().double()


@st.composite
def causal_rules(draw):
    reach = draw(st.integers(0, 9))
    block = draw(st.integers(1, 9))
    return draw(
        st.sampled_from(
            [
                causal(),
                window(reach) & causal(),
                Strided(block),
                Fixed(block, draw(st.integers(1, block))),
                NotSelf() & causal(),
                Strided(block) | window(reach) & causal(),
            ]
        )
    )


@st.composite
def rules(draw, length: int):
    """Any neighbourhood of `length` tokens, also such that leave rows empty."""
    torch.manual_seed(draw(seeds))
    return draw(
        st.one_of(
            causal_rules(),
            st.builds(window, st.integers(0, 9)),
            st.sampled_from(
                [
                    full(),
                    NotSelf(),
                    Mask(torch.rand(length, length) < 0.3),
                    Edges(torch.randint(0, length, (2, 2 * length)), length, length),
                ]
            ),
        )
    )


@st.composite
def cases(draw):
    """An attention, its q, k, v and which keys are not padding."""
    length = draw(sizes)
    attend = Attend(draw(scores()), draw(rules(length)))
    torch.manual_seed(draw(seeds))
    scale = draw(st.sampled_from([0.1, 1.0, 30.0]))
    q, k, v = (scale * torch.randn(B, H, length, width, dtype=torch.float64) for width in (K, K, V))
    valid = torch.rand(B, length) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    return attend, (q, k, v), valid


def weights_and_output(case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    attend, (q, k, v), valid = case
    with record(attend) as maps:
        out = attend(q, k, v, valid_BM=valid)
    weights = maps[0]
    if isinstance(attend.neighbours, Edges):
        weights = attend.neighbours.dense(weights)
    places = line(q.shape[2])
    allowed = attend.neighbours.allowed(places, places) & valid[:, None, None, :]
    return weights, out, allowed.expand_as(weights)


@given(cases())
def test_rows_sum_to_one_or_zero_and_nothing_is_outside_the_neighbourhood(case):
    weights, out, allowed = weights_and_output(case)
    total = allowed.any(-1).double()
    torch.testing.assert_close(weights.sum(-1), total)
    assert (weights >= 0).all()
    assert not weights[~allowed].any()
    torch.testing.assert_close(out, weights @ case[1][2])


@given(cases())
def test_outputs_lie_within_the_values_of_the_neighbours(case):
    _, out, allowed = weights_and_output(case)
    v = case[1][2][:, :, None].expand(-1, -1, out.shape[2], -1, -1)
    low = v.masked_fill(~allowed[..., None], torch.inf).amin(3)
    high = v.masked_fill(~allowed[..., None], -torch.inf).amax(3)
    some = allowed.any(-1)
    slack = 1e-9 * (1 + v.abs().max())
    assert (out[some] >= low[some] - slack).all() and (out[some] <= high[some] + slack).all()
    assert not out[~some].any()


@given(st.integers(2, 40), scores(), seeds)
def test_permuting_tokens_permutes_outputs(length, score, seed):
    torch.manual_seed(seed)
    layer = Attention(Concatenated(D, H, head_dim=K), score=score).double()
    x, order = torch.randn(B, length, D, dtype=torch.float64), torch.randperm(length)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])
    edges = Edges(torch.randint(0, length, (2, 3 * length)), length, length)
    renamed = Edges(order.argsort()[edges.edge_2E], length, length)
    torch.testing.assert_close(layer(x[:, order], neighbours=renamed), layer(x, neighbours=edges)[:, order])


@given(st.integers(2, 40), scores(), causal_rules(), seeds, st.data())
def test_no_future_token_changes_the_past(length, score, rule, seed, data):
    """Exactly, whatever kernel was chosen."""
    torch.manual_seed(seed)
    layer = Attention(Concatenated(D, H, head_dim=K), score=score, neighbours=rule).double()
    x = torch.randn(B, length, D, dtype=torch.float64)
    now = data.draw(st.integers(1, length - 1))
    changed = torch.cat([x[:, :now], 50 * torch.randn(B, length - now, D, dtype=torch.float64)], dim=1)
    assert torch.equal(layer(changed)[:, :now], layer(x)[:, :now])


@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(1, 20), scores(), st.data(), seeds)
def test_padding_is_invisible(length, amount, score, data, seed):
    rule = data.draw(st.one_of(causal_rules(), st.builds(window, st.integers(0, 9)), st.just(full())))
    torch.manual_seed(seed)
    layer = Attention(Concatenated(D, H, head_dim=K), score=score, neighbours=rule).double()
    x = torch.randn(B, length, D, dtype=torch.float64)
    padded = torch.cat([x, 50 * torch.randn(B, amount, D, dtype=torch.float64)], dim=1)
    valid = torch.arange(length + amount).expand(B, -1) < length
    torch.testing.assert_close(layer(padded, valid_BM=valid)[:, :length], layer(x))


@given(cases())
def test_the_chosen_kernel_equals_the_reference(case):
    attend, (q, k, v), valid = case
    with kernels.forced("reference"):
        expected = attend(q, k, v, valid_BM=valid)
    torch.testing.assert_close(attend(q, k, v, valid_BM=valid), expected)
