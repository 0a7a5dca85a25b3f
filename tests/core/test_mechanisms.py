"""The mechanisms of attention (B5 to B31): each test is named after its item and shows what "works" means for it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mirada.core import (
    Additive,
    Attend,
    Attention,
    Averaged,
    Bilinear,
    Concatenated,
    Dot,
    Edges,
    GraphAdditive,
    Grid,
    Mask,
    Rotary,
    ScaledDot,
    Sinusoidal,
    Windows,
    full,
    line,
    plane,
    record,
)  # fmt: skip

B, H, N, M, K, V, D = 2, 3, 5, 7, 11, 13, 17


def qkv(batch=B, heads=H, queries=N, keys=M, dim=K, value_dim=V, dtype=torch.float64):
    shapes = (batch, heads, queries, dim), (batch, heads, keys, dim), (batch, heads, keys, value_dim)
    return tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def attention(*args, **kwargs) -> Attention:
    """In float64, with biases that are not zero."""
    layer = Attention(*args, **kwargs).double()
    for parameter in layer.parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter)
    return layer


def recorded(model: nn.Module, *args, **kwargs) -> torch.Tensor:
    with record(model) as maps:
        model(*args, **kwargs)
    return maps[0]


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


def complete_graph(queries: int, keys: int) -> Edges:
    i, j = torch.meshgrid(torch.arange(queries), torch.arange(keys), indexing="ij")
    return Edges(torch.stack([i.flatten(), j.flatten()]), queries, keys)


@pytest.mark.parametrize("score", [ScaledDot(), Additive(K, K, 19, H), GraphAdditive(K, H)], ids=repr)
def test_B17_dense_attention_is_attention_on_a_complete_graph(score):
    """Self-attention is the complete graph, attention on a memory the complete bipartite graph."""
    dense = attention(Concatenated(D, H, head_dim=K, memory_dim=D), score=score)
    x, y = torch.randn(B, N, D, dtype=torch.float64), torch.randn(B, M, D, dtype=torch.float64)
    torch.testing.assert_close(dense(x, neighbours=complete_graph(N, N)), dense(x, neighbours=full()))
    torch.testing.assert_close(dense(x, y, neighbours=complete_graph(N, M)), dense(x, y, neighbours=full()))


def test_B18_graph_attention_over_neighbour_lists():
    """E17: the sum and the softmax run over j ∈ N_i."""
    edges = Edges(torch.randint(0, M, (2, 19)), M, M)
    layer = attention(Concatenated(D, H, head_dim=K), neighbours=edges)
    x = torch.randn(B, M, D, dtype=torch.float64)
    q, k, v = layer.heads.queries(x), layer.heads.keys(x), layer.heads.values(x)
    out = torch.zeros(B, H, M, K, dtype=torch.float64)
    for i in range(M):
        near = edges.edge_2E[1][edges.edge_2E[0] == i]
        if len(near):
            alpha = (q[:, :, i, None] @ k[:, :, near].mT / math.sqrt(K)).softmax(-1)
            out[:, :, i] = (alpha @ v[:, :, near])[:, :, 0]
    torch.testing.assert_close(layer(x), layer.heads.join(out))

    adjacency = edges.dense(torch.ones(edges.edge_2E.shape[1], dtype=torch.bool))
    torch.testing.assert_close(layer(x, neighbours=Mask(adjacency)), layer(x))

    order = torch.randperm(M)
    renamed = Edges(order.argsort()[edges.edge_2E], M, M)
    torch.testing.assert_close(layer(x[:, order], neighbours=renamed), layer(x)[:, order])


def test_B19_grid_neighbourhood_has_4_6_9_cells_and_equals_unfold():
    """E18: the eight cells around and the cell itself, not those at distance one."""
    height, width = 5, 7
    places = plane(height, width)
    counts = Grid(1).allowed(places, places).sum(-1).view(height, width)
    expected = torch.full((height, width), 9)
    expected[[0, -1]] = 6
    expected[:, [0, -1]] = 6
    expected[[0, 0, -1, -1], [0, -1, 0, -1]] = 4
    assert torch.equal(counts, expected)

    q, k, v = qkv(queries=35, keys=35)

    def around(x: torch.Tensor) -> torch.Tensor:
        on_plane = x.transpose(2, 3).reshape(B * H, -1, height, width)
        return F.unfold(on_plane, 3, padding=1).view(B, H, x.shape[-1], 9, height * width)

    exists = around(torch.ones(B, H, 35, 1, dtype=torch.float64))[:, :, 0]
    logits = torch.einsum("bhnk,bhksn->bhsn", q, around(k)) / math.sqrt(K)
    alpha = logits.masked_fill(exists == 0, -torch.inf).softmax(2)
    expected_out = torch.einsum("bhsn,bhvsn->bhnv", alpha, around(v))
    torch.testing.assert_close(Attend(neighbours=Grid(1))(q, k, v, queries=places, keys=places), expected_out)


def test_B21_cross_attention_of_x_with_itself_is_self_attention():
    """E20: the two lengths may differ."""
    layer = attention(Concatenated(D, H, head_dim=K))
    x, y = torch.randn(B, N, D, dtype=torch.float64), torch.randn(B, M, D, dtype=torch.float64)
    torch.testing.assert_close(layer(x, x), layer(x))
    assert layer(x, y).shape == (B, N, D)
    assert recorded(layer, x, y).shape == (B, H, N, M)


def flops(layer: nn.Module, *args, **kwargs) -> int:
    # The counter knows matrix products, not the fused kernel of a processor.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(*args, **kwargs)
    return counter.get_total_flops()


@pytest.mark.parametrize(("height", "width", "dim", "window"), [(14, 21, 12, 7), (10, 6, 35, 2)])
def test_B22_cost_equals_the_formula_for_full_and_windowed_attention(height, width, dim, window):
    """Ω(MSA) = 4hwC² + 2(hw)²C and Ω(W-MSA) = 4hwC² + 2M²hwC multiplications, softmax not counted: E21."""
    heads = Concatenated(dim, dim // 3 if dim % 3 == 0 else 5)
    cells, x = height * width, torch.randn(1, height * width, dim)
    places = plane(height, width)
    msa = 4 * cells * dim**2 + 2 * cells**2 * dim
    windowed = 4 * cells * dim**2 + 2 * window**2 * cells * dim
    assert flops(Attention(heads), x) == 2 * msa  # a multiplication and an addition
    assert flops(Attention(heads, neighbours=Windows((window, window))), x, places=places) == 2 * windowed


def test_B22_published_numbers_of_swin():
    cells, dim, window = 56 * 56, 96, 7
    x = torch.empty(1, cells, dim, device="meta")
    with torch.device("meta"):
        heads = Concatenated(dim, 3)
        assert flops(Attention(heads), x) == 2 * 2_003_828_736
    assert 4 * cells * dim**2 + 2 * cells**2 * dim == 2_003_828_736
    assert 4 * cells * dim**2 + 2 * window**2 * cells * dim == 145_108_992


def test_B22_cost_of_full_attention_grows_with_the_square_of_the_length():
    layer = Attend()
    cost = {n: flops(layer, *(torch.randn(1, 1, n, 8) for _ in range(3))) for n in (64, 128, 256)}
    assert cost[128] == 4 * cost[64]
    assert cost[256] == 16 * cost[64]


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


@pytest.mark.parametrize("averaged", [False, True], ids=["concatenated", "averaged"])
def test_B24_graph_attention_equals_torch_geometric(averaged):
    """Forward and gradient; one projection of PyG stands for our query, key and value projections."""
    from torch_geometric.nn import GATConv

    num_nodes, out_dim = 13, 7
    their = GATConv(D, out_dim, heads=H, concat=not averaged, dropout=0.0).double()
    nn.init.normal_(their.bias)
    source_target = torch.randint(0, num_nodes, (2, 41))
    source_target = torch.unique(source_target[:, source_target[0] != source_target[1]], dim=1)

    kind = Averaged if averaged else Concatenated
    widths = {"out_dim": H * out_dim} if not averaged else {}
    ours = Attention(kind(D, H, head_dim=out_dim, bias=False, **widths), score=GraphAdditive(out_dim, H)).double()
    with torch.no_grad():
        for projection in (ours.heads.to_q, ours.heads.to_k, ours.heads.to_v):
            projection.weight.copy_(their.lin.weight)
        ours.attend.score.query_weight.copy_(their.att_dst[0, :, :, None])
        ours.attend.score.key_weight.copy_(their.att_src[0, :, :, None])
        if averaged:
            ours.heads.out_bias.copy_(their.bias)
        else:
            ours.heads.to_out.weight.copy_(torch.eye(H * out_dim))
            ours.heads.to_out.bias.copy_(their.bias)
    loops = torch.arange(num_nodes).expand(2, -1)
    edges = Edges(torch.cat([source_target.flip(0), loops], dim=1), num_nodes, num_nodes)

    x = torch.randn(num_nodes, D, dtype=torch.float64, requires_grad=True)
    out, expected = ours(x[None], neighbours=edges)[0], their(x, source_target)
    torch.testing.assert_close(out, expected)
    noise = torch.randn_like(expected)
    their_x, their_W, their_a = torch.autograd.grad(expected, [x, their.lin.weight, their.att_src], noise)
    our_x, *our_W, our_a = torch.autograd.grad(
        out,
        [x, ours.heads.to_q.weight, ours.heads.to_k.weight, ours.heads.to_v.weight, ours.attend.score.key_weight],
        noise,
    )
    torch.testing.assert_close(our_x, their_x)
    torch.testing.assert_close(sum(our_W), their_W)
    torch.testing.assert_close(our_a[..., 0], their_a[0])


def test_B26_a_graph_must_be_given_and_costs_one_message_per_edge():
    edges = Edges(torch.randint(0, M, (2, 19)), M, M)
    x = torch.randn(B, M, D)
    layer = Attention(Concatenated(D, H, head_dim=K), neighbours=edges)
    assert recorded(layer, x).shape == (B, H, edges.edge_2E.shape[1])
    # Every edge is an explicit index besides: two integers that a complete graph does without.
    assert edges.edge_2E.numel() == 2 * edges.edge_2E.shape[1]
    assert edges.edge_2E.shape[1] < M * M


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
