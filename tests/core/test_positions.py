"""Positions that are added or appended to the tokens, item by item; C8 is in test_shaw, C9 in test_rotary, C12 in
test_position_ablation, C13 in test_geographic."""

from __future__ import annotations

import inspect
import math

import pytest
import torch
from torch import nn

from mirada.core import (
    Appended,
    Attention,
    Concatenated,
    Dot,
    Learned,
    Places,
    Rotary,
    Sinusoidal,
    line,
    plane,
)
from mirada.core.position import didactic, resize_grid, sinusoidal_table
from mirada.errors import MiradaError

B, H, N, K, D = 2, 3, 13, 10, 14


def of_samples(*starts: int, length: int) -> Places:
    """Each sample starts somewhere else: what padding on the left leads to."""
    index_B1N = torch.stack([torch.arange(start, start + length) for start in starts])[:, None]
    return Places(index_B1N, index_B1N[..., None], (max(starts) + length,))


# --- C1 to C4: codes that lectures start from ---


def test_C1_integer_positions_grow_without_bound():
    code = didactic.integer(torch.tensor([1, 2, 3, 10_000]))
    assert code.flatten().tolist() == [1, 2, 3, 10_000]
    # Far along, every token looks the same: its position drowns what it says.
    one, other = torch.eye(D)[:2]
    near, far = (torch.cosine_similarity(one + code[row], other + code[row], dim=0) for row in (0, 3))
    assert near < 0.95 and far > 1 - 1e-6
    assert sinusoidal_table(torch.tensor([10_000]), D).abs().max() <= 1


def test_C2_normalised_positions_collide_between_lengths():
    assert didactic.normalised(torch.tensor([4]), 6) == didactic.normalised(torch.tensor([2]), 3)
    assert not torch.equal(sinusoidal_table(torch.tensor([4]), D), sinusoidal_table(torch.tensor([2]), D))


def test_C3_binary_bit_k_flips_every_2_to_the_k_positions():
    code = didactic.binary(torch.arange(64), 6)
    assert code[3].tolist() == [0, 0, 0, 0, 1, 1]
    for bit in range(6):
        column = code[:, 5 - bit]
        flips = (column[1:] != column[:-1]).nonzero().flatten() + 1
        assert flips.tolist() == list(range(2**bit, 64, 2**bit))


def test_C4_harmonic_sines_are_not_the_geometric_ones():
    position = torch.arange(N)
    code = didactic.harmonic(position, 3)
    expected = [[math.sin(pos), math.sin(pos / 2), math.sin(pos / 3)] for pos in range(N)]
    torch.testing.assert_close(code, torch.tensor(expected))
    harmonic = torch.tensor([1.0, 1 / 2, 1 / 3])
    geometric = torch.tensor([10_000.0]) ** (-torch.arange(0, 6, 2) / 6)
    assert (harmonic[:-1] / harmonic[1:]).std() > 0.1
    assert (geometric[:-1] / geometric[1:]).std() < 1e-3


# --- C5: sinusoidal ---

ROBOT = torch.tensor(  # "I am a Robot", width 4, base 100
    [[0, 1, 0, 1], [0.84, 0.54, 0.10, 1.0], [0.91, -0.42, 0.20, 0.98], [0.14, -0.99, 0.30, 0.96]], dtype=torch.float64
)


def test_C5_sinusoidal_golden_table():
    table = sinusoidal_table(torch.arange(4), 4, base=100.0)
    torch.testing.assert_close(table, ROBOT, atol=0.0051, rtol=0)  # two decimals are printed
    torch.testing.assert_close(Sinusoidal(4, base=100.0).table(line(4)), table)


def test_C5_sinusoidal_shift_is_a_rotation():
    shift, position = 5, torch.arange(97)
    now, later = sinusoidal_table(position, D), sinusoidal_table(position + shift, D)
    theta = 10_000.0 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    blocks = [torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in (shift * theta).tolist()]
    turn_DD = torch.block_diag(*(block.double() for block in blocks))
    torch.testing.assert_close(later, now @ turn_DD.T, atol=1e-6, rtol=0)


def test_C5_sinusoidal_squared_norm_is_half_the_width():
    norms = sinusoidal_table(torch.arange(1009), D).square().sum(-1)
    torch.testing.assert_close(norms, torch.full_like(norms, D / 2))


def test_E29_the_base_is_a_wavelength_and_not_the_warm_up():
    assert inspect.signature(Sinusoidal).parameters["base"].default == 10_000
    # Warm-up takes 4,000 steps; as a base it gives another code.
    assert (sinusoidal_table(torch.arange(N), D) - sinusoidal_table(torch.arange(N), D, base=4_000)).abs().max() > 0.1


