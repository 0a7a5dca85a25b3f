"""Who may look at whom: masks (F1 to F4), the sparse patterns (B25), and rules that combine."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from mirada.core import (
    Attend,
    Attention,
    Band,
    Concatenated,
    Edges,
    Fixed,
    Grid,
    Mask,
    Mirrored,
    Neighbours,
    NotSelf,
    Strided,
    Windows,
    causal,
    full,
    line,
    plane,
    record,
    window,
)  # fmt: skip
from mirada.errors import MiradaError

B, H, N, K, D = 2, 3, 7, 5, 11


def mask_of(rule: Neighbours, length: int) -> torch.Tensor:
    return rule.allowed(line(length), line(length))


def rows(picture: str) -> torch.Tensor:
    """x where i may look at j."""
    return torch.tensor([[mark == "x" for mark in row] for row in picture.split()])


def test_F1_causal_mask_equals_is_causal():
    q, k, v = (torch.randn(B, H, N, K, dtype=torch.float64) for _ in range(3))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(Attend(neighbours=causal())(q, k, v), expected)
    assert torch.equal(mask_of(causal(), N), torch.ones(N, N).tril().bool())


@pytest.mark.parametrize("rule", [causal(), window(2) & causal(), Strided(3), Fixed(3, 1)], ids=str)
def test_F1_later_tokens_change_nothing(rule):
    layer = Attention(Concatenated(D, H, head_dim=K), neighbours=rule)
    x = torch.randn(B, 13, D)
    changed = x.clone()
    changed[:, 7:] = torch.randn(B, 6, D)
    assert torch.equal(layer(changed)[:, :7], layer(x)[:, :7])
    assert not torch.allclose(layer(changed)[:, 7:], layer(x)[:, 7:])


def test_F1_E45_hiding_the_future_is_not_replacing_a_token():
    """A replaced token is still looked at; a hidden one has weight zero."""
    layer = Attention(Concatenated(D, H, head_dim=K), neighbours=causal())
    x = torch.randn(B, N, D)
    replaced = x.clone()
    replaced[:, 4] = 0.0
    with record(layer) as maps:
        layer(replaced)
    assert (maps[0][:, :, 5:, 4] > 0).all()
    assert torch.equal(maps[0][:, :, :4, 4:], torch.zeros(B, H, 4, 3))


@pytest.mark.parametrize("rule", [full(), causal(), window(2), Strided(3), Fixed(3, 1), NotSelf()], ids=str)
def test_F3_padding_changes_nothing(rule):
    """Neither the amount of padding nor what stands in it; the gradient does not reach it."""
    layer = Attention(Concatenated(D, H, head_dim=K), neighbours=rule).double()
    x = torch.randn(B, N, D, dtype=torch.float64)
    expected = layer(x)
    for amount in (1, 6):
        padding = torch.full((B, amount, D), 1e4, dtype=torch.float64, requires_grad=True)
        valid = torch.ones(B, N + amount, dtype=torch.bool)
        valid[:, N:] = False
        out = layer(torch.cat([x, padding], 1), valid_BM=valid)[:, :N]
        torch.testing.assert_close(out, expected)
        (grad,) = torch.autograd.grad(out.sum(), padding)
        assert torch.equal(grad, torch.zeros_like(grad))


def test_F3_a_sample_of_nothing_but_padding_is_zero_not_nan():
    layer = Attention(Concatenated(D, H, head_dim=K, out_bias=False))
    x = torch.randn(B, N, D, requires_grad=True)
    valid = torch.ones(B, N, dtype=torch.bool)
    valid[1] = False
    out = layer(x, valid_BM=valid)
    assert torch.equal(out[1], torch.zeros(N, D))
    (grad,) = torch.autograd.grad(out.square().sum(), x)
    assert grad.isfinite().all()


def test_B25_strided_is_the_window_and_every_l_th():
    expected = rows("x...... xx..... xxx.... xxxx... .xxxx.. ..xxxx. x..xxxx")
    assert torch.equal(mask_of(Strided(3), 7), expected)


def test_B25_fixed_is_the_block_and_the_summary_columns():
    expected = rows("x....... xx...... xxx..... ..xx.... ..xxx... ..xxxx.. ..x..xx. ..x..xxx")
    assert torch.equal(mask_of(Fixed(3, 1), 8), expected)


@pytest.mark.parametrize(("length", "stride", "summary"), [(29, 5, 1), (64, 8, 3), (7, 11, 2)])
def test_B25_masks_equal_the_sets_of_the_paper(length, stride, summary):
    for i in range(length):
        local = {j for j in range(length) if max(0, i - stride) <= j <= i}
        column = {j for j in range(i + 1) if (i - j) % stride == 0}
        block = {j for j in range(i + 1) if j // stride == i // stride}
        summaries = {j for j in range(i + 1) if j % stride >= stride - summary}
        assert set(mask_of(Strided(stride), length)[i].nonzero()[:, 0].tolist()) == local | column
        assert set(mask_of(Fixed(stride, summary), length)[i].nonzero()[:, 0].tolist()) == block | summaries


def reached_in_two_steps(allowed: torch.Tensor) -> torch.Tensor:
    return (allowed.double() @ allowed.double()) > 0


def test_B25_E22_two_layers_reach_every_earlier_token_only_with_both_halves():
    """E22: "strided" as the window max(0, i−k) ≤ j ≤ i alone is the local half; it does not reach far."""
    length = 64
    everything_before = torch.ones(length, length).tril().bool()
    stride = math.isqrt(length)
    assert torch.equal(reached_in_two_steps(mask_of(Strided(stride), length)), everything_before)
    assert torch.equal(
        reached_in_two_steps(mask_of(Fixed(stride, 1), length)) | mask_of(full(), length).triu(),
        mask_of(full(), length),
    )
    literal = mask_of(window(stride) & causal(), length)
    assert not torch.equal(reached_in_two_steps(literal), everything_before)
    assert not reached_in_two_steps(literal)[-1, 0]
    assert (mask_of(Strided(stride), length) & ~literal).any()


def test_B25_number_of_pairs_is_linear_in_the_length_times_the_width():
    reach = 8
    assert mask_of(window(reach) & causal(), 500).sum() <= 500 * (reach + 1)
    for length in (64, 256, 1024):
        stride = math.isqrt(length)
        assert mask_of(Strided(stride), length).sum() <= length * (stride + 1 + length // stride)
        assert mask_of(Fixed(stride, 1), length).sum() <= length * (stride + length // stride)


def test_F4_graph_masks_equal_written_out_masks():
    allowed = torch.rand(N, N) < 0.4
    q, k, v = (torch.randn(B, H, N, K, dtype=torch.float64) for _ in range(3))
    edges = Edges(allowed.nonzero().T, N, N)
    torch.testing.assert_close(Attend(neighbours=edges)(q, k, v), Attend(neighbours=Mask(allowed))(q, k, v))
    assert torch.equal(mask_of(edges, N), allowed)


def test_windows_are_tiles_and_shifted_windows_do_not_meet_around_the_edge():
    places = plane(4, 4)
    tiles = Windows((2, 2)).allowed(places, places)
    assert (tiles.sum(-1) == 4).all()
    assert tiles[0].nonzero()[:, 0].tolist() == [0, 1, 4, 5]
    shifted = Windows((2, 2), (1, 1)).allowed(places, places)
    assert shifted[0].nonzero()[:, 0].tolist() == [0]  # the corner is alone: Swin's mask after the roll
    assert shifted[1].nonzero()[:, 0].tolist() == [1, 2]
    assert shifted[5].nonzero()[:, 0].tolist() == [5, 6, 9, 10]


@pytest.mark.parametrize("rule", [Grid(1), Windows((2, 2), (1, 1))], ids=str)
def test_tokens_without_a_place_see_and_are_seen_by_all(rule):
    with_class, without = plane(3, 5, num_extra=1), plane(3, 5)
    allowed = rule.allowed(with_class, with_class)
    assert allowed[0].all() and allowed[:, 0].all()
    assert torch.equal(allowed[1:, 1:], rule.allowed(without, without))


def test_rules_combine_by_intersection_and_union():
    assert window(3) & causal() == Band(3, 0)
    assert causal() & full() == causal()
    assert Band(4, None) & Band(None, 2) & window(3) == Band(3, 2)
    local, far = window(1) & causal(), Strided(3)
    assert torch.equal(mask_of(local | far, N), mask_of(local, N) | mask_of(far, N))
    assert torch.equal(mask_of(NotSelf() & far, N), mask_of(far, N) & ~torch.eye(N, dtype=torch.bool))
    assert torch.equal(mask_of(causal() & NotSelf(), N), torch.ones(N, N).tril(-1).bool())


def test_rules_that_cannot_be_are_refused():
    with pytest.raises(MiradaError, match="both must be ≥ 0"):
        window(-1)
    with pytest.raises(MiradaError, match="leaves the 3 × 3 nodes"):
        Edges(torch.tensor([[0, 3], [1, 1]]), 3, 3)
    with pytest.raises(MiradaError, match="leaves the 3 × 3 nodes"):
        Edges(torch.tensor([[0, -1], [1, 1]]), 3, 3)


def test_an_edge_given_twice_counts_once():
    once, twice = (Edges(torch.tensor(edge), N, N) for edge in ([[0, 0], [1, 2]], [[0, 0, 0], [1, 2, 1]]))
    x = torch.randn(B, N, D)
    layer = Attention(Concatenated(D, H, head_dim=K))
    assert torch.equal(layer(x, neighbours=twice), layer(x, neighbours=once))


def test_masks_may_differ_by_sample_and_head():
    allowed = torch.rand(B, H, N, N) < 0.5
    with record(layer := Attention(Concatenated(D, H, head_dim=K), neighbours=Mask(allowed))) as maps:
        layer(torch.randn(B, N, D))
    assert torch.equal(maps[0] > 0, allowed)


@pytest.mark.parametrize("rule", [causal(), Strided(3), Fixed(3, 1), Band(1, 4)], ids=str)
def test_mirrored_rule_is_the_transposed_mask_also_between_other_queries_and_keys(rule):
    assert torch.equal(mask_of(Mirrored(rule), 13), mask_of(rule, 13).T)
    queries, keys = line(5, start=3), line(11)
    assert torch.equal(Mirrored(rule).allowed(queries, keys), mask_of(rule, 11).T[3:8])
