"""Rollout, gradient rollout, Chefer and gradient × attention on looks that are given, against matrices by hand."""

import pytest
import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.chefer import chefer
from mirada.explain.gradient_attention import gradient_attention
from mirada.explain.gradient_rollout import gradient_rollout
from mirada.explain.looks import Look, Tokens
from mirada.explain.rollout import rollout

BATCH, HEADS, GRID, EXTRA = 2, 3, (2, 5), 1
COUNT = 11
TOKENS = Tokens(GRID, EXTRA)


def looks(depth: int, seed: int = 0) -> list[Look]:
    generator = torch.Generator().manual_seed(seed)
    found = []
    for layer in range(depth):
        weights = torch.randn(BATCH, HEADS, COUNT, COUNT, generator=generator).softmax(-1)
        gradient = torch.randn(BATCH, HEADS, COUNT, COUNT, generator=generator)
        found.append(Look(f"layer {layer}", weights, TOKENS, TOKENS, gradient_BHNM=gradient))
    return found


def everyone() -> Tensor:
    return torch.eye(COUNT).expand(BATCH, -1, -1)


def product(matrices: list[Tensor]) -> Tensor:
    """Of matrices (B, N, N), the last layer on the left."""
    whole = torch.eye(COUNT).expand(BATCH, -1, -1)
    for matrix in matrices:
        whole = matrix @ whole
    return whole


def normed(matrix: Tensor) -> Tensor:
    matrix = matrix + torch.eye(COUNT)
    return matrix / matrix.sum(-1, keepdim=True)


def test_rows_of_rollout_sum_to_one():
    found = rollout(looks(5), everyone()).values_BRX
    torch.testing.assert_close(found.sum(-1), torch.ones(BATCH, COUNT))
    assert (found >= 0).all()


def test_rollout_of_one_layer_is_half_itself():
    (look,) = looks(1)
    found = rollout([look], everyone()).values_BRX
    torch.testing.assert_close(found, 0.5 * look.weights_BHNM.mean(1) + 0.5 * torch.eye(COUNT))


def test_rollout_is_the_product_of_its_layers():
    chain = looks(3)
    expected = product([normed(look.weights_BHNM.mean(1)) for look in chain])
    torch.testing.assert_close(rollout(chain, everyone()).values_BRX, expected)


@pytest.mark.parametrize("fuse", ["max", "min"])
def test_heads_are_fused_by_their_largest_or_smallest(fuse):
    chain = looks(2)
    fused = [getattr(look.weights_BHNM, f"a{fuse}")(1) for look in chain]
    torch.testing.assert_close(rollout(chain, everyone(), fuse=fuse).values_BRX, product([normed(m) for m in fused]))


def test_dropping_leaves_out_the_smallest_of_each_image_and_rows_still_sum_to_one():
    (look,) = looks(1)
    found = rollout([look], everyone(), drop=0.9).values_BRX
    torch.testing.assert_close(found.sum(-1), torch.ones(BATCH, COUNT))
    fused = look.weights_BHNM.mean(1)
    for image in range(BATCH):
        least_kept = fused[image].flatten().sort(descending=True).values[COUNT**2 - int(0.9 * COUNT**2) - 1]
        kept = torch.where(fused[image] >= least_kept, fused[image], 0.0)
        torch.testing.assert_close(found[image], normed(kept[None])[0])


def test_gradient_rollout_takes_the_mean_of_heads_before_the_positive_part():
    chain = looks(3)
    expected = product([normed((look.gradient_BHNM * look.weights_BHNM).mean(1).clamp(min=0)) for look in chain])
    torch.testing.assert_close(gradient_rollout(chain, everyone()).values_BRX, expected)


def test_chefer_takes_the_positive_part_before_the_mean_of_heads_and_leaves_oneself_out():
    chain = looks(3)
    relevance = torch.eye(COUNT).expand(BATCH, -1, -1)
    for look in chain:
        seen = (look.gradient_BHNM * look.weights_BHNM).clamp(min=0).mean(1)
        relevance = relevance + seen @ relevance
    torch.testing.assert_close(chefer(chain, everyone()).values_BRX, relevance - torch.eye(COUNT))


def test_gradient_attention_adds_up_layers():
    chain = looks(3)
    rows = [(look.gradient_BHNM * look.weights_BHNM).clamp(min=0).mean(1).sum(1) for look in chain]
    torch.testing.assert_close(gradient_attention(chain, everyone()).values_BRX[:, 0], sum(rows) / 3)


def test_layers_with_coarser_keys_are_carried_to_the_tokens_below():
    """Keys of 1 × 2 pooled from 2 × 3: half of the relevance goes to oneself, half through the pool."""
    fine, coarse = Tokens((2, 3)), Tokens((1, 2))
    weights = torch.tensor([[0.25, 0.75]]).expand(1, 1, 6, 2)
    found = rollout([Look("pooled", weights, fine, coarse)], torch.eye(6)[None]).values_BRX[0]
    # The left coarse cell holds columns 0 and 1 of both rows, the right one column 2.
    seen = torch.tensor([0.25 / 4, 0.25 / 4, 0.75 / 2] * 2)
    torch.testing.assert_close(found, 0.5 * torch.eye(6) + 0.5 * seen.expand(6, -1))


def test_a_query_that_pools_is_nothing_but_what_it_sees():
    lower = looks(1)[0]
    pool = torch.rand(BATCH, 1, 1, COUNT).softmax(-1)
    chain = [lower, Look("pool", pool, Tokens((1,)), Tokens((COUNT,)))]
    found = rollout(chain, torch.ones(BATCH, 1, 1)).values_BRX
    torch.testing.assert_close(found, pool[:, 0] @ normed(lower.weights_BHNM.mean(1)))


def test_relevance_crosses_from_a_translation_to_its_source():
    """Of the decoder's two looks the upper crosses: half stays with the target, half goes to the source."""
    source, target = Tokens((5,)), Tokens((3,))
    own, self_, cross = (torch.rand(1, 1, n, m).softmax(-1) for n, m in ((5, 5), (3, 3), (3, 5)))
    chain = [
        Look("encoder", own, source, source),
        Look("decoder", self_, target, target, "target"),
        Look("cross", cross, target, source, "cross"),
    ]
    found = rollout(chain, torch.eye(3)[None])
    half_encoder = 0.5 * (own[0, 0] + torch.eye(5))
    torch.testing.assert_close(found.values_BRX[0], 0.5 * cross[0, 0] @ half_encoder)
    assert found.target_BRN is not None
    torch.testing.assert_close(found.target_BRN[0], 0.5 * 0.5 * (self_[0, 0] + torch.eye(3)))


@pytest.mark.parametrize("method", [gradient_rollout, chefer, gradient_attention])
def test_looks_without_a_gradient_are_refused(method):
    (look,) = looks(1)
    plain = Look(look.name, look.weights_BHNM, TOKENS, TOKENS)
    with pytest.raises(MiradaError, match="traced without a gradient"):
        method([plain], everyone())


def test_maps_that_are_not_one_per_input_are_refused():
    with pytest.raises(MiradaError, match="not one map for each of 5 inputs"):
        rollout(looks(1), torch.ones(5, 1, COUNT))


def test_unknown_choices_are_refused():
    with pytest.raises(MiradaError, match="must be one of mean, max, min"):
        rollout(looks(1), everyone(), fuse="median")
    with pytest.raises(MiradaError, match="at least 0 and below 1"):
        rollout(looks(1), everyone(), drop=1.0)