def test_E29_literal_form_with_one_letter_for_position_and_channel_has_no_rows():
    def literal(position: int) -> list[float]:
        """pe_{2t} = sin(t / warm^{2t/d}), pe_{2t+1} = cos(t / warm^{2t/d}): `position` has no place to enter."""
        angles = [t / 10_000 ** (2 * t / D) for t in range(D // 2)]
        return [turn(angle) for angle in angles for turn in (math.sin, math.cos)]

    table = sinusoidal_table(torch.arange(D // 2), D)
    assert literal(1) == literal(2)
    assert len({tuple(row) for row in table.tolist()}) == D // 2
    # What it does give is the diagonal of the table: channel pair t at position t.
    diagonal = [table[t, 2 * t + half].item() for t in range(D // 2) for half in (0, 1)]
    assert literal(1) == pytest.approx(diagonal)


def test_E30_the_printed_table_needs_base_100():
    with_formula = sinusoidal_table(torch.arange(4), 4)
    assert with_formula[1, 2].item() == pytest.approx(0.01, abs=1e-4)
    assert (with_formula - ROBOT).abs().max() > 0.2


def test_C5_sinusoidal_on_a_plane_with_extra_tokens():
    height, width, dim = 3, 5, 8
    table = Sinusoidal(dim, axes=2).table(plane(height, width, num_extra=2))
    assert table.shape == (2 + height * width, dim)
    assert not table[:2].any()
    for row in range(height):
        for column in range(width):
            token = table[2 + row * width + column]
            torch.testing.assert_close(token[:4], sinusoidal_table(torch.tensor(row), 4))
            torch.testing.assert_close(token[4:], sinusoidal_table(torch.tensor(column), 4))


def test_C5_sinusoidal_line_on_a_plane_is_the_raster_order():
    torch.testing.assert_close(Sinusoidal(D).table(plane(3, 5, num_extra=1))[1:], Sinusoidal(D).table(line(15)))


def test_C5_sinusoidal_places_of_each_sample():
    out = Sinusoidal(D)(torch.zeros(2, 5, D), of_samples(3, 7, length=5))
    torch.testing.assert_close(out[0], sinusoidal_table(torch.arange(3, 8), D).float())
    torch.testing.assert_close(out[1], sinusoidal_table(torch.arange(7, 12), D).float())


@pytest.mark.parametrize("make", [lambda: Sinusoidal(7), lambda: Sinusoidal(6, axes=2)])
def test_C5_sinusoidal_needs_a_sine_and_a_cosine_per_axis(make):
    with pytest.raises(MiradaError, match="multiple of"):
        make()


# --- C6, C7: positions added to embeddings ---


def test_C6_input_is_scaled_embedding_plus_position_then_dropout():
    embedding, position = nn.Embedding(31, D), Sinusoidal(D)
    token_BN = torch.randint(31, (B, N))
    x = position(math.sqrt(D) * embedding(token_BN), line(N))
    for i in range(N):
        expected = math.sqrt(D) * embedding.weight[token_BN[1, i]] + sinusoidal_table(torch.tensor(i), D).float()
        torch.testing.assert_close(x[1, i], expected)
    dropped = nn.Dropout(0.5)(x)
    is_gone = dropped == 0
    assert 0.3 < is_gone.float().mean() < 0.7  # the position goes with the token, as dropout comes after the sum
    torch.testing.assert_close(dropped[~is_gone], 2 * x[~is_gone])


def test_C7_absolute_positions_enter_queries_keys_and_values():
    layer, position = Attention(Concatenated(D, 1)).double(), Sinusoidal(D)
    embedded_BND, places = torch.randn(B, N, D, dtype=torch.float64), line(N)
    heads, pe_ND = layer.heads, position.table(places)
    q, k, v = (project(embedded_BND + pe_ND) for project in (heads.to_q, heads.to_k, heads.to_v))
    expected = heads.to_out((q @ k.mT / math.sqrt(D)).softmax(-1) @ v)
    torch.testing.assert_close(layer(position(embedded_BND, places)), expected)


def test_C7_absolute_logit_is_the_sum_of_four_terms():
    W_q, W_k = torch.randn(2, K, D, dtype=torch.float64)
    e, pe = torch.randn(N, D, dtype=torch.float64), sinusoidal_table(torch.arange(N), D)
    logits = Dot()((e + pe) @ W_q.T, (e + pe) @ W_k.T)
    terms = [(one @ W_q.T) @ (other @ W_k.T).T for one in (e, pe) for other in (e, pe)]
    torch.testing.assert_close(logits, sum(terms))


# --- C10, C11: learned positions, adding and appending ---


def test_C10_learned_shape_includes_the_class_token_and_gradient_flows():
    learned = Learned((3, 5), D, num_extra=1)
    assert learned.weight.shape == (1 + 15, D)
    learned(torch.randn(B, 16, D), plane(3, 5, num_extra=1)).square().sum().backward()
    assert (learned.weight.grad.abs().sum(-1) > 0).all()


def test_E35_literal_table_without_class_token_does_not_fit():
    literal = Learned((3, 5), D)
    assert literal.weight.shape == (15, D)
    with pytest.raises(MiradaError, match="0 extra tokens, the places have 1"):
        literal(torch.randn(B, 16, D), plane(3, 5, num_extra=1))


def test_C10_learned_starts_small_and_random():
    weight = Learned((31, 37), D).weight
    assert weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert weight.mean().abs() < 0.001


def test_C10_learned_at_the_same_size_is_the_table_itself():
    learned = Learned((3, 5), D, num_extra=2)
    assert learned.table(plane(3, 5, num_extra=2)) is learned.weight
    torch.testing.assert_close(resize_grid(learned.weight[2:], (3, 5), (3, 5)), learned.weight[2:])


def test_C10_learned_at_another_size_keeps_extra_rows_and_interpolates_the_grid():
    learned = Learned((4, 6), 2, num_extra=2)
    with torch.no_grad():  # channels that say where the cell is, so that interpolation must say it too
        learned.weight[2:] = (plane(4, 6).coords_NA + 0.5) / torch.tensor([4, 6])
    table = learned.table(plane(8, 12, num_extra=2))
    assert torch.equal(table[:2], learned.weight[:2])
    expected = (plane(8, 12).coords_NA + 0.5) / torch.tensor([8, 12])
    # Bicubic interpolation bends a ramp, most at the border, by less than half a cell of the new grid.
    torch.testing.assert_close(table[2:], expected, atol=1 / 12 / 2, rtol=0)
    with torch.no_grad():
        learned.weight[2:] = 3.0
    torch.testing.assert_close(learned.table(plane(5, 7, num_extra=2))[2:], torch.full((35, 2), 3.0))


def test_C10_learned_on_a_line_from_any_start():
    learned = Learned((7,), D)
    assert torch.equal(learned.table(line(3, start=2)), learned.weight[2:5])
    with pytest.raises(MiradaError, match="8 tokens, but learned positions exist for 7"):
        learned.table(line(3, start=5))


def test_C10_learned_places_of_each_sample():
    learned = Learned((7,), D)
    out = learned(torch.zeros(2, 3, D), of_samples(1, 4, length=3))
    assert torch.equal(out, torch.stack([learned.weight[1:4], learned.weight[4:7]]))


def test_C11_adding_keeps_the_width_and_appending_changes_it():
    x, places = torch.randn(B, N, D), line(N)
    added, appended = Sinusoidal(D)(x, places), Appended(Sinusoidal(6))(x, places)
    assert added.shape == (B, N, D)
    assert appended.shape == (B, N, D + 6)
    assert torch.equal(appended[..., :D], x)
    torch.testing.assert_close(appended[1, :, D:], Sinusoidal(6).table(places).float())


def test_C11_adding_is_appending_under_a_shared_projection():
    """W′ [x ‖ p] = W x + W p if W′ = [W W]; appending is free to choose W′ = [W U]."""
    W, x, position = nn.Linear(D, K, bias=False), torch.randn(B, N, D), Learned((N,), D)
    both = nn.Linear(2 * D, K, bias=False)
    both.load_state_dict({"weight": torch.cat([W.weight, W.weight], dim=1)})
    torch.testing.assert_close(W(position(x, line(N))), both(Appended(position)(x, line(N))))


# --- what does not fit is said in a sentence ---


@pytest.mark.parametrize(
    "use",
    [
        lambda: Sinusoidal(8, axes=2).table(line(6)),
        lambda: Learned((6,), D).table(plane(2, 3)),
        lambda: Learned((2, 3), D).table(line(6)),
        lambda: Rotary(8, axes=2)(torch.randn(B, H, 6, 8), line(6)),
        lambda: Rotary(8)(torch.randn(B, H, 6, 8), plane(2, 3)),
    ],
)
def test_a_position_for_other_axes_is_refused(use):
    with pytest.raises(MiradaError, match="met places"):
        use()


def test_half_convention_has_the_same_waves_with_all_sines_first():
    position = torch.arange(N)
    interleaved, half = (sinusoidal_table(position, D, convention=c) for c in ("interleaved", "half"))
    assert torch.equal(half, torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=-1))
    x = torch.randn(B, N, D)
    torch.testing.assert_close(Sinusoidal(D, convention="half")(x, line(N)), x + half.float())
