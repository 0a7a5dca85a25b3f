"""The gradient methods on a tiny ViT, against brute force: every weight of every layer is changed, one by one."""

import copy
import itertools

import pytest
import torch
from torch import Tensor, nn

from mirada.core import attention_layers
from mirada.core.attention import stand_ins
from mirada.core.kernels import reference
from mirada.core.kernels.call import Call
from mirada.explain.image import explain_images
from mirada.explain.legrad import legrad
from mirada.explain.readers import inner_layers
from mirada.explain.trace import looks_of, trace
from mirada.systems import create

SIZE, CHANNELS, CLASSES = (6, 9), 2, 3
BATCH = 2
STEP = 1e-5


def vit(pooling: str) -> nn.Module:
    torch.manual_seed(3)
    parts = {"dim": 6, "depth": 2, "num_heads": 2, "patch_size": 3, "pooling": pooling, "stem": "linear"}
    model = create("vit", image_size=SIZE, in_channels=CHANNELS, num_classes=CLASSES, **parts).double().eval()
    for parameter in model.parameters():  # far from a start at which all look everywhere alike
        parameter.data += 0.4 * torch.randn_like(parameter)
    return model


def images() -> Tensor:
    return torch.randn(BATCH, CHANNELS, *SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def target() -> Tensor:
    return torch.tensor([2, 0])


def score(outputs: Tensor) -> Tensor:
    return outputs[torch.arange(BATCH), target()]


@torch.no_grad()
def brute_force(model: nn.Module, layer: str) -> tuple[Tensor, Tensor]:
    """α of a layer, and ∂score/∂α by central differences. The images of a batch do not see each other."""
    attend, kept = model.get_submodule(layer), []

    def run(change: Tensor | float) -> Tensor:
        def kernel(call: Call) -> Tensor:
            weights = reference.weights(call)
            kept.append(weights)
            return reference.combine(call, weights + change)

        with stand_ins.of({attend: kernel}):
            return score(model(images()))

    run(0.0)
    weights = kept[0]
    gradient = torch.zeros_like(weights)
    for head, i, j in itertools.product(*map(range, weights.shape[1:])):
        change = torch.zeros_like(weights)
        change[:, head, i, j] = STEP
        gradient[:, head, i, j] = (run(change) - run(-change)) / (2 * STEP)
    return weights, gradient


def layers_of(model: nn.Module) -> list[str]:
    return [name for name in attention_layers(model) if name.startswith("encoder")]


@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_gradients_of_all_weights_are_those_of_brute_force(pooling):
    model = vit(pooling)
    looks = looks_of(model, images(), score=score)
    assert [look.name for look in looks] == layers_of(model)
    for look in looks:
        weights, gradient = brute_force(model, look.name)
        torch.testing.assert_close(look.weights_BHNM, weights)
        torch.testing.assert_close(look.gradient_BHNM, gradient, rtol=1e-6, atol=1e-9)
        assert gradient.any()


def matrices(model: nn.Module) -> list[Tensor]:
    """(α ⊙ ∂score/∂α) of both layers, by brute force."""
    return [weights * gradient for weights, gradient in (brute_force(model, name) for name in layers_of(model))]


def read(rows_BNN: Tensor, pooling: str) -> Tensor:
    """(B, rows, columns) of the class token, or of the mean of all tokens."""
    row_BN = rows_BNN[:, 0, 1:] if pooling == "class" else rows_BNN.mean(1)
    return row_BN.unflatten(1, (2, 3)).float()


@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_gradient_rollout_is_that_of_brute_force(pooling):
    model = vit(pooling)
    lower, upper = (m.mean(1).clamp(min=0) + torch.eye(m.shape[-1]) for m in matrices(model))
    lower, upper = lower / lower.sum(-1, keepdim=True), upper / upper.sum(-1, keepdim=True)
    found = explain_images(model, images(), method="gradient_rollout", target=target())
    torch.testing.assert_close(found.relevance_BRC, read(upper @ lower, pooling))


@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_chefer_is_that_of_brute_force(pooling):
    model = vit(pooling)
    lower, upper = (m.clamp(min=0).mean(1) for m in matrices(model))
    found = explain_images(model, images(), method="chefer", target=target())
    torch.testing.assert_close(found.relevance_BRC, read(upper + lower + upper @ lower, pooling))


@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_legrad_is_that_of_brute_force_on_models_without_the_layers_above(pooling):
    model = vit(pooling)
    rows = []
    for depth, name in enumerate(layers_of(model), start=1):
        lower = copy.deepcopy(model)
        lower.encoder.layers = lower.encoder.layers[:depth]
        _, gradient = brute_force(lower, name)
        rows.append(gradient.clamp(min=0).mean((1, 2)))
    expected = torch.stack(rows, dim=1)
    layers, read_out = inner_layers(model)
    found = legrad(model, images(), layers=layers, read_out=read_out, score=score, per_layer=True).values_BRX
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)
    on_cells = explain_images(model, images(), method="legrad", target=target()).relevance_BRC
    num_extra = 1 if pooling == "class" else 0
    torch.testing.assert_close(on_cells.flatten(1), expected.mean(1)[:, num_extra:].float())


def test_legrad_of_a_model_without_gradient_is_zero():
    model = vit("class")
    nn.init.zeros_(model.head.weight)
    assert not explain_images(model, images(), method="legrad", target=target()).relevance_BRC.any()


def test_grad_cam_is_the_formula():
    """X by hand: what the last attention of a class-token model sees, that is, normed tokens of the layer below."""
    model = vit("class")
    seen = []
    last = model.encoder.layers[-1].attention.inner
    handle = last.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    (gradient,) = torch.autograd.grad(score(model(images())).sum(), seen)
    handle.remove()
    x, gradient = seen[0][:, 1:].detach(), gradient[:, 1:]
    plain = (x * gradient.mean(1, keepdim=True)).sum(-1).clamp(min=0)
    by_layer = (x * gradient.clamp(min=0)).sum(-1).clamp(min=0)
    for method, expected in (("grad_cam", plain), ("layer_cam", by_layer)):
        found = explain_images(model, images(), method=method, target=target()).relevance_BRC
        torch.testing.assert_close(found.flatten(1), expected.float())


def test_integrated_gradients_share_out_the_whole_change_of_the_score():
    model = vit("mean")
    found = explain_images(model, images(), method="integrated_gradients", target=target()).relevance_BRC
    with torch.no_grad():
        change = score(model(images())) - score(model(torch.zeros_like(images())))
    torch.testing.assert_close(found.sum((1, 2)), change.float(), rtol=0.05, atol=0.01)


def test_occlusion_is_the_fall_of_the_score_under_each_cell():
    model = vit("class")
    found = explain_images(model, images(), method="occlusion", target=target(), baseline="mean").relevance_BRC
    with torch.no_grad():
        whole = score(model(images()))
        for row in range(2):
            for column in range(3):
                covered = images()
                covered[:, :, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3] = 0
                torch.testing.assert_close(found[:, row, column], (whole - score(model(covered))).float())


@pytest.mark.parametrize("frozen", [False, True])
def test_tracing_with_a_gradient_leaves_no_trace(frozen):
    model = vit("class").requires_grad_(not frozen)
    found = trace(model, images(), score=score)
    assert all(parameter.grad is None for parameter in model.parameters())
    torch.testing.assert_close(found.output.detach(), model(images()).detach())
    assert all(not look.weights_BHNM.requires_grad and look.gradient_BHNM.any() for look in found.looks)
