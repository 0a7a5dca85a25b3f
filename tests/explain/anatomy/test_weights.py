"""CKA, filters and positions: what is known of them by construction."""

import numpy as np
import pytest
import torch

from mirada.core import Learned
from mirada.core.position.added import sinusoidal_table
from mirada.errors import MiradaError
from mirada.explain.anatomy.cka import cka_matrix, linear_cka
from mirada.explain.anatomy.filters import (
    filters_of,
    first_filters,
    low_frequencies_first,
    principal_components,
    spectral_centroid,
)
from mirada.explain.anatomy.positions import described, positions_of, related_places
from mirada.systems import create


def test_cka_with_itself_is_one_whatever_the_rotation_scale_and_shift():
    x = torch.randn(61, 7, dtype=torch.float64)
    rotation, _ = torch.linalg.qr(torch.randn(7, 7, dtype=torch.float64))
    assert linear_cka(x, x) == pytest.approx(1)
    assert linear_cka(x, 3.7 * x @ rotation + 5) == pytest.approx(1)
    stretched = x @ torch.diag(torch.tensor([9.0, 1, 1, 1, 1, 1, 1], dtype=torch.float64))
    assert linear_cka(x, stretched) < 0.9


def test_cka_of_unrelated_features_is_near_zero_even_with_few_inputs():
    x, y = torch.randn(101, 211), torch.randn(101, 307)
    assert abs(linear_cka(x, y)) < 0.02
    # The biased one would be far from it: ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) of the same numbers.
    a, b = (z.double() - z.double().mean(0) for z in (x, y))
    assert ((a.T @ b).norm() ** 2 / ((a.T @ a).norm() * (b.T @ b).norm())) > 0.5


