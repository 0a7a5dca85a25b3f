"""What every system of plots must do, whatever it is made of. A new one gets these by being registered.

Each check takes `make`, which builds the system at the tiny size of its card: make(in_channels=7). What a system cannot
do by its nature stands on its card, under the name of the check, with the reason. A system that looks at known plots
has `remember` (keep these plots), `embed` and `look` (at plots that are learned along with what looks at them).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mirada.core import attention_layers, record
from mirada.nn.windows_of_layers import windows_of
from mirada.systems import create
from mirada.systems.registry import Card, taken
from tests.systems.common_checks import asked_of

BATCH, BANDS, CHIP, OUTPUTS, PLOTS = 3, 2, 5, 2, 11
CENTER, EXTENT_KM = (174.8, -41.3), 500.0
CLOSE = {"atol": 1e-5, "rtol": 1e-5}

Make = Callable[..., nn.Module]


def plot_maker(card: Card, **variant: object) -> Make:
    """`variant` are further arguments, for checks of one system with other parts."""
    data = {"in_channels": BANDS, "num_covariates": 0, "num_plots": PLOTS, "chip_size": CHIP, "num_outputs": OUTPUTS}
    data = taken(card.name, **data, center=CENTER, extent_km=EXTENT_KM)

    def make(**arguments: object) -> nn.Module:
        torch.manual_seed(7)
        model = create(card.name, **{**card.tiny, **data, **variant, **arguments})
        given = {**data, **variant, **arguments}
        plots = layers(PLOTS, given["in_channels"], given.get("num_covariates", 0), (given["chip_size"],) * 2, seed=5)
        if hasattr(model, "remember"):
            model.eval().remember(plots, torch.linspace(-1.5, 1.5, PLOTS))
        return model

    return make


def layers(
    batch: int = BATCH, bands: int = BANDS, covariates: int = 0, size: tuple[int, int] = (CHIP, CHIP), seed: int = 11
) -> Tensor:
    """(B, L, H, W): standardised bands and covariates, then longitude and latitude of pixels 0.01° apart."""
    generator = torch.Generator().manual_seed(seed)
    bands_BCHW = torch.randn(batch, bands, *size, generator=generator)
    covariates_BDHW = torch.randn(batch, covariates, 1, 1, generator=generator).expand(-1, -1, *size)
    middle_B2 = torch.tensor(CENTER) + 3 * torch.randn(batch, 2, generator=generator)
    down, right = torch.meshgrid(*(torch.arange(side) - side // 2 for side in size), indexing="ij")
    lonlat_B2HW = middle_B2[:, :, None, None] + 0.01 * torch.stack([right, -down])
    return torch.cat([bands_BCHW, covariates_BDHW, lonlat_B2HW], dim=1)


def require_shape(outputs: Tensor, batch: int = BATCH, num_outputs: int = OUTPUTS) -> None:
    """(B, T), or (B, M, T) of an ensemble."""
    assert outputs.shape[0] == batch and outputs.shape[-1] == num_outputs and outputs.ndim in (2, 3)
    assert outputs.isfinite().all()


def require_gradients(model: nn.Module, layers_BLHW: Tensor) -> None:
    """After one step, as a part that starts as the identity hides what is inside it from the first."""
    optimiser = torch.optim.SGD(model.train().parameters(), lr=0.1)
    for _ in range(2):
        optimiser.zero_grad()
        model(layers_BLHW).square().mean().backward()
        optimiser.step()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert parameter.grad.isfinite().all(), f"{name} has a gradient that is not finite"
        # A bias of all keys shifts every logit of a row alike, which the softmax cancels.
        assert parameter.grad.any() or name.endswith("to_k.bias"), f"{name} has a zero gradient"


def learns_with_every_parameter(make: Make) -> None:
    require_gradients(make(), layers())


def accepts_any_channels(make: Make) -> None:
    for bands in (1, 3, 13):
        require_shape(make(in_channels=bands).eval()(layers(bands=bands)))


def accepts_covariates(make: Make) -> None:
    for covariates in (1, 3):
        model, given = make(num_covariates=covariates), layers(covariates=covariates)
        outputs = model.eval()(given)
        require_shape(outputs)
        changed, missing = given.clone(), given.clone()
        changed[:, BANDS] += 1
        missing[:, BANDS] = torch.nan
        assert not torch.allclose(model(changed), outputs), "a covariate is not seen"
        require_shape(model(missing))
        require_gradients(model, given)


def accepts_points_without_rasters(make: Make) -> None:
    model, given = make(in_channels=0, num_covariates=2, chip_size=1), layers(bands=0, covariates=2, size=(1, 1))
    require_shape(model.eval()(given))
    require_gradients(model, given)


def accepts_any_chip_size(make: Make) -> None:
    for side in (1, 3, 9):
        require_shape(make(chip_size=side).eval()(layers(size=(side, side))))


def accepts_another_size_at_inference(make: Make) -> None:
    require_shape(make().eval()(layers(size=(CHIP + 4, CHIP + 4))))


def accepts_any_output_count(make: Make) -> None:
    for num_outputs in (1, 2, 7):
        require_shape(make(num_outputs=num_outputs).eval()(layers()), num_outputs=num_outputs)


def sees_bands_and_place(make: Make) -> None:
    model, given = make().eval(), layers()
    outputs, elsewhere, otherwise = model(given), given.clone(), given.clone()
    elsewhere[:, -2] += 5
    otherwise[:, :BANDS] = otherwise[:, :BANDS].flip(0)
    assert not torch.allclose(model(elsewhere), outputs, rtol=1e-3), "another place gives the same answer"
    assert not torch.equal(model(otherwise), outputs), "another image gives the same answer"


def answers_where_there_is_no_data(make: Make) -> None:
    model, given = make().eval(), layers()
    given[0, :BANDS, 0, 1] = torch.nan
    given[1, :1] = torch.nan
    given[2, :BANDS] = torch.nan
    require_shape(model(given))


def dense_equals_forward(make: Make) -> None:
    """Every place of a raster, where some pixels have no data, is answered as the chip around it is."""
    for side, height, width in ((CHIP, 11, 8), (1, 3, 4), (3, 3, 3)):
        model, raster = make(chip_size=side).eval(), layers(2, size=(height, width))
        raster[0, 0, 2, 1:3], raster[1, :BANDS, :, -1] = torch.nan, torch.nan
        chips, places = windows_of(raster, side)
        expected = model(chips).unflatten(0, places).movedim((1, 2), (-2, -1))
        assert model.halo == side // 2
        torch.testing.assert_close(model.dense(raster), expected, **CLOSE)


def saves_and_loads(make: Make) -> None:
    """With the plots that it remembers, if it does."""
    model, other = make().eval(), make().eval()
    with torch.no_grad():
        for tensor in (*other.parameters(), *other.buffers()):
            tensor.zero_()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_file(model.state_dict(), path)
        other.load_state_dict(load_file(path))
    assert torch.equal(other(layers()), model(layers()))


def is_deterministic_in_eval(make: Make) -> None:
    model = make().eval()
    outputs = model(layers())
    assert torch.equal(model(layers()), outputs)
    alone = torch.cat([model(chip[None]) for chip in layers()])
    torch.testing.assert_close(alone, outputs, **CLOSE, msg="a place's answer depends on the others in its batch")


def overfits_eight_samples(make: Make) -> None:
    """The first output is the value. A system that looks at plots looks at these eight, and must learn to tell them."""
    model, given, targets_B = make().train(), layers(8), torch.linspace(-1.5, 1.5, 8)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(300):
        if hasattr(model, "look"):
            z_MBD = model.embed(given).flatten(1, 3)
            outputs = model.look(z_MBD, z_MBD, targets_B)
        else:
            outputs = model(given)
        values_B = outputs[..., 0].reshape(8, -1).mean(1)  # of an ensemble, the mean
        loss = (values_B - targets_B).square().mean()
        if loss < 0.02:
            return
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    raise AssertionError(f"after 300 steps on eight plots the loss is {loss:.3f}")


def recording(make: Make) -> None:
    """Rows sum to one, are zero outside the neighbourhood, and the output is the same to the bit."""
    model = make().eval()
    assert attention_layers(model), "there is no attention to record"
    plain = model(layers())
    with asked_of(model) as asked, record(model) as maps:
        assert torch.equal(model(layers()), plain), "recording changed the output"
    assert set(maps) == set(attention_layers(model))
    for name in maps:
        weights_BHNM, (queries, keys, neighbours) = maps[name], asked[name]
        torch.testing.assert_close(weights_BHNM.sum(-1), torch.ones(weights_BHNM.shape[:-1]))
        assert weights_BHNM.shape[2:] == (len(queries), len(keys))
        assert not weights_BHNM[..., ~neighbours.allowed(queries, keys)].any(), f"{name} looks outside"


PLOT_CHECKS: dict[str, Callable[[Make], None]] = {
    check.__name__: check
    for check in (
        learns_with_every_parameter,
        accepts_any_channels,
        accepts_covariates,
        accepts_points_without_rasters,
        accepts_any_chip_size,
        accepts_another_size_at_inference,
        accepts_any_output_count,
        sees_bands_and_place,
        answers_where_there_is_no_data,
        dense_equals_forward,
        saves_and_loads,
        is_deterministic_in_eval,
        overfits_eight_samples,
        recording,
    )
}
