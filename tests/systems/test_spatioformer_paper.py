"""Spatioformer as published: its sizes, its formulas written with torch's layers, and the trap it comes with."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.systems import Spatioformer, SpatioformerPaper, create
from tests.nn.torch_layers import assert_same_result_and_gradients, copy, of_encoder_layer, same, shake

BANDS = 6
CANBERRA = (149.1, -35.3)


def chips(num: int, *, side: int = 9, band: Tensor | float = 1.0, lonlat: Tensor | None = None) -> Tensor:
    """`num` chips with bands of random numbers (times `band`), at places in Australia, pixels 30 m apart."""
    middle_N2 = torch.tensor(CANBERRA) + 8 * torch.randn(num, 2) if lonlat is None else lonlat
    down, right = torch.meshgrid(*(torch.arange(side) - side // 2,) * 2, indexing="ij")
    lonlat_N2HW = middle_N2[:, :, None, None] + 0.00027 * torch.stack([right, -down])
    return torch.cat([band * torch.randn(num, BANDS, side, side), lonlat_N2HW], dim=1)


@pytest.mark.parametrize(
    ("size", "count"), [("1", 139_826), ("3", 270_898), ("5", 533_042), ("7", 926_258), ("9", 1_450_546)]
)
def test_parameters_are_those_of_the_published_code(size, count):
    model = create("spatioformer_paper", size, in_channels=BANDS)
    assert sum(parameter.numel() for parameter in model.parameters()) == count
    assert create("spatioformer_paper", in_channels=BANDS).chip_size == 9


# --- equal to the formulas ---


class Written(nn.Module):
    """x_i = 4 (W b_i + c) + λ g_i; y = W_2 (W_1 [z_0 ‖ … ‖ z_N] + c_1) + c_2, z = three of torch's layers of (t, x)."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.bands, self.token = nn.Linear(BANDS, 16), nn.Parameter(torch.ones(16))
        self.strength = nn.Parameter(torch.tensor(10_000.0))
        layers = [nn.TransformerEncoderLayer(16, 8, 1024, dropout=0.1, batch_first=True) for _ in range(3)]
        self.layers = nn.ModuleList(layers)
        self.hidden, self.last = nn.Linear((side**2 + 1) * 16, 1024), nn.Linear(1024, 1)

    def forward(self, layers_BLHW: Tensor) -> Tensor:
        batch, side = len(layers_BLHW), layers_BLHW.shape[-1]
        tokens = [self.token.expand(batch, 16)]
        for row in range(side):
            for column in range(side):
                pixel_BL = layers_BLHW[:, :, row, column]
                place_B16 = self.waves(pixel_BL[:, BANDS], pixel_BL[:, BANDS + 1])
                tokens.append(self.bands(pixel_BL[:, :BANDS]) * 4 + self.strength * place_B16)
        z = torch.stack(tokens, dim=1)
        for layer in self.layers:
            z = layer(z)
        return self.last(self.hidden(z.reshape(batch, -1)))

    @staticmethod
    def waves(lon: Tensor, lat: Tensor) -> Tensor:
        turns = [torch.sin if k % 2 == 0 else torch.cos for k in range(16)]
        waves = [turn(lon / 100 ** (k / 16)) + turn(lat / 100 ** ((15 - k) / 16)) for k, turn in enumerate(turns)]
        return torch.stack(waves, dim=-1) / 2


