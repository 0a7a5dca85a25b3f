"""CCT: the published parameter counts, and its sums written out with torch's own layers."""

import pytest
import torch
from benchmarks.cct import CCT
from torch import Tensor
from torch.nn import functional as F


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ({"dim": 128, "depth": 2, "num_heads": 2, "mlp_ratio": 1.0, "num_convs": 2}, 283_723),
        ({"dim": 256, "depth": 7, "num_heads": 4, "mlp_ratio": 2.0, "num_convs": 1}, 3_760_139),
    ],
)
def test_parameters_are_those_of_the_published_code(size, count):
    """Less the bias before the softmax of the pooling, which it cancels."""
    with torch.device("meta"):
        model = CCT(image_size=(32, 32), in_channels=3, num_classes=10, **size)
    assert sum(parameter.numel() for parameter in model.parameters()) == count - 1


def by_torch(model: CCT, images_BCHW: Tensor) -> Tensor:
    x = images_BCHW
    for block in model.convolutions:
        x = F.max_pool2d(F.relu(F.conv2d(x, block[0].weight, padding=1)), 3, 2, 1)
    x = x.flatten(2).transpose(1, 2) + model.position.weight
    for layer in model.encoder.layers:
        inner = layer.attention.inner
        heads = inner.heads
        h = F.layer_norm(x, x.shape[-1:], layer.attention.norm.weight, layer.attention.norm.bias)
        q, k, v = (
            (h @ to.weight.T).unflatten(-1, (heads.num_heads, -1)).transpose(1, 2)
            for to in (heads.to_q, heads.to_k, heads.to_v)
        )
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
        x = x + F.linear((weights @ v).transpose(1, 2).flatten(2), heads.to_out.weight, heads.to_out.bias)
        x = F.layer_norm(x, x.shape[-1:], layer.norm.weight, layer.norm.bias)
        mlp = layer.mlp.inner
        hidden = F.gelu(F.linear(x, mlp.expand.weight, mlp.expand.bias))
        x = x + F.linear(hidden, mlp.contract.weight, mlp.contract.bias)
    z = F.layer_norm(x, x.shape[-1:], model.encoder.norm.weight, model.encoder.norm.bias)
    pooled = (torch.softmax(z @ model.pooling.query.T, 1) * z).sum(1)
    return F.linear(pooled, model.head.weight, model.head.bias)


def test_equals_its_sums_and_their_gradient():
    torch.manual_seed(0)
    model = CCT(image_size=(13, 19), in_channels=2, num_classes=5, dim=24).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    images = torch.randn(3, 2, 13, 19, dtype=torch.float64, requires_grad=True)
    ours, theirs = model(images), by_torch(model, images)
    torch.testing.assert_close(ours, theirs)
    (gradient,), (expected,) = (torch.autograd.grad(y.square().sum(), images) for y in (ours, theirs))
    torch.testing.assert_close(gradient, expected)
