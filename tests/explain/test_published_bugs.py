"""Two mistakes of the best-known public rollout code must never be ours (jacobgil/vit-explain, issues 6 and 16).

Gradients arrive in the order of the backward pass: taken as they come, each layer is multiplied by the gradient of
another. And `a / a.sum(-1)` without keeping the dimension divides columns, so that rows do not sum to one. What the
mistakes cost is measured by benchmarks/planted.py.
"""

import torch
from benchmarks.planted_published import column_normalised, weighed_in_reverse
from torch import Tensor

from mirada.explain.gradient_rollout import gradient_rollout
from mirada.explain.looks import Look
from mirada.explain.rollout import rollout
from mirada.explain.trace import looks_of
from mirada.systems import create

BATCH = 2


def traced() -> list[Look]:
    torch.manual_seed(1)
    parts = {"dim": 12, "depth": 3, "num_heads": 2, "patch_size": 3, "pooling": "class", "stem": "linear"}
    model = create("vit", image_size=(9, 12), in_channels=2, num_classes=3, **parts).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return looks_of(model, torch.randn(BATCH, 2, 9, 12), score=lambda outputs: outputs[:, 1])


def everyone(looks: list[Look]) -> Tensor:
    return torch.eye(len(looks[-1].queries)).expand(BATCH, -1, -1)


def test_every_gradient_is_that_of_its_own_layer():
    """The last layer of a class-token model is read by the class token alone: only its row has a gradient."""
    looks = traced()
    is_zero = [not look.gradient_BHNM[:, :, 1:].any() for look in looks]
    assert is_zero == [False, False, True], "gradients are not in the order of the layers"


def test_the_published_order_gives_layers_the_gradient_of_others():
    looks = traced()
    ours = [(look.weights_BHNM * look.gradient_BHNM).mean(1).clamp(min=0) for look in looks]
    published = weighed_in_reverse(looks)
    torch.testing.assert_close(published[1], ours[1])  # the middle of three layers is its own mirror image
    assert not torch.allclose(published[0], ours[0]) and not torch.allclose(published[2], ours[2])


def test_rows_sum_to_one_where_the_published_ones_do_not():
    looks = traced()
    ones = torch.ones(BATCH, len(looks[-1].queries))
    torch.testing.assert_close(rollout(looks, everyone(looks)).values_BRX.sum(-1), ones)
    torch.testing.assert_close(rollout(looks, everyone(looks), fuse="max", drop=0.9).values_BRX.sum(-1), ones)
    torch.testing.assert_close(gradient_rollout(looks, everyone(looks)).values_BRX.sum(-1), ones)
    published = column_normalised(looks[0].weights_BHNM.amax(1)).sum(-1)
    assert (published - 1).abs().max() > 0.1
