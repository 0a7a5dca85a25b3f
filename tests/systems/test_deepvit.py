"""DeepViT: the paper's parameter counts, equality with loops over heads and pairs, and its maps."""

import pytest
import torch
from torch import Tensor, nn

from mirada.core import record
from mirada.errors import MiradaError
from mirada.systems import DeepViT, card, create
from tests.systems.common_checks import CHECKS, OTHER_SIZE, images, maker

PUBLISHED = {"16B": 24_426_664, "24B": 36_261_448, "32B": 48_096_232}


@pytest.mark.parametrize(("size", "count"), PUBLISHED.items())
def test_parameters_are_those_of_the_paper(size, count):
    with torch.device("meta"):
        model = create("deepvit", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def shaken(model: nn.Module) -> nn.Module:
    """Every parameter and running statistic away from where it starts."""
    for name, tensor in model.state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 2.0)
        elif tensor.is_floating_point():
            tensor.normal_(0.1 if name.endswith("running_mean") else 0.0, 0.3)
    return model


def by_hand(model: DeepViT, image_CHW: Tensor) -> Tensor:
    """Logits of one image, with a loop over everything that attention sums over."""
    weights = model.state_dict()
    patch = model.patch_size
    tokens = [weights["extra.weight"][0]]
    for top in range(0, image_CHW.shape[1], patch):
        for left in range(0, image_CHW.shape[2], patch):
            numbers = image_CHW[:, top : top + patch, left : left + patch].flatten()
            tokens.append(weights["patches.projection.weight"] @ numbers + weights["patches.projection.bias"])
    x_ND = torch.stack(tokens) + weights["position.weight"]
    for number, layer in enumerate(model.encoder.layers):
        at = f"encoder.layers.{number}."
        norm = layer.attention.norm
        h_ND = torch.stack([layer_norm(x_D, norm) for x_D in x_ND])
        x_ND = x_ND + re_attention(h_ND, {k.removeprefix(at + "attention.inner."): v for k, v in weights.items()})
        h_ND = torch.stack([layer_norm(x_D, layer.mlp.norm) for x_D in x_ND])
        x_ND = x_ND + layer.mlp.inner(h_ND)
    return model.head(layer_norm(x_ND[0], model.encoder.norm))


def layer_norm(x_D: Tensor, norm: nn.LayerNorm) -> Tensor:
    return (x_D - x_D.mean()) / (x_D.var(correction=0) + 1e-6).sqrt() * norm.weight + norm.bias


def re_attention(x_ND: Tensor, weights: dict[str, Tensor], num_heads: int = 3) -> Tensor:
    q, k, v = (x_ND @ weights[f"heads.to_{p}.weight"].T + weights[f"heads.to_{p}.bias"] for p in "qkv")
    num_tokens, width = len(x_ND), q.shape[1] // num_heads
    of = [slice(head * width, (head + 1) * width) for head in range(num_heads)]
    maps = []
    for head in range(num_heads):
        rows = []
        for i in range(num_tokens):
            logits = [(q[i, of[head]] * k[j, of[head]]).sum() / width**0.5 for j in range(num_tokens)]
            total = sum(torch.exp(logit) for logit in logits)
            rows.append(torch.stack([torch.exp(logit) / total for logit in logits]))
        maps.append(torch.stack(rows))
    out = []
    for head in range(num_heads):
        theta = weights["attend.mix.theta.weight"][head, :, 0, 0]
        mixed = sum(theta[g] * maps[g] for g in range(num_heads)) + weights["attend.mix.theta.bias"][head]
        mean, variance = (weights[f"attend.mix.norm.running_{which}"][head] for which in ("mean", "var"))
        mixed = (mixed - mean) / (variance + 1e-5).sqrt() * weights["attend.mix.norm.weight"][head]
        mixed = mixed + weights["attend.mix.norm.bias"][head]
        out.append(mixed @ v[:, of[head]])
    return torch.cat(out, dim=1) @ weights["heads.to_out.weight"].T + weights["heads.to_out.bias"]


def test_equals_the_sums_written_out_in_output_and_gradient():
    model = shaken(maker(card("deepvit"), image_size=(8, 12), stem="linear")()).double().eval()
    image = torch.randn(2, 8, 12, dtype=torch.float64)
    own, other = image.clone().requires_grad_(), image.clone().requires_grad_()
    logits, expected = model(own[None])[0], by_hand(model, other)
    torch.testing.assert_close(logits, expected)
    direction = torch.randn_like(expected)
    logits.backward(direction), expected.backward(direction)
    torch.testing.assert_close(own.grad, other.grad)


def test_common_checks_hold_with_the_published_stem():
    make = maker(card("deepvit"), stem="linear")
    for check in set(CHECKS) - {"overfits_eight_samples", "accepts_any_class_count", "recording"}:
        CHECKS[check](make)


@pytest.mark.parametrize("size", [(13, 17), OTHER_SIZE])
def test_mixed_maps_are_recorded_and_the_output_is_the_same(size):
    """What is recorded is what meets the values; before Norm and Θ each row was a distribution."""
    model = shaken(maker(card("deepvit"))()).eval()
    x = images(size)
    plain = model(x)
    with record(model) as maps:
        assert torch.equal(model(x), plain)
    rows, columns = model.grid(x)
    assert len(maps) == 2
    for name in maps:
        weights_BHNM = maps[name]
        assert weights_BHNM.shape == (3, 3, 1 + rows * columns, 1 + rows * columns)
        mix = model.get_submodule(name).mix
        scale = (mix.norm.weight / (mix.norm.running_var + 1e-5).sqrt()).view(-1, 1, 1)
        shift = (mix.norm.bias - mix.norm.running_mean * scale.flatten()).view(-1, 1, 1)
        mixed = (weights_BHNM - shift) / scale - mix.theta.bias.view(-1, 1, 1)
        before = torch.einsum("hg,bgnm->bhnm", torch.linalg.inv(mix.theta.weight[:, :, 0, 0]), mixed)
        torch.testing.assert_close(before.sum(-1), torch.ones(before.shape[:-1]), atol=1e-3, rtol=0)


def test_an_unknown_stem_is_refused():
    with pytest.raises(MiradaError, match=r"stem='convs'.*did you mean 'conv'"):
        maker(card("deepvit"))(stem="convs")
