"""The mechanisms of attention (B5 to B31): each test is named after its item and shows what "works" means for it.

Those on graphs are in test_graphs, the cost is in test_cost.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.core import (
    Additive,
    Attend,
    Attention,
    Bilinear,
    Concatenated,
    Dot,
    Mask,
    Rotary,
    ScaledDot,
    Sinusoidal,
    line,
)  # fmt: skip
from tests.core.layers import B, D, H, K, M, N, V, attention, qkv, recorded


def test_B5_dot_score_equals_einsum():
    q, k, _ = qkv()
    torch.testing.assert_close(Dot()(q, k), torch.einsum("bhnk,bhmk->bhnm", q, k))
    with pytest.raises(RuntimeError):
        Dot()(q, k[..., :-1])


def test_B6_bilinear_with_identity_is_dot_and_differentiable():
    q, k, _ = qkv()
    score = Bilinear(K, K, H).double()
    with torch.no_grad():
        score.weight.copy_(torch.eye(K))
    torch.testing.assert_close(score(q, k), Dot()(q, k))

    uneven = Bilinear(2, 3).double()
    s, h = torch.randn(1, 1, 2, 2, dtype=torch.float64), torch.randn(1, 1, 3, 3, dtype=torch.float64)
    expected = torch.stack([torch.stack([a @ uneven.weight[0] @ b for b in h[0, 0]]) for a in s[0, 0]])
    torch.testing.assert_close(uneven(s, h)[0, 0], expected)
    assert torch.autograd.gradcheck(uneven, (s.requires_grad_(), h.requires_grad_()))


def test_B7_additive_split_form_equals_concatenated_form():
    """E9: the bias is added to W[s; h], not to h."""
    s, h = torch.randn(B, 1, N, K, dtype=torch.float64), torch.randn(B, 1, M, D, dtype=torch.float64)
    score = Additive(K, D, 19, bias=True).double()
    nn.init.normal_(score.bias)
    W = torch.cat([score.query_weight[0], score.key_weight[0]])
    pairs = torch.cat([s[:, 0, :, None].expand(-1, -1, M, -1), h[:, 0, None].expand(-1, N, -1, -1)], dim=-1)
    concatenated = torch.tanh(pairs @ W + score.bias[0]) @ score.v[0, :, 0]
    torch.testing.assert_close(score(s, h)[:, 0], concatenated)

    original = Additive(K, D, 19).double()
    assert original.bias is None
    expected = torch.tanh((s @ original.query_weight)[..., :, None, :] + (h @ original.key_weight)[..., None, :, :])
    torch.testing.assert_close(original(s, h), (expected @ original.v)[..., 0])


def test_B9_projections_have_their_own_widths():
    heads = Concatenated(D, H, head_dim=K, value_dim=V, memory_dim=23, out_dim=29)
    x, y = torch.randn(B, N, D), torch.randn(B, M, 23)
    assert heads.queries(x).shape == (B, H, N, K)
    assert heads.keys(y).shape == (B, H, M, K)
    assert heads.values(y).shape == (B, H, M, V)
    assert Attention(heads)(x, y).shape == (B, N, 29)
    torch.testing.assert_close(heads.values(y)[:, 1], y @ heads.to_v.weight[V : 2 * V].T)


def test_B10_scaled_dot_product_equals_torch():
    q, k, v = qkv()
    torch.testing.assert_close(Attend()(q, k, v), F.scaled_dot_product_attention(q, k, v))
    allowed = torch.rand(N, M) < 0.6
    allowed[:, 0] = True
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    torch.testing.assert_close(Attend(neighbours=Mask(allowed))(q, k, v), expected)


@pytest.mark.parametrize(("dim", "unscaled"), [(16, 3.997), (64, 7.93), (256, 16.3), (512, 22.8)])
def test_B10_E11_dividing_by_the_width_instead_of_its_root_is_wrong(dim, unscaled):
    """E11: logits of normal q and k have deviation 1 with √d_k; softmax(QKᵀ/d_k) has 1/√d_k, hardly any attention."""
    q, k = (torch.randn(1, 1, 1000, dim) for _ in range(2))
    raw = Dot()(q, k).std()
    assert raw.item() == pytest.approx(unscaled, rel=0.03)
    assert ScaledDot()(q, k).std().item() == pytest.approx(1.0, rel=0.03)
    literal = ScaledDot(1 / dim)(q, k)
    assert literal.std().item() == pytest.approx(dim**-0.5, rel=0.03)
    if dim == 64:
        assert literal.std().item() == pytest.approx(0.12, abs=0.01)
        assert literal.softmax(-1).max() < 2e-3 < ScaledDot()(q, k).softmax(-1).amax(-1).min()


def test_B10_E12_scale_is_that_of_the_head_not_of_the_model():
    layer = attention(Concatenated(D, 1, head_dim=K), score=None)
    x = torch.randn(B, N, D, dtype=torch.float64)
    q, k = layer.heads.queries(x), layer.heads.keys(x)
    weights = recorded(layer, x)
    torch.testing.assert_close(weights, (q @ k.mT / math.sqrt(K)).softmax(-1))
    assert not torch.allclose(weights, (q @ k.mT / math.sqrt(D)).softmax(-1), atol=1e-3)


def test_B11_six_steps_per_token_equal_the_matrix_form():
    layer = attention(Concatenated(D, 1, head_dim=K, value_dim=V))
    x = torch.randn(1, N, D, dtype=torch.float64)
    heads, rows = layer.heads, []
    with torch.no_grad():
        for i in range(N):
            query = heads.to_q(x[0, i])  # 1: query, keys, values
            keys, values = [heads.to_k(token) for token in x[0]], [heads.to_v(token) for token in x[0]]
            scores = [float(query @ key) for key in keys]  # 2: dot products
            scores = [score / K**0.5 for score in scores]  # 3: divided by √d_k
            total = sum(math.exp(score) for score in scores)
            weights = [math.exp(score) / total for score in scores]  # 4: softmax
            weighted = [weight * value for weight, value in zip(weights, values, strict=True)]  # 5: times the values
            rows.append(heads.to_out(sum(weighted)))  # 6: sum
    torch.testing.assert_close(layer(x)[0], torch.stack(rows))


def test_B12_rows_of_queries_sum_to_one_not_columns():
    """E14: the query has index i and the softmax runs over j."""
    weights = recorded(attention(Concatenated(D, H, head_dim=K)), torch.randn(B, N, D, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, N, dtype=torch.float64))
    assert not torch.allclose(weights.sum(-2), torch.ones(B, H, N, dtype=torch.float64), atol=1e-3)
    assert ((weights > 0) & (weights < 1)).all()


def test_B13_one_bilinear_form_equals_queries_and_keys():
    layer = attention(Concatenated(D, 1, head_dim=K, bias=False))
    x = torch.randn(B, N, D, dtype=torch.float64)
    W = layer.heads.to_q.weight.T @ layer.heads.to_k.weight  # x_iᵀ W x_j, with W_qᵀ W_k in column convention
    assert torch.linalg.matrix_rank(W) == K < D
    expected = (x @ W @ x.mT / math.sqrt(K)).softmax(-1)
    torch.testing.assert_close(recorded(layer, x)[:, 0], expected)

    score = Bilinear(D, D).double()
    with torch.no_grad():
        score.weight.copy_(W / math.sqrt(K))
    single = Attend(score)
    torch.testing.assert_close(recorded(single, *(x[:, None],) * 3)[:, 0], expected)


def test_B14_row_of_the_matrix_form_equals_the_explicit_sum():
    layer = attention(Concatenated(D, H, head_dim=K, value_dim=V))
    x = torch.randn(1, N, D, dtype=torch.float64)
    weights, values = recorded(layer, x)[0], layer.heads.values(x)[0]
    for i in range(N):
        row = torch.cat([sum(weights[h, i, j] * values[h, j] for j in range(N)) for h in range(H)])
        torch.testing.assert_close(layer(x)[0, i], layer.heads.to_out(row))


def test_B15_softmax_runs_down_the_columns_of_a_table_with_queries_as_columns():
    """A table of key rows and query columns is the transpose of ours: E16.

    Of the published 6 × 8 table only the weights are known, so logits are taken that have them: for the query
    "creature" the keys fluffy and blue (0.4013 : 0.5987), for "roamed" and "verdant" the keys the and creature.
    """
    keys = ["a", "fluffy", "blue", "creature", "roamed", "the"]
    queries = ["creature", "roamed", "verdant"]
    hidden = -90.0
    table_KQ = torch.full((6, 3), hidden)
    table_KQ[keys.index("fluffy"), 0], table_KQ[keys.index("blue"), 0] = 0.0, 0.4
    table_KQ[keys.index("the"), 1], table_KQ[keys.index("creature"), 1] = 0.0, -4.9
    table_KQ[keys.index("the"), 2], table_KQ[keys.index("creature"), 2] = 0.0, -4.9
    q, k = torch.eye(3)[None, None], table_KQ[None, None]  # the dot product of a one-hot query with key j is table[j]
    weights_QK = recorded(Attend(Dot()), q, k, k)[0, 0]
    assert weights_QK[0, keys.index("fluffy")].item() == pytest.approx(0.4013, abs=1e-4)
    assert weights_QK[0, keys.index("blue")].item() == pytest.approx(0.5987, abs=1e-4)
    for query in ("roamed", "verdant"):
        assert weights_QK[queries.index(query), keys.index("the")].item() == pytest.approx(0.9926, abs=1e-4)
        assert weights_QK[queries.index(query), keys.index("creature")].item() == pytest.approx(0.0074, abs=1e-4)
    torch.testing.assert_close(weights_QK.T, table_KQ.softmax(dim=0))
    assert not torch.allclose(weights_QK.T, table_KQ.softmax(dim=1), atol=0.1)


def test_B16_h_negro_is_the_convex_combination_of_the_lecture():
    words = ["el", "gato", "negro", "salta", "la", "cuerda"]
    weights = torch.tensor([0.025, 0.4, 0.5, 0.025, 0.025, 0.025], dtype=torch.float64)
    assert weights.sum().item() == pytest.approx(1.0, abs=1e-12)
    values = torch.randn(1, 1, len(words), V, dtype=torch.float64)
    # A query along 1 whose keys are log α gives exactly the weights α.
    q, k = torch.ones(1, 1, 1, 1, dtype=torch.float64), weights.log()[None, None, :, None]
    h_negro = Attend(Dot())(q, k, values)[0, 0, 0]
    expected = sum(weight * value for weight, value in zip(weights, values[0, 0], strict=True))
    torch.testing.assert_close(h_negro, expected)
    assert (values.amin(2) <= h_negro).all() and (h_negro <= values.amax(2)).all()


def test_B21_cross_attention_of_x_with_itself_is_self_attention():
    """E20: the two lengths may differ."""
    layer = attention(Concatenated(D, H, head_dim=K))
    x, y = torch.randn(B, N, D, dtype=torch.float64), torch.randn(B, M, D, dtype=torch.float64)
    torch.testing.assert_close(layer(x, x), layer(x))
    assert layer(x, y).shape == (B, N, D)
    assert recorded(layer, x, y).shape == (B, H, N, M)


def test_B23_scaling_keeps_the_softmax_from_saturating():
    """At d_k = 512 the unscaled softmax picks one key, and almost no gradient reaches the logits of the others."""
    q, k = (torch.randn(1, 1, 64, 512, dtype=torch.float64) for _ in range(2))

    def entropy_and_gradient(score: nn.Module) -> tuple[float, float]:
        logits = score(q, k)[0, 0]
        weights = logits.softmax(-1)
        slope = torch.stack([torch.autograd.functional.jacobian(lambda row: row.softmax(-1), row) for row in logits])
        return torch.special.entr(weights).sum(-1).mean().item(), slope.abs().median().item()

    entropy, gradient = entropy_and_gradient(ScaledDot())
    saturated_entropy, saturated_gradient = entropy_and_gradient(Dot())
    assert entropy > 0.8 * math.log(64)
    assert saturated_entropy < 0.2 * math.log(64)
    assert gradient > 1e3 * saturated_gradient


def test_B28_without_positions_attention_is_blind_to_order():
    x, order = torch.randn(B, N, D, dtype=torch.float64), torch.randperm(N)
    blind = attention(Concatenated(D, H, head_dim=K))
    torch.testing.assert_close(blind(x[:, order]), blind(x)[:, order])

    turning = attention(Concatenated(D, H, head_dim=4), position=Rotary(4))
    assert not torch.allclose(turning(x[:, order]), turning(x)[:, order], atol=1e-3)
    added = Sinusoidal(16)
    x = torch.randn(B, N, 16, dtype=torch.float64)
    layer = attention(Concatenated(16, 2))
    seen = [layer(added(tokens, line(N))) for tokens in (x, x[:, order])]
    assert not torch.allclose(seen[1], seen[0][:, order], atol=1e-3)


def test_B31_six_words_give_six_outputs_each_near_its_compatible_values():
    """E26: six outputs, #1 to #6. Near key and query vectors are compatible: the weight grows with their product."""
    words = ["el", "gato", "negro", "salta", "la", "cuerda"]
    meaning = torch.eye(6)[None, None] * 8  # keys: what each word means
    context = torch.eye(6)[[1, 2, 1, 5, 5, 3]][None, None]  # queries: what each word looks for
    weights = recorded(Attend(Dot()), context, meaning, torch.randn(1, 1, 6, V))[0, 0]
    out = Attend(Dot())(context, meaning, torch.randn(1, 1, 6, V))
    assert out.shape[2] == len(words) == 6
    assert [words[j] for j in weights.argmax(-1)] == ["gato", "negro", "gato", "cuerda", "cuerda", "salta"]
    assert (weights.amax(-1) > 0.99).all()
