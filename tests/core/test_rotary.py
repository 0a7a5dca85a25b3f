"""Rotary positions: rotations, the relative property, equality with other libraries in both conventions (C9)."""

from __future__ import annotations

import math

import pytest
import torch
from rotary_embedding_torch import RotaryEmbedding
from torch import Tensor

from mirada.core import Places, Rotary, lattice, line, plane
from mirada.errors import MiradaError

B, H, N, K, D = 2, 3, 13, 12, 17
CONVENTIONS = ("interleaved", "half")


def matrix(rotary: Rotary, place: int, width: int = K) -> Tensor:
    """R_i, read off by turning the unit vectors."""
    return rotary(torch.eye(width, dtype=torch.float64)[:, None], line(1, start=place))[:, 0].T


def block(angle: float) -> Tensor:
    return torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64)


def literal_block(angle: float) -> Tensor:
    """With the sign of the last row as the slide has it."""
    return torch.tensor([[math.cos(angle), -math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64)


def test_C9_rotary_matrix_is_block_diagonal_with_the_published_angles():
    """θ_m = base^{−2(m−1)/K}, m = 1 … K/2."""
    expected = torch.block_diag(*(block(5 * 10_000 ** (-2 * (m - 1) / K)) for m in range(1, K // 2 + 1)))
    torch.testing.assert_close(matrix(Rotary(K), 5), expected)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_C9_rotary_matrix_is_orthogonal(convention):
    R = matrix(Rotary(K, convention=convention), 7)
    torch.testing.assert_close(R.T @ R, torch.eye(K, dtype=torch.float64))
    assert torch.linalg.det(R).item() == pytest.approx(1)


def test_C9_rotary_conventions_differ_by_a_permutation_of_channels():
    order = torch.arange(K).view(2, K // 2).T.flatten()  # 0, K/2, 1, K/2 + 1, …
    half, interleaved = (matrix(Rotary(K, convention=convention), 3) for convention in ("half", "interleaved"))
    torch.testing.assert_close(half[order][:, order], interleaved)
    assert (half - interleaved).abs().max() > 0.1


def test_E33_literal_block_is_not_a_rotation():
    assert torch.linalg.det(literal_block(0.7)).item() == pytest.approx(0.16997, abs=1e-5)
    assert torch.linalg.det(literal_block(0.7)).item() == pytest.approx(math.cos(2 * 0.7))
    assert torch.linalg.det(block(0.7)).item() == pytest.approx(1)
    product = literal_block(0.7).T @ literal_block(0.7)
    assert (product - torch.eye(2)).abs().max() > 0.9


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_C9_rotary_logit_depends_on_the_offset_only(convention):
    rotary = Rotary(K, convention=convention)
    q, k = torch.randn(2, K, dtype=torch.float64)

    def logit(i: int, j: int) -> float:
        return (rotary(q[None], line(1, start=i)) @ rotary(k[None], line(1, start=j)).T).item()

    for i, j in [(0, 0), (0, 5), (11, 2)]:
        assert logit(i, j) == pytest.approx(logit(i + 1_000, j + 1_000), abs=1e-6)
    assert abs(logit(0, 5) - logit(5, 0)) > 1e-3  # before is not after


def test_E34_logit_is_x_Wq_R_Wk_x():
    """q_iᵀ k_j = x_iᵀ W_qᵀ R_{j−i} W_k x_j, with both transposes and with Θ."""
    rotary, (W_q, W_k) = Rotary(K), torch.randn(2, K, D, dtype=torch.float64)
    x_i, x_j = torch.randn(2, D, dtype=torch.float64)
    i, j = 4, 9
    logit = (matrix(rotary, i) @ W_q @ x_i) @ (matrix(rotary, j) @ W_k @ x_j)
    torch.testing.assert_close(logit, x_i @ W_q.T @ matrix(rotary, j - i) @ W_k @ x_j)


def test_E32_literal_key_from_Wq_is_not_the_relative_form():
    """With k_j = R_j W_q x_j the keys never see W_k, so the logit is not the one the next line of the slide claims."""
    rotary, (W_q, W_k) = Rotary(K), torch.randn(2, K, D, dtype=torch.float64)
    x_i, x_j = torch.randn(2, D, dtype=torch.float64)
    i, j = 4, 9
    q = matrix(rotary, i) @ W_q @ x_i
    claimed = x_i @ W_q.T @ matrix(rotary, j - i) @ W_k @ x_j
    torch.testing.assert_close(q @ (matrix(rotary, j) @ W_k @ x_j), claimed)
    assert (q @ (matrix(rotary, j) @ W_q @ x_j) - claimed).abs() > 0.1
    # And at equal places it is symmetric: who looks and who is seen could be exchanged.
    same = [(W_q @ one) @ (W_q @ other) for one, other in ((x_i, x_j), (x_j, x_i))]
    torch.testing.assert_close(*same)
    assert ((W_q @ x_i) @ (W_k @ x_j) - (W_q @ x_j) @ (W_k @ x_i)).abs() > 0.1


# --- equality with other libraries, output and gradient ---


def assert_same_with_gradient(ours, theirs, x: Tensor, tolerance: float = 1e-5) -> None:
    outputs, gradients = [], []
    upstream = torch.randn_like(x)
    for turn in (ours, theirs):
        leaf = x.clone().requires_grad_()
        outputs.append(turn(leaf))
        gradients.append(torch.autograd.grad(outputs[-1], leaf, upstream)[0])
    torch.testing.assert_close(*outputs, atol=tolerance, rtol=0)
    torch.testing.assert_close(*gradients, atol=tolerance, rtol=0)


@pytest.mark.parametrize("rotary_dim", [K, 8], ids=["whole", "partial"])
def test_C9_rotary_equals_rotary_embedding_torch(rotary_dim):
    theirs = RotaryEmbedding(rotary_dim)
    ours = Rotary(K, rotary_dim=rotary_dim)
    x = torch.randn(B, H, N, K)
    assert_same_with_gradient(lambda x: ours(x, line(N)), theirs.rotate_queries_or_keys, x)
    assert torch.equal(ours(x, line(N))[..., rotary_dim:], x[..., rotary_dim:])


def test_C9_rotary_equals_rotary_embedding_torch_from_any_start():
    theirs = RotaryEmbedding(K)
    assert_same_with_gradient(
        lambda x: Rotary(K)(x, line(N, start=31)),
        lambda x: theirs.rotate_queries_or_keys(x, offset=31),
        torch.randn(B, H, N, K),
        1e-4,
    )


def test_C9_rotary_interleaved_equals_roformer():
    roformer = pytest.importorskip("transformers.models.roformer.modeling_roformer")
    table = roformer.RoFormerSinusoidalPositionalEmbedding(N, K)
    table.weight.data.copy_(table.create_weight())
    sin_cos = table((B, N))[None, None]

    def theirs(x: Tensor) -> Tensor:
        q, k = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings(sin_cos, x, x)
        return (q + k) / 2

    assert_same_with_gradient(lambda x: Rotary(K)(x, line(N)), theirs, torch.randn(B, H, N, K))


@pytest.mark.parametrize("rotary_dim", [K, 8], ids=["whole", "partial"])
def test_C9_rotary_half_equals_llama(rotary_dim):
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(hidden_size=H * rotary_dim, num_attention_heads=H)
    place_BN = torch.stack([torch.arange(N), torch.arange(5, 5 + N)])
    cos, sin = llama.LlamaRotaryEmbedding(config)(torch.empty(1), place_BN)

    def theirs(x: Tensor) -> Tensor:
        turned, _ = llama.apply_rotary_pos_emb(x[..., :rotary_dim], x[..., :rotary_dim], cos, sin)
        return torch.cat([turned, x[..., rotary_dim:]], dim=-1)

    ours = Rotary(K, convention="half", rotary_dim=rotary_dim)
    places = Places(place_BN[:, None], place_BN[:, None, :, None], (5 + N,))
    assert_same_with_gradient(lambda x: ours(x, places), theirs, torch.randn(B, H, N, K))


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_C9_rotary_on_a_plane_turns_one_half_by_row_and_one_by_column(convention):
    height, width = 3, 5
    rotary, share = Rotary(K, axes=2, convention=convention), Rotary(K // 2, convention=convention)

    def by_hand(x: Tensor) -> Tensor:
        cells = []
        for row in range(height):
            for column in range(width):
                cell = x[:, :, row * width + column]
                by_row, by_column = matrix(share, row, K // 2), matrix(share, column, K // 2)
                cells.append(cell @ torch.block_diag(by_row, by_column).T)
        return torch.stack(cells, dim=2)

    x = torch.randn(B, H, height * width, K, dtype=torch.float64)
    assert_same_with_gradient(lambda x: rotary(x, plane(height, width)), by_hand, x)


def test_C9_rotary_on_a_plane_is_relative_on_both_axes():
    rotary, (q, k) = Rotary(K, axes=2), torch.randn(2, 1, K, dtype=torch.float64)

    def logit(i: tuple[int, int], j: tuple[int, int]) -> float:
        at_i, at_j = (Places(torch.tensor([0]), torch.tensor([place]), (99, 99)) for place in (i, j))
        return (rotary(q, at_i) @ rotary(k, at_j).T).item()

    assert logit((0, 0), (2, 5)) == pytest.approx(logit((40, 7), (42, 12)), abs=1e-6)
    assert abs(logit((0, 0), (2, 5)) - logit((0, 0), (5, 2))) > 1e-3


def test_C9_rotary_leaves_extra_tokens_unturned():
    x = torch.randn(B, H, 2 + 15, K)
    for rotary, places in ((Rotary(K, axes=2), plane(3, 5, num_extra=2)), (Rotary(K), lattice((15,), num_extra=2))):
        out = rotary(x, places)
        assert torch.equal(out[:, :, :2], x[:, :, :2])
        assert (out[:, :, 3:] - x[:, :, 3:]).abs().amax(-1).min() > 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rotary(7),
        lambda: Rotary(6, axes=2),
        lambda: Rotary(8, rotary_dim=10),
        lambda: Rotary(8, convention="neox"),
    ],
)
def test_C9_rotary_refuses_what_it_cannot_pair(make):
    with pytest.raises(MiradaError, match="must be"):
        make()
