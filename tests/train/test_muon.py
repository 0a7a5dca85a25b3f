"""Muon: orthogonalised steps of matrices, AdamW for all else."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mirada import systems
from mirada.nn.embedding import TokenEmbedding
from mirada.train.checkpoint import load_optimiser, optimiser_tensors
from mirada.train.muon import MOMENTUM, QUINTICS, matrices, orthogonalised
from mirada.train.optimiser import make_optimiser


def muon(model: nn.Module, **how) -> torch.optim.Optimizer:
    return make_optimiser("muon", model, **{"learning_rate": 0.1, "weight_decay": 0.3, "betas": (0.9, 0.99), **how})


def test_directions_are_kept_and_their_lengths_made_alike():
    for shape in ((5, 7), (7, 5), (11, 3), (13, 13)):
        several = 40 * torch.randn(2, *shape)
        for matrix, result in zip(several, orthogonalised(several), strict=True):
            u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
            found = u.T @ result @ vt.T
            assert_close(found - found.diag().diag(), torch.zeros_like(found), atol=1e-4, rtol=0)
            assert 0.6 < found.diag().min() <= found.diag().max() < 1.3
    assert_close(orthogonalised(torch.zeros(2, 3, 5)), torch.zeros(2, 3, 5))


def test_the_iteration_on_the_smaller_side_is_that_of_the_whole_matrix():
    for shape in ((5, 11), (5, 7), (7, 5), (31, 97)):
        x = start = torch.randn(1, *shape, dtype=torch.float64)
        x = x / x.norm()
        for a, b, c in QUINTICS:
            gram = x @ x.mT
            x = a * x + (b * gram + c * gram @ gram) @ x
        assert_close(orthogonalised(start), x, atol=1e-5, rtol=0)  # the smallest number it adds to a norm
        assert_close(orthogonalised(start.float()).double(), x, atol=1e-4, rtol=0)


def test_lengths_from_three_thousandths_on_end_near_one():
    lengths = torch.cat([torch.tensor([0.003, 1.0, 1.009]), torch.rand(500).pow(4).clamp(0.003)]).double()
    for a, b, c in QUINTICS:
        lengths = a * lengths + b * lengths**3 + c * lengths**5
    assert 0.78 < lengths.min() <= lengths.max() < 1.22


@pytest.mark.parametrize("shape", [(512, 4608), (768, 768)])
def test_large_matrices_of_one_rank_end_near_one(shape):
    """Their only singular value is their norm, which must not come out too small."""
    for matrix in (torch.ones(shape), torch.rand(shape[0], 1) @ torch.rand(1, shape[1])):
        assert 0.78 < torch.linalg.matrix_norm(orthogonalised(matrix[None])[0].double()) < 1.22


def test_two_steps_by_hand():
    """m and u as in the docstring; a bias beside it takes the steps of AdamW."""
    layer = nn.Linear(7, 5)
    plain = nn.Linear(7, 5)
    plain.load_state_dict(layer.state_dict())
    optimiser = muon(layer)
    reference = torch.optim.AdamW([plain.bias], lr=0.1, betas=(0.9, 0.99), weight_decay=0.0)
    weight, momentum = layer.weight.detach().clone(), torch.zeros(5, 7)
    for _ in range(2):
        gradient = torch.randn(5, 7)
        layer.weight.grad, layer.bias.grad = gradient.clone(), gradient[:, 0].clone()
        plain.bias.grad = gradient[:, 0].clone()
        optimiser.step()
        reference.step()
        momentum = MOMENTUM * momentum + (1 - MOMENTUM) * gradient
        update = orthogonalised((MOMENTUM * momentum + (1 - MOMENTUM) * gradient)[None])[0]
        weight = weight * (1 - 0.1 * 0.3) - 0.1 * 0.2 * 7**0.5 * update
    assert_close(layer.weight.detach(), weight)
    assert_close(layer.bias, plain.bias)


def test_kernels_are_matrices_of_their_outputs():
    kernel, flat = nn.Conv2d(3, 5, 2, bias=False), nn.Linear(12, 5, bias=False)
    flat.weight.data = kernel.weight.detach().flatten(1).clone()
    gradient = torch.randn(5, 3, 2, 2)
    kernel.weight.grad, flat.weight.grad = gradient, gradient.flatten(1).clone()
    for layer in (kernel, flat):
        muon(layer).step()
    assert_close(kernel.weight.flatten(1), flat.weight)


def test_which_weights_are_matrices():
    arguments = {"image_size": (8, 8), "in_channels": 3, "num_classes": 7, "dim": 24, "depth": 1, "num_heads": 2}
    model = systems.create("vit", "nano", patch_size=4, pooling="class", **arguments)
    groups = muon(model).param_groups
    names = {id(weight): name for name, weight in model.named_parameters()}
    moved = {names[id(weight)] for group in groups if group["is_orthogonal"] for weight in group["params"]}
    kept = {name for name, weight in model.named_parameters() if weight.ndim > 1} - moved
    assert "encoder.layers.0.attention.inner.heads.to_q.weight" in moved
    assert kept == {"head.weight", "position.weight", "extra.weight"}
    every = [weight for group in groups for weight in group["params"]]
    assert sorted(map(id, every)) == sorted(map(id, model.parameters()))

    words, depthwise, grey = TokenEmbedding(7, 5), nn.Conv2d(5, 5, 3, groups=5), nn.Conv2d(1, 5, 3)
    outputs = {"class_head": nn.Linear(3, 5), "head": nn.Sequential(nn.Linear(3, 5)), "own_output": nn.Linear(3, 7)}
    parts = nn.ModuleDict({"words": words, "depthwise": depthwise, "grey": grey, **outputs})
    assert matrices(parts) == {id(grey.weight)}


def test_a_step_that_overflows_is_left_out():
    """In float16, whose gradients are scaled."""
    layer = nn.Linear(3, 5)
    before = layer.weight.detach().clone()
    optimiser, scaler = muon(layer), torch.amp.GradScaler("cpu")
    scaler.scale(layer(torch.ones(2, 3)).sum()).backward()
    layer.weight.grad[0, 0] = torch.inf
    scaler.step(optimiser)
    assert torch.equal(layer.weight, before)


def test_state_survives_saving():
    def trained(steps: int, state: dict | None = None, start: dict | None = None) -> tuple[nn.Module, dict]:
        model = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))
        model.load_state_dict(start or first)
        optimiser = muon(model, learning_rate=0.01)
        if state is not None:
            load_optimiser(optimiser, state)
        for _ in range(steps):
            (model(x) - 1).square().mean().backward()
            optimiser.step()
            optimiser.zero_grad()
        return model, optimiser_tensors(optimiser)

    x = torch.randn(11, 7)
    first = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3)).state_dict()
    straight, _ = trained(5)
    half, state = trained(2)
    resumed, _ = trained(3, state, half.state_dict())
    for one, other in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def test_steps_without_a_gradient_change_nothing():
    layer = nn.Linear(3, 5)
    before = layer.weight.detach().clone()
    muon(layer).step()
    assert torch.equal(layer.weight, before)
