"""T2T-ViT: the published parameter counts, equality with loops over windows and pairs, its grids and its maps."""

import math

import pytest
import torch
from torch import Tensor, nn

from mirada.core import record
from mirada.core.kernels import reference
from mirada.errors import MiradaError
from mirada.systems import T2TViT, card, create
from mirada.systems.t2t_vit import derived_strides, soft_split
from tests.systems.common_checks import CHECKS, OTHER_SIZE, SIZE, images, maker

# In the published code the table of positions and the random features are parameters that are not trained.
PUBLISHED_TOTALS = {
    "7": 4_310_222,
    "10": 5_889_230,
    "12": 6_941_902,
    "14": 21_545_550,
    "19": 39_177_422,
    "24": 64_105_934,
}
FEATURES = 2 * 32 * 64
QKV_BIASES = 2 * 3 * 64


def trained(size: str) -> int:
    with torch.device("meta"):
        model = create("t2t_vit", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("size", "total"), PUBLISHED_TOTALS.items())
def test_parameters_and_fixed_tables_are_the_published_total(size, total):
    positions = (14 * 14 + 1) * card("t2t_vit").sizes[size]["dim"]
    assert trained(size) + positions + FEATURES == total


def test_trained_parameters_are_those_of_the_published_code():
    assert trained("14") == 21_465_806
    assert trained("t-14") == 21_465_806 - QKV_BIASES  # its token transformers have no features and no such biases


def test_tokens_of_the_published_sizes():
    with torch.device("meta"):
        model = create("t2t_vit", "7", image_size=(224, 224), in_channels=3, num_classes=5)
    assert model.grids(torch.empty(1, 3, 224, 224, device="meta")) == [(56, 56), (28, 28), (14, 14)]


def shaken(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.3)
    return model


def windows(image_CHW: Tensor, stride: int) -> tuple[Tensor, int, int]:
    """Overlapping windows, pixel by pixel, zeros outside."""
    size = {1: 3, 2: 3, 4: 7}[stride]
    before = {1: 1, 2: 1, 4: 2}[stride]
    channels, height, width = image_CHW.shape
    rows, columns = math.ceil(height / stride), math.ceil(width / stride)
    found = []
    for row in range(rows):
        for column in range(columns):
            numbers = []
            for channel in range(channels):
                for down in range(size):
                    for right in range(size):
                        y, x = row * stride - before + down, column * stride - before + right
                        inside = 0 <= y < height and 0 <= x < width
                        numbers.append(image_CHW[channel, y, x] if inside else image_CHW.new_zeros(()))
            found.append(torch.stack(numbers))
    return torch.stack(found), rows, columns


def attend(q: Tensor, k: Tensor, v: Tensor, weight) -> Tensor:
    """Σ_j w(q_i, k_j) v_j / Σ_j w(q_i, k_j), pair by pair."""
    rows = []
    for q_i in q:
        weights = [weight(q_i, k_j) for k_j in k]
        rows.append(sum(w * v_j for w, v_j in zip(weights, v, strict=True)) / sum(weights))
    return torch.stack(rows)


def token_layer(x_ND: Tensor, layer: nn.Sequential) -> Tensor:
    norm, attention, mlp = layer
    heads, score = attention.heads, attention.attend.score
    x_ND = norm(x_ND)
    q, k, v = (projection(x_ND) for projection in (heads.to_q, heads.to_k, heads.to_v))

    def scaled_dot(q_i, k_j):
        return torch.exp((q_i * k_j).sum() / x_ND.shape[1] ** 0.5)

    def performer(q_i, k_j):
        features = [
            [torch.exp((w * x).sum() - (x * x).sum() / 2) / len(score.weight) ** 0.5 for w in score.weight]
            for x in (q_i, k_j)
        ]
        return sum(a * b for a, b in zip(*features, strict=True))

    weight = performer if hasattr(score, "weight") else scaled_dot
    h = v + heads.to_out(attend(q, k, v, weight))
    return h + mlp.inner(mlp.norm(h))


