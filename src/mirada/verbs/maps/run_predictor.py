"""A run on plots as what the map engine asks for. Shape letters: B batch, L layers, M members, T outputs, P pixels."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mirada.data.geo.rasters import Rasters
from mirada.data.geo.read_points import require_called
from mirada.data.geo.scale import LayerScale
from mirada.errors import MiradaError, nearest
from mirada.train.folder import RunFolder
from mirada.verbs.load import model_folder
from mirada.verbs.maps.dense import run_dense
from mirada.verbs.maps.tags import MapTags
from mirada.verbs.maps.thinned import thinned_networks
from mirada.verbs.maps.trained import plots_run


class RunPredictor:
    """Prediction, low, high, spread and applicability of every pixel (see certainty.py), by the model of a run.

    samples: draws of Monte-Carlo dropout for the spread (see thinned.py); 0: the spread of the members, if there are
    several. Neither prediction nor interval depends on it. constants: covariates with one value for the whole map,
    such as the year; all others must be bands.
    """

    def __init__(
        self, run: str | Path | RunFolder, samples: int = 0, constants: Mapping[str, float] | None = None
    ) -> None:
        trained = plots_run(run, device="cpu")
        self.folder, self.samples, self.constants = trained.folder, samples, dict(constants or {})
        self.model, self.layer_scale, self.certainty = trained.model, trained.scale, trained.certainty
        self.thinned = thinned_networks(self.model, samples) if samples else []
        self.bands, self.covariates = trained.needs.bands, trained.needs.covariates
        _require_covariates(self.constants, self.covariates, self.folder.path)
        self.layer_names = (*self.bands, *self.covariates)
        self.band_names = tuple(name for name in self.layer_names if name not in self.constants)
        self.halo = trained.needs.chip_size // 2
        self.scale: LayerScale | None = _part(
            self.layer_scale, [self.layer_names.index(name) for name in self.band_names]
        )
        self.target = trained.field.target_name
        self.identity = identity_of(self.folder, samples, self.constants)
        self.outputs = self._outputs()

    def __reduce__(self) -> tuple:
        return type(self), (str(self.folder.path.resolve()), self.samples, self.constants)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.certainty.notes

    def tags(self, rasters: tuple[str, ...]) -> MapTags:
        """What a map made of these rasters remembers."""
        run = self.folder.path.resolve().name
        return MapTags(run, self.identity, self.target, rasters, self.samples, self.constants)

    def require_bands(self, rasters: Rasters) -> None:
        """Covariates are found by name; the bands of an image may have lost theirs (Rasters.with_bands)."""
        if not self.band_names:
            raise MiradaError(f"{self.folder.path}: this model sees the place only; a map needs a band or a covariate.")
        require_called(rasters, [name for name in self.covariates if name not in self.constants])

    def predict(self, layers_LHW: np.ndarray) -> np.ndarray:
        whole_LHW = self._with_constants(layers_LHW)
        return run_dense(self._dense, whole_LHW, num_bands=len(self.layer_names), halo=self.halo)

    def _dense(self, layers_BLHW: Tensor) -> Tensor:
        """(B, T, h, w) with B = 1 and the outputs of the map for T."""
        scaled = self.layer_scale.apply(layers_BLHW)
        outputs_PMT = pixel_outputs(self.model, scaled)
        drawn = torch.cat([pixel_outputs(one, scaled) for one in self.thinned], dim=1) if self.thinned else None
        height, width = (side - 2 * self.halo for side in layers_BLHW.shape[2:])
        inner_Lhw = layers_BLHW[0, :, self.halo : self.halo + height, self.halo : self.halo + width]
        samples_PL = inner_Lhw.flatten(1).T.numpy().copy()
        samples_PL[np.isnan(samples_PL).any(axis=1)] = np.nan  # they are no part of the map
        found = self.certainty.of(outputs_PMT, samples_PL, drawn)
        assert tuple(found) == self.outputs
        return torch.from_numpy(np.stack(list(found.values()))).view(1, -1, height, width)

    def _with_constants(self, layers_LHW: np.ndarray) -> np.ndarray:
        """Bands and covariates in the order of the training, then longitude and latitude."""
        given = dict(zip(self.band_names, layers_LHW, strict=False))
        size = layers_LHW.shape[1:]
        constants = {name: np.full(size, value, np.float32) for name, value in self.constants.items()}
        return np.stack([*((given | constants)[name] for name in self.layer_names), *layers_LHW[-2:]])

    def _outputs(self) -> tuple[str, ...]:
        """What there is of the five: found by asking for one place that does not exist."""
        side = 2 * self.halo + 1
        nowhere = torch.zeros(1, len(self.layer_names) + 2, side, side)
        with torch.inference_mode():
            outputs_PMT = pixel_outputs(self.model, nowhere)
        drawn = outputs_PMT.expand(-1, 2, -1) if self.thinned else None
        return tuple(self.certainty.of(outputs_PMT, np.full((1, nowhere.shape[1]), np.nan, np.float32), drawn))


def pixel_outputs(model: nn.Module, layers_BLHW: Tensor) -> Tensor:
    """(P, M, T) of every pixel whose surroundings lie inside, row by row."""
    outputs = model.dense(layers_BLHW)  # type: ignore[operator]
    outputs_BMThw = outputs if outputs.dim() == 5 else outputs[:, None]
    return outputs_BMThw.permute(0, 3, 4, 1, 2).flatten(0, 2)


def _require_covariates(constants: Mapping[str, float], covariates: tuple[str, ...], run: Path) -> None:
    for name in constants:
        if name not in covariates:
            known = ", ".join(covariates) or "none"
            raise MiradaError(f"{run}: has no covariate {name!r}{nearest(name, covariates)}; it has {known}.")


def _part(scale: LayerScale, layers: list[int]) -> LayerScale:
    return LayerScale(scale.kind, tuple(scale.mean[i] for i in layers), tuple(scale.std[i] for i in layers))


def identity_of(folder: RunFolder, samples: int, constants: Mapping[str, float]) -> str:
    """Of the weights, of what the validation found, and of what was asked for."""
    digest = hashlib.sha256(repr((samples, sorted(constants.items()))).encode())
    for path in (model_folder(folder) / "model.safetensors", folder.validation, folder.applicability):
        if path.exists():
            digest.update(path.read_bytes())
    return digest.hexdigest()
