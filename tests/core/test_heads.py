"""How heads are made and joined (E1 to E7), against torch.nn.MultiheadAttention and in closed form."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from mirada.core import Attention, Averaged, Collaborative, Concatenated, ReAttention, causal, record
from mirada.errors import MiradaError

B, H, N, M, K, V, D = 2, 3, 5, 7, 4, 13, 12


def with_biases(layer: nn.Module) -> nn.Module:
    for name, parameter in layer.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    return layer.double()


def recorded(model: nn.Module, *args, **kwargs) -> torch.Tensor:
    with record(model) as maps:
        model(*args, **kwargs)
    return maps[0]


def pair_with_torch(memory_dims: tuple[int, int] | None = None) -> tuple[Attention, nn.MultiheadAttention]:
    """Ours with the weights of theirs. They project keys and values from memories of two widths, we from one."""
    kdim, vdim = (None, None) if memory_dims is None else memory_dims
    theirs = with_biases(nn.MultiheadAttention(D, H, batch_first=True, kdim=kdim, vdim=vdim))
    ours = Attention(Concatenated(D, H, memory_dim=kdim)).double()
    with torch.no_grad():
        if memory_dims is None:
            weights = theirs.in_proj_weight.chunk(3)
        else:
            weights = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
        projections = (ours.heads.to_q, ours.heads.to_k, ours.heads.to_v)
        for projection, weight, bias in zip(projections, weights, theirs.in_proj_bias.chunk(3), strict=True):
            projection.weight.copy_(weight)
            projection.bias.copy_(bias)
        ours.heads.to_out.load_state_dict(theirs.out_proj.state_dict())
    return ours, theirs


def test_E1_one_head_is_attention_and_a_projection():
    layer = with_biases(Attention(Concatenated(D, 1, head_dim=K, value_dim=V)))
    x = torch.randn(B, N, D, dtype=torch.float64)
    q, k, v = layer.heads.to_q(x), layer.heads.to_k(x), layer.heads.to_v(x)
    torch.testing.assert_close(layer(x), layer.heads.to_out((q @ k.mT / math.sqrt(K)).softmax(-1) @ v))


@pytest.mark.parametrize("memory", ["itself", "another", "another width"])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_E2_concatenated_heads_equal_torch(memory, padded):
    """Output, weights of each head, and gradients."""
    width = 17 if memory == "another width" else D
    ours, theirs = pair_with_torch((width, width) if memory == "another width" else None)
    x = torch.randn(B, N, D, dtype=torch.float64, requires_grad=True)
    y = None if memory == "itself" else torch.randn(B, M, width, dtype=torch.float64)
    valid = torch.ones(B, N if y is None else M, dtype=torch.bool)
    if padded:
        valid[1, 3:] = False
    seen = x if y is None else y
    expected, expected_weights = theirs(x, seen, seen, key_padding_mask=~valid, average_attn_weights=False)
    out = ours(x, y, valid_BM=valid if padded else None)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(recorded(ours, x, y, valid_BM=valid if padded else None), expected_weights)

    noise = torch.randn(out.shape, dtype=out.dtype)
    our_grad = torch.autograd.grad(out, [x, ours.heads.to_out.weight, ours.heads.to_q.bias], noise)
    their_grad = torch.autograd.grad(expected, [x, theirs.out_proj.weight, theirs.in_proj_bias], noise)
    for got, want in zip(our_grad, (*their_grad[:2], their_grad[2][:D]), strict=True):
        torch.testing.assert_close(got, want)


def test_E2_causal_equals_torch_in_float32():
    ours, theirs = (layer.float() for layer in pair_with_torch())
    x = torch.randn(B, N, D)
    hidden = torch.ones(N, N, dtype=torch.bool).triu(1)
    expected, _ = theirs(x, x, x, attn_mask=hidden, need_weights=False)
    torch.testing.assert_close(ours(x, neighbours=causal()), expected, atol=1e-6, rtol=1e-5)


def test_E2_number_of_parameters_is_4d2_and_4d():
    count = sum(p.numel() for p in Concatenated(D, H).parameters())
    assert count == 4 * D**2 + 4 * D
    assert sum(p.numel() for p in Concatenated(D, H, bias=False, out_bias=False).parameters()) == 4 * D**2


def test_E3_concatenation_equals_the_sum_of_heads():
    """E41: W is a vertical stack of W_i ∈ R^{d_v × d}."""
    layer = with_biases(Attention(Concatenated(D, H, head_dim=K, value_dim=V)))
    x = torch.randn(B, N, D, dtype=torch.float64)
    heads = recorded(layer, x) @ layer.heads.values(x)
    W = layer.heads.to_out.weight.T.view(H, V, D)
    as_sum = sum(heads[:, h] @ W[h] for h in range(H)) + layer.heads.to_out.bias
    torch.testing.assert_close(layer(x), as_sum)


def test_E4_heads_differ_from_the_start():
    weights = recorded(Attention(Concatenated(D, H)), torch.randn(B, N, D))
    for h in range(1, H):
        assert not torch.allclose(weights[:, 0], weights[:, h], atol=1e-3)


def test_E5_E43_column_convention_equals_rows_only_when_scaled():
    """H = W_v X · softmax((W_k X)ᵀ W_q X / √d_k) with tokens as columns; the softmax runs down each column."""
    layer = with_biases(Attention(Concatenated(D, 1, head_dim=K, value_dim=V, bias=False)))
    x = torch.randn(N, D, dtype=torch.float64)
    W_q, W_k, W_v = layer.heads.to_q.weight, layer.heads.to_k.weight, layer.heads.to_v.weight
    X = x.T
    scores = (W_k @ X).T @ (W_q @ X)
    scaled = W_v @ X @ (scores / math.sqrt(K)).softmax(dim=0)
    rows = (recorded(layer, x[None]) @ layer.heads.values(x[None]))[0, 0]
    torch.testing.assert_close(scaled.T, rows)
    literal = W_v @ X @ scores.softmax(dim=0)  # E43: 1/√d_k is missing
    assert not torch.allclose(literal.T, rows, atol=1e-3)
    along_rows = W_v @ X @ (scores / math.sqrt(K)).softmax(dim=1)
    assert not torch.allclose(along_rows.T, rows, atol=1e-3)


def test_E6_collaborative_logits_are_the_mixed_sum_over_shared_channels():
    heads = Collaborative(D, H, shared_dim=11).double()
    layer = Attention(heads)
    x = torch.randn(B, N, D, dtype=torch.float64)
    q, k, content = heads.to_q(x), heads.to_k(x), heads.to_content(x)
    logits = torch.einsum("bnl,hl,bml->bhnm", q, heads.mixing, k) + content.mT[:, :, None, :]
    torch.testing.assert_close(recorded(layer, x), (logits / math.sqrt(11 / H)).softmax(-1))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shared_dim", [H * K, H * K + 5])
@pytest.mark.parametrize("memory_dim", [D, 17])
def test_E6_collaborative_heads_with_block_mixing_equal_concatenated(bias, shared_dim, memory_dim):
    source = with_biases(Attention(Concatenated(D, H, memory_dim=memory_dim, bias=bias)))
    heads = Collaborative(D, H, memory_dim=memory_dim, shared_dim=shared_dim, bias=bias).double()
    heads.load_concatenated(source.heads)
    x, y = torch.randn(B, N, D, dtype=torch.float64), torch.randn(B, M, memory_dim, dtype=torch.float64)
    ours = Attention(heads)
    torch.testing.assert_close(ours(x, y), source(x, y), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(recorded(ours, x, y), recorded(source, x, y), atol=1e-6, rtol=1e-6)


def test_E6_collaborative_needs_room_for_an_exact_copy():
    with pytest.raises(MiradaError, match=f"shared_dim=11 is below {H}·{K}"):
        Collaborative(D, H, shared_dim=11).load_concatenated(Concatenated(D, H))


@pytest.mark.parametrize("shared_dim", [5, 12, 23])
def test_E6_number_of_parameters(shared_dim):
    """(2·D + H)·K̃ where concatenated heads have 2·D·(H·K)."""
    heads = Collaborative(D, H, shared_dim=shared_dim)
    count = heads.to_q.weight.numel() + heads.to_k.weight.numel() + heads.mixing.numel()
    assert count == (2 * D + H) * shared_dim
    source = Concatenated(D, H)
    assert source.to_q.weight.numel() + source.to_k.weight.numel() == 2 * D * H * K


def test_E6_error_of_the_shared_projection_decreases_with_its_width():
    """The tensor W^Q_h W^K_hᵀ of all heads, as Σ_l of K̃ rank-one terms by alternating least squares."""
    source = Concatenated(D, H).double()
    W_q, W_k = (layer.weight.detach().view(H, K, D) for layer in (source.to_q, source.to_k))
    form_HDD = torch.einsum("hkd,hke->hde", W_q, W_k)
    errors = [cp_error(form_HDD, rank) for rank in (2, 5, 8, 12)]
    assert all(later < earlier for earlier, later in pairwise(errors))
    assert errors[-1] < 0.1 * errors[0]


def cp_error(tensor_HDE: torch.Tensor, rank: int, num_rounds: int = 200) -> float:
    """Relative error of tensor ≈ Σ_l m_hl a_dl b_el."""
    torch.manual_seed(0)
    factors = [torch.randn(size, rank, dtype=tensor_HDE.dtype) for size in tensor_HDE.shape]
    for step in range(3 * num_rounds):
        mode = step % 3
        one, other = (factors[m] for m in range(3) if m != mode)
        design = torch.einsum("ar,br->abr", one, other).flatten(0, 1)
        unfolded = tensor_HDE.movedim(mode, 0).flatten(1)
        factors[mode] = torch.linalg.lstsq(design, unfolded.T, driver="gelsd").solution.T
    rebuilt = torch.einsum("hr,dr,er->hde", *factors)
    return ((rebuilt - tensor_HDE).norm() / tensor_HDE.norm()).item()


def test_E7_heads_specialise_when_the_task_has_two_things_to_look_at():
    """Mean pairwise Jensen–Shannon divergence between heads grows with training from almost nothing."""
    layer = Attention(Concatenated(D, 2, head_dim=K))
    nn.init.normal_(layer.heads.to_q.weight, std=0.01)
    first = torch.randn(3, D)
    optimiser = torch.optim.Adam(layer.parameters(), 0.02)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(64, N, D)
        marked = torch.rand(64, N).argsort(1)[:, :2]
        x[torch.arange(64)[:, None], marked] += 3 * first[:2]
        shift = x[torch.arange(64), marked[:, 0]].roll(1, -1) - x[torch.arange(64), marked[:, 1]]
        return x, shift[:, None].expand(-1, N, -1)

    x, _ = batch()
    before = divergence(recorded(layer, x))
    for _ in range(150):
        inputs, target = batch()
        loss = (layer(inputs) - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = divergence(recorded(layer, x))
    assert 0 <= before < 0.03
    assert after > 0.1


def divergence(weights_BHNM: torch.Tensor) -> float:
    one, other = weights_BHNM[:, 0], weights_BHNM[:, 1]
    entropies = [torch.special.entr(p).sum(-1) for p in ((one + other) / 2, one, other)]
    return (entropies[0] - (entropies[1] + entropies[2]) / 2).mean().item()


def test_averaged_heads_are_their_mean():
    layer = with_biases(Attention(Averaged(D, H, head_dim=K, value_dim=V)))
    x = torch.randn(B, N, D, dtype=torch.float64)
    heads = recorded(layer, x) @ layer.heads.values(x)
    torch.testing.assert_close(layer(x), heads.mean(1) + layer.heads.out_bias)
    assert layer(x).shape == (B, N, V)


def test_re_attention_mixes_weights_across_heads():
    layer = Attention(ReAttention(D, H)).double().eval()
    plain = Attention(Concatenated(D, H)).double()
    plain.heads.load_state_dict(layer.heads.state_dict(), strict=False)
    x = torch.randn(B, N, D, dtype=torch.float64)
    mix = layer.attend.mix
    with torch.no_grad():
        mix.norm.running_mean.copy_(torch.randn(H))
        mix.norm.running_var.copy_(torch.rand(H) + 0.5)
    mixed = torch.einsum("gh,bhnm->bgnm", mix.theta.weight[:, :, 0, 0], recorded(plain, x))
    mixed = mixed + mix.theta.bias.view(-1, 1, 1)
    mean, deviation = (t.view(-1, 1, 1) for t in (mix.norm.running_mean, (mix.norm.running_var + mix.norm.eps).sqrt()))
    expected = (mixed - mean) / deviation
    torch.testing.assert_close(recorded(layer, x), expected)
    torch.testing.assert_close(layer(x), layer.heads.join(expected @ layer.heads.values(x)))


def test_re_attention_stays_within_the_neighbourhood():
    """Θ has a bias and the normalisation a shift: neither may reach the future or padding."""
    layer = Attention(ReAttention(D, H), neighbours=causal()).double()
    nn.init.normal_(layer.attend.mix.norm.bias)
    x = torch.randn(B, N, D, dtype=torch.float64)
    valid = torch.ones(B, N, dtype=torch.bool)
    valid[1, 3:] = False
    hidden = ~(torch.ones(N, N).tril().bool() & valid[:, None, None, :]).expand(B, H, N, N)
    assert not recorded(layer, x, valid_BM=valid)[hidden].any()

    layer.eval()
    changed = x.clone()
    changed[:, 3:] += 1
    torch.testing.assert_close(layer(changed)[:, :3], layer(x)[:, :3])


@pytest.mark.parametrize("kind", [Concatenated, Collaborative])
def test_query_heads_may_share_key_and_value_heads(kind):
    grouped = Attention(kind(D, 4, num_key_heads=2)).double()
    x = torch.randn(B, N, D, dtype=torch.float64)
    weights, values = recorded(grouped, x), grouped.heads.values(x)
    assert values.shape[1] == 2
    heads = torch.stack([weights[:, h] @ values[:, h // 2] for h in range(4)], dim=1)
    torch.testing.assert_close(grouped(x), grouped.heads.join(heads))


def test_widths_that_do_not_fit_are_refused():
    with pytest.raises(MiradaError, match="dim=13 cannot be shared by num_heads=3"):
        Concatenated(13, 3)
    with pytest.raises(MiradaError, match="num_heads=3 is not a multiple of num_key_heads=2"):
        Concatenated(12, 3, num_key_heads=2)