def test_cka_is_the_ratio_of_unbiased_hsic():
    """Song 2012, eq. 5, written out."""
    x, y = torch.randn(13, 5, dtype=torch.float64), torch.randn(13, 3, dtype=torch.float64)
    y[:, 0] += x[:, 0]

    def hsic(K, L):
        n = len(K)
        K, L = K - K.diag().diag(), L - L.diag().diag()
        one = torch.ones(n, dtype=K.dtype)
        both = (K @ L).trace() + (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
        return (both - 2 / (n - 2) * (one @ K @ L @ one)) / (n * (n - 3))

    K, L = x @ x.T, y @ y.T
    expected = hsic(K, L) / (hsic(K, K) * hsic(L, L)).sqrt()
    assert linear_cka(x, y) == pytest.approx(float(expected))


def test_cka_of_many_layers_is_that_of_pairs():
    layers = [torch.randn(17, width) for width in (3, 5, 7)]
    others = [torch.randn(17, width) for width in (2, 11)]
    found = cka_matrix(layers, others)
    assert found.shape == (3, 2)
    assert float(found[2, 1]) == pytest.approx(linear_cka(layers[2], others[1]))
    torch.testing.assert_close(cka_matrix(layers).diagonal(), torch.ones(3, dtype=torch.float64))


def test_cka_refuses_too_few_and_different_inputs():
    with pytest.raises(MiradaError, match="3 inputs are too few"):
        linear_cka(torch.randn(3, 5), torch.randn(3, 5))
    with pytest.raises(MiradaError, match="11 inputs were given to one model and 13 to the other"):
        linear_cka(torch.randn(11, 5), torch.randn(13, 5))


def test_principal_components_explain_all_variance_and_rebuild_the_filters():
    weight = torch.randn(23, 3, 5, 5, dtype=torch.float64)
    components, variance = principal_components(weight)
    assert components.shape == (23, 3, 5, 5)
    assert float(variance.sum()) == pytest.approx(1)
    assert (variance.diff() <= 1e-12).all()
    flat = components.flatten(1)
    torch.testing.assert_close(flat @ flat.T, torch.eye(23, dtype=torch.float64), atol=1e-8, rtol=0)
    centred = weight.flatten(1) - weight.flatten(1).mean(0)
    torch.testing.assert_close(centred @ flat.T @ flat, centred)


def test_spectral_centroid_of_known_waves():
    line = torch.arange(8, dtype=torch.float64)
    flat = torch.ones(1, 8, 8, dtype=torch.float64)
    wave = torch.sin(2 * torch.pi * 2 * line / 8).expand(1, 8, 8)  # 2 cycles in 8 pixels
    board = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(4)
    found = spectral_centroid(torch.stack([flat, wave, (board[:, None] * board)[None]]))
    assert found.numpy() == pytest.approx([0, 0.25, np.sqrt(0.5)], abs=1e-9)


def test_low_frequencies_first_is_told_from_a_random_order():
    variance = 0.7 ** np.arange(37)
    centroid = np.linspace(0.05, 0.6, 37)
    assert low_frequencies_first(variance, centroid) < 0.01
    assert low_frequencies_first(variance, centroid[::-1]) > 0.9
    shuffled = np.random.default_rng(1).permutation(centroid)
    assert low_frequencies_first(variance, shuffled) > 0.05


def test_filters_made_of_smooth_patterns_have_low_frequencies_first():
    """Every filter is a sum of cosines, those of low frequency with large amplitudes."""
    line = torch.arange(8, dtype=torch.float64) + 0.5
    basis = torch.stack([torch.cos(torch.pi * k * line / 8) for k in range(8)])
    amplitude = torch.randn(101, 3, 8, 8, dtype=torch.float64) / (1 + torch.arange(8)[:, None] + torch.arange(8)) ** 2
    model = create(
        "vit", image_size=16, in_channels=3, num_classes=2, patch_size=8, stem="linear", dim=101, num_heads=1
    )
    with torch.no_grad():
        weight = torch.einsum("dckl,kh,lw->dchw", amplitude, basis, basis)
        model.patches.projection.weight.copy_(weight.flatten(1))
    found = filters_of(model, 3)
    assert found.name == "patches.projection" and found.are_patches
    assert found.components_KChw.shape == (101, 3, 8, 8)
    assert found.p_low_first < 0.001
    norms = np.linalg.norm(found.filters_DChw.reshape(101, -1), axis=1)
    assert (np.diff(norms) <= 0).all()
    np.testing.assert_allclose(norms[0], weight.flatten(1).norm(dim=1).max(), rtol=1e-5)


IMAGE = {"image_size": 32, "in_channels": 3, "num_classes": 2}


@pytest.mark.parametrize(
    ("system", "arguments", "name", "shape"),
    [
        ("vit", {"stem": "linear", "patch_size": 4, "dim": 24, "num_heads": 2}, "patches.projection", (24, 3, 4, 4)),
        ("vit", {"stem": "conv", "patch_size": 4, "dim": 24, "num_heads": 2}, "patches.layers.0", (12, 3, 3, 3)),
        ("swin", {"dim": 12, "num_heads": (2, 3, 3), "patch_size": 2}, "patches.projection", (12, 3, 2, 2)),
        ("mvit", {"dim": 8, "patch_size": 2}, "patches", (8, 3, 3, 3)),
        ("vit_hybrid", {"width": 8, "dim": 24, "num_heads": 2}, "backbone.0.0", (8, 3, 3, 3)),
    ],
)
def test_the_layer_that_sees_the_pixels_is_found(system, arguments, name, shape):
    found, weight, _ = first_filters(create(system, **IMAGE, **arguments), 3)
    assert (found, tuple(weight.shape)) == (name, shape)


@pytest.mark.parametrize(
    ("system", "arguments", "reason"),
    [
        ("vit", {"stem": "shifted"}, "five normed copies"),
        ("t2t_vit", {}, "look at each other before they are projected"),
        ("image_gpt", {}, "tokens are colours"),
    ],
)
def test_models_without_filters_are_refused_with_the_reason(system, arguments, reason):
    given = IMAGE if system != "image_gpt" else {"image_size": 8, "in_channels": 3}
    with pytest.raises(MiradaError, match=reason):
        filters_of(create(system, **given, **arguments), 3)


def planted(height: int, width: int, dim: int) -> torch.Tensor:
    """Half of the channels know the row, half the column."""
    rows = sinusoidal_table(torch.arange(height), dim // 2, base=50.0)
    columns = sinusoidal_table(torch.arange(width), dim // 2, base=50.0)
    both = torch.cat([rows[:, None].expand(-1, width, -1), columns[None].expand(height, -1, -1)], dim=-1)
    return both.flatten(0, 1)


def test_planted_positions_are_found_and_random_ones_are_not():
    found = described("position", (5, 7), planted(5, 7, 16) + 0.3 * torch.randn(35, 16))
    assert found.p < 0.01
    assert found.mean_related > found.mean_others
    assert described("position", (5, 7), torch.randn(35, 16)).p > 0.05


def test_positions_of_a_text_are_compared_with_their_neighbours():
    waves = sinusoidal_table(torch.arange(23), 16, base=50.0)
    found = described("position", (23,), waves)
    assert found.related == "neighbours" and found.p < 0.01
    assert described("position", (23,), waves[torch.randperm(23)]).p > 0.05


def test_means_are_over_pairs_of_different_places():
    vectors = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]])  # equal within a row of 2 × 2
    found = described("position", (2, 2), vectors)
    assert found.mean_related == pytest.approx(0.5)  # in a row 1, in a column 0
    assert found.mean_others == pytest.approx(0)


def test_related_places_share_a_row_or_a_column():
    related = related_places((2, 3))
    assert related[0].tolist() == [False, True, True, True, False, False]
    assert related_places((4,))[1].tolist() == [True, False, True, False]


def test_positions_of_a_model_leave_out_its_class_token_and_what_was_never_used():
    model = create("vit", **IMAGE, patch_size=8, pooling="class")
    found = positions_of(model)
    assert found.name == "position" and found.size == (4, 4)
    expected = torch.cosine_similarity(model.position.weight[1:, None], model.position.weight[None, 1:], dim=-1)
    np.testing.assert_allclose(found.cosine_NN, expected.detach(), atol=1e-6)
    text = torch.nn.Sequential(Learned((97,), 8))
    assert positions_of(text, num_used=11).cosine_NN.shape == (11, 11)


def test_models_without_learned_positions_are_refused_with_the_reason():
    with pytest.raises(MiradaError, match="no learned vectors of positions"):
        positions_of(create("vit", **IMAGE, position="rotary"))