@pytest.mark.parametrize("side", [1, 3])
def test_equals_the_formulas_with_torchs_layers(side):
    theirs, ours = Written(side).double(), SpatioformerPaper(BANDS, side).double().eval()
    shake(theirs)
    with torch.no_grad():
        theirs.strength.fill_(9998.7)
    pairs = [*same(ours.bands, theirs.bands), *same(ours.head[0], theirs.hidden), *same(ours.head[1], theirs.last)]
    pairs += [(ours.token, theirs.token, slice(None)), (ours.location.strength, theirs.strength, ...)]
    for our_layer, their_layer in zip(ours.encoder.layers, theirs.layers, strict=True):
        pairs += of_encoder_layer(our_layer, their_layer)
    copy(pairs, ours)
    layers = chips(5, side=side, band=3000.0).double().requires_grad_()
    # Torch's layers take another path where no gradient is asked for, so `eval` alone decides about dropout.
    # Sums over numbers up to 10,000 with either sign lose some digits.
    tolerance = {"atol": 1e-7, "rtol": 1e-5}
    assert_same_result_and_gradients(ours(layers), theirs.eval()(layers), [layers], pairs, tolerance)


def test_starts_as_the_paper_does():
    model = SpatioformerPaper(BANDS)
    assert model.location.strength == 10_000 and model.location.base == 100
    assert torch.equal(model.token, torch.ones(16))
    assert {module.p for module in model.modules() if isinstance(module, nn.Dropout)} == {0.1}
    assert {layer.attention.inner.attend.dropout for layer in model.encoder.layers} == {0.1}


# --- the trap ---


def spread(features_BX: Tensor) -> float:
    """How much features differ between samples: the mean of their standard deviations."""
    return features_BX.flatten(1).std(0).mean().item()


def features_of(model: nn.Module, layers: Tensor) -> Tensor:
    with torch.no_grad():
        if isinstance(model, Spatioformer):
            return model.embed(layers).transpose(0, 1)
        found: list[Tensor] = []
        handle = model.encoder.register_forward_hook(lambda module, given, z: found.append(z))
        model(layers)
        handle.remove()
        return found[0]


def effects(model: nn.Module, band: float = 1.0) -> tuple[float, float]:
    """How much the features of 64 chips differ by the image alone, and by the place alone."""
    at_one_place = chips(64, band=band, lonlat=torch.tensor(CANBERRA).expand(64, 2))
    with_one_image = chips(64, band=band)
    with_one_image[:, :BANDS] = with_one_image[:1, :BANDS]
    return spread(features_of(model.eval(), at_one_place)), spread(features_of(model.eval(), with_one_image))


def test_with_standardised_bands_the_image_has_no_effect():
    """Made for raw reflectance, λ = 10,000 drowns bands of magnitude one: a model of places, which nobody is told."""
    model = SpatioformerPaper(BANDS)
    by_raw_image, _ = effects(model, band=3000.0)
    by_image, by_place = effects(model)
    assert by_image < 0.001, "0.0004 in the published code"
    assert by_raw_image > 0.2, "0.30 in the published code"
    assert by_image < 0.002 * by_place


def test_our_default_sees_the_image_and_the_place():
    """With standardised bands, either moves what is looked for, and neither hides the other."""
    model = Spatioformer(BANDS, 0, 1, center=CANBERRA, extent_km=900.0)
    by_image, by_place = effects(model)
    assert by_place > 0.02
    assert 0.2 < by_image / by_place < 5


# --- rasters ---


def test_nodata_is_zero():
    model, layers = SpatioformerPaper(BANDS, 3).eval(), chips(2, side=3)
    without, zero = layers.clone(), layers.clone()
    without[0, 1, 0, 2], zero[0, 1, 0, 2] = torch.nan, 0.0
    assert torch.equal(model(without), model(zero))


def test_other_chips_and_covariates_are_refused():
    model = SpatioformerPaper(BANDS, 3)
    with pytest.raises(MiradaError, match=r"8 layers of 5 × 5 pixels: .* chips of 8 layers .* and 3 × 3 pixels.*dense"):
        model(chips(2, side=5))
    with pytest.raises(MiradaError, match="9 layers of 3 × 3 pixels"):
        model(torch.cat([chips(2, side=3)[:, :1], chips(2, side=3)], dim=1))
    with pytest.raises(MiradaError, match="chip_size=4: must be odd"):
        SpatioformerPaper(BANDS, 4)