def by_hand(model: T2TViT, image_CHW: Tensor) -> Tensor:
    """Logits of one image."""
    for layer, stride in zip(model.token_layers, model.strides, strict=False):
        x_ND, rows, columns = windows(image_CHW, stride)
        x_ND = token_layer(x_ND, layer)
        image_CHW = torch.stack([torch.stack(list(x_ND[row * columns : (row + 1) * columns])) for row in range(rows)])
        image_CHW = image_CHW.permute(2, 0, 1)
    x_ND = torch.cat([model.extra.weight, model.project(windows(image_CHW, model.strides[-1])[0])])
    dim = x_ND.shape[1]
    table = [
        [(math.cos if c % 2 else math.sin)(n / 10_000 ** (2 * (c // 2) / dim)) for c in range(dim)]
        for n in range(len(x_ND))
    ]
    x_ND = x_ND + torch.tensor(table, dtype=x_ND.dtype)
    for layer in model.encoder.layers:
        heads, h_ND = layer.attention.inner.heads, layer.attention.norm(x_ND)
        q, k, v = (p(h_ND).chunk(heads.num_heads, dim=1) for p in (heads.to_q, heads.to_k, heads.to_v))
        scale = heads.head_dim**-0.5
        out = [attend(*qkv, lambda a, b: torch.exp((a * b).sum() * scale)) for qkv in zip(q, k, v, strict=True)]  # noqa: B023
        x_ND = x_ND + heads.to_out(torch.cat(out, dim=1))
        x_ND = x_ND + layer.mlp.inner(layer.mlp.norm(x_ND))
    return model.head(model.encoder.norm(x_ND)[0])


@pytest.mark.parametrize(
    ("tokens", "strides", "size"),
    [("performer", (2, 2, 1), (8, 4)), ("transformer", (2, 2, 1), (4, 8)), ("transformer", (4, 2, 2), (16, 32))],
)
def test_equals_the_sums_written_out_in_output_and_gradient(tokens, strides, size):
    model = shaken(maker(card("t2t_vit"), tokens=tokens, strides=strides)()).double().eval()
    image = torch.randn(2, *size, dtype=torch.float64)
    own, other = image.clone().requires_grad_(), image.clone().requires_grad_()
    logits, expected = model(own[None])[0], by_hand(model, other)
    torch.testing.assert_close(logits, expected)
    direction = torch.randn_like(expected)
    logits.backward(direction), expected.backward(direction)
    torch.testing.assert_close(own.grad, other.grad)


@pytest.mark.parametrize(("stride", "size"), [(1, 3), (2, 3), (4, 7), (8, 15)])
@pytest.mark.parametrize("side", [16, 17, 23])
def test_every_pixel_is_in_a_window(stride, size, side):
    """The number of windows that a pixel is in is its gradient."""
    image = torch.zeros(1, 2, side, 16, requires_grad=True)
    tokens = soft_split(image, stride)
    assert tokens.shape == (1, math.ceil(side / stride) * (16 // stride), 2 * size * size)
    tokens.sum().backward()
    assert image.grad.min() >= 1
    assert image.grad.max() > 1  # and the windows overlap


def test_common_checks_hold_for_token_transformers():
    make = maker(card("t2t_vit"), tokens="transformer")
    for check in set(CHECKS) - {"overfits_eight_samples", "accepts_any_class_count"}:
        if check not in card("t2t_vit").cannot:
            CHECKS[check](make)


@pytest.mark.parametrize("tokens", ["performer", "transformer"])
@pytest.mark.parametrize("size", [SIZE, OTHER_SIZE])
def test_maps_of_the_splits_and_of_the_encoder_are_on_their_grids(tokens, size):
    model = maker(card("t2t_vit"), tokens=tokens)().eval()
    x = images(size)
    plain = model(x)
    with record(model) as maps:
        assert torch.equal(model(x), plain)
    counts = [rows * columns for rows, columns in model.grids(x)]
    assert len(maps) == 2 + 2
    for layer, count in enumerate((counts[0], counts[1], 1 + counts[2], 1 + counts[2])):
        assert maps[layer].shape[-2:] == (count, count)
        torch.testing.assert_close(maps[layer].sum(-1), torch.ones(maps[layer].shape[:-1]))


def test_performer_never_computes_the_matrix(monkeypatch):
    model = maker(card("t2t_vit"), tokens="performer", depth=0)()
    monkeypatch.setattr(reference, "weights", None)
    model(images()).sum().backward()


@pytest.mark.parametrize(
    ("size", "strides"),
    [((8, 8), (1, 1, 1)), ((28, 28), (2, 2, 1)), ((32, 32), (2, 2, 1)), ((64, 64), (2, 2, 2)), ((160, 160), (4, 2, 2))],
)
def test_derived_strides(size, strides):
    assert derived_strides(size) == strides


def test_the_released_scale_is_an_argument():
    plain, other = maker(card("t2t_vit"))().eval(), maker(card("t2t_vit"), score_scale=24**-0.5)().eval()
    shaken(plain)
    other.load_state_dict(plain.state_dict())
    assert not torch.allclose(plain(images()), other(images()))
    same = maker(card("t2t_vit"), score_scale=12**-0.5)().eval()
    same.load_state_dict(plain.state_dict())
    torch.testing.assert_close(plain(images()), same(images()))


def test_unknown_tokens_are_refused():
    with pytest.raises(MiradaError, match=r"tokens='transfomer'.*did you mean 'transformer'"):
        maker(card("t2t_vit"))(tokens="transfomer")
