"""From the data section of a configuration to plots, their layers, their split in space and their task."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from mirada import systems
from mirada.config.schema import Config, DataConfig, MapsConfig
from mirada.core.position.geographic import EARTH_KM
from mirada.data.batches import Batch
from mirada.data.geo.batches import PlotBatches, layers_of, plot_evaluation
from mirada.data.geo.blocks import auto_block_km, block_km, blocks_of
from mirada.data.geo.check import require_trainable_plots
from mirada.data.geo.plots import Plots
from mirada.data.geo.read_plots import SETTING_OF_OPTION, open_plots
from mirada.data.geo.scale import LayerScale, layer_scale
from mirada.data.geo.sphere import unit_vectors
from mirada.data.geo.splits import kept_rows, known_rows, split_plots
from mirada.data.splits import Split
from mirada.data.table import SPLIT_NAMES
from mirada.errors import MiradaError
from mirada.systems import Spatioformer
from mirada.systems.registry import taken
from mirada.tasks.field import Field, field_task
from mirada.tasks.image import Task
from mirada.train.checkpoint import save_tensors
from mirada.train.folder import RunFolder
from mirada.verbs.judging import AnsweredByRow
from mirada.verbs.maps.among import AmongPlots

EVALUATION_BATCH = 256


@dataclass(frozen=True)
class PreparedPlots(AnsweredByRow):
    """Plots that are ready to train on; the same methods as images have (see Prepared).

    What depends on the configuration (the split, the scale, the head) is there after `ready`.
    """

    plots: Plots
    layers_NLHW: Tensor
    system: str
    saved: dict | None = None
    maps: MapsConfig = dataclasses.field(default_factory=MapsConfig)
    split: Split | None = None
    scale: LayerScale | None = None

    inputs = "plots"
    task_name = "field"
    held_out = "test"

    @property
    def source(self) -> str:
        return self.plots.source

    @property
    def table(self) -> Plots:
        return self.plots

    def name(self, row: int) -> str:
        return self.plots.name(row)

    def preset(self) -> tuple[str, str]:
        chips = self.plots.chips
        around = "no rasters around them" if chips is None else f"{len(chips.band_names)} bands around each"
        name = "maps-paper" if self.system == "spatioformer_paper" else "maps"
        return name, f"{len(self.plots):,} plots, {len(self.plots.covariate_names)} covariates, {around}"

    def settings(self) -> dict:
        return {}

    def ready(self, config: Config, folder: RunFolder | None = None) -> PreparedPlots:
        """With the split, the scale and the system of a configuration, or of the run that is resumed."""
        named = dataclasses.replace(self, maps=config.maps, system=config.system.name)
        if self.saved is not None:
            split, scale = Split.from_dict(self.saved["split"]), LayerScale.from_dict(self.saved["normalisation"])
            return dataclasses.replace(named, split=split, scale=scale)
        data = config.data
        split = split_plots(
            self.plots,
            config.maps.scheme,
            val=data.val,
            test=data.test,
            block=named.block,
            buffer_km=config.maps.buffer_km,
            seed=data.split_seed,
        )
        return named.divided(split)

    def divided(self, split: Split) -> PreparedPlots:
        """The same plots with another split, and the scale of its training rows."""
        return dataclasses.replace(
            self, split=split, scale=layer_scale(self.layers_NLHW, split.train, self.maps.scale), saved=None
        )

    def save(self, folder: RunFolder) -> None:
        """data.json holds all of it."""

    @property
    def block(self) -> float | str:
        return auto_block_km(self.plots) if self.maps.block is None else self.maps.block

    @cached_property
    def blocks_N(self) -> np.ndarray:
        return blocks_of(self.plots, self.block)

    @property
    def chip_size(self) -> int:
        return self.layers_NLHW.shape[-1]

    @property
    def known(self) -> np.ndarray:
        """Rows whose targets a trained model may use: of train and val."""
        return known_rows(self._split)

    @property
    def kept(self) -> np.ndarray:
        """Of the known rows, numbered among themselves, those that a trained model looks at; drawn if too many."""
        return kept_rows(np.arange(len(self.known)), self.maps.plots_kept)

    def arguments(self) -> dict:
        """What the data decides of a system, of all that this system takes."""
        num_bands = 0 if self.plots.chips is None else len(self.plots.chips.band_names)
        (lon, lat), extent_km = self._extent()
        known = {
            "in_channels": num_bands,
            "num_covariates": len(self.plots.covariate_names),
            "num_plots": len(self.kept),
            "chip_size": self.chip_size,
            "num_outputs": self.field.num_outputs,
            "center": (lon, lat),
            "extent_km": extent_km,
        }
        return taken(self.system, **known) if self.system in systems.cards() else known

    def attached(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model, among the known plots if it looks at plots."""
        if not isinstance(model, Spatioformer):
            return model
        known, task = self.known, self.field
        among = AmongPlots(
            model,
            self.scaled(self.layers_NLHW[torch.from_numpy(known)]),
            torch.from_numpy((self.plots.targets_N[known] - task.mean) / task.std).float(),
            learned_P=torch.from_numpy(np.isin(known, self._split.train)),
            kept=torch.from_numpy(self.kept),
            seen=self.maps.plots_seen,
            blind_km=self.maps.blind * block_km(self.block),
        )
        return among.to(device)

    def scaled(self, layers_NLHW: Tensor) -> Tensor:
        """As the model sees them."""
        return self._scale.apply(layers_NLHW)

    def training(self, config: Config) -> PlotBatches:
        rows = self._split.train
        return PlotBatches(
            self.layers_NLHW,
            self.plots.targets_N,
            rows,
            batch_size=min(config.train.batch_size, len(rows)),
            scale=self._scale,
            seed=config.train.seed,
            turns=config.maps.turns,
        )

    def evaluation(self, side: str) -> Iterator[Batch]:
        return self.batches(self._split.rows(side))

    def batches(self, rows: np.ndarray) -> Iterator[Batch]:
        return plot_evaluation(
            self.layers_NLHW, self.plots.targets_N, rows, batch_size=EVALUATION_BATCH, scale=self._scale
        )

    def task(self, config: Config) -> Field:
        return self.field

    def watched(self, model: nn.Module, task: Task, device: torch.device) -> dict[str, float]:
        if isinstance(model, AmongPlots):
            model.eval().remember_learned()
        return super().watched(model, task, device)

    def judged(self, folder: RunFolder, model: nn.Module, task: Task, device: torch.device) -> tuple[dict, list[dict]]:
        if isinstance(model, AmongPlots):
            model.eval().remember_all()
            save_tensors(folder.best / "model.safetensors", model.state_dict())
        return super().judged(folder, model, task, device)

    def told(self, task: Task, outputs: Tensor, targets: Tensor, rows: Tensor) -> tuple[dict, list[dict]]:
        """Intervals are over blocks, and a line says where it is and how far off the model expects to be."""
        assert isinstance(task, Field)
        _, lines = super().told(task, outputs, targets, rows)
        for line, scale in zip(lines, task.scale(outputs).tolist(), strict=True):
            lon, lat = self.plots.lonlat_N2[line["row"]]
            line |= {
                "longitude": round(float(lon), 6),
                "latitude": round(float(lat), 6),
                "scale": float(f"{scale:.7g}"),
            }
        return task.result(outputs, targets, self.blocks_N[rows.numpy()]), lines

    def require_suitable(self, config: Config) -> None:
        """Refuse what the system cannot see."""
        if config.data.chip_size % 2 == 0:
            raise MiradaError(
                f"data.chip_size={config.data.chip_size}: the plot is the middle pixel; give an odd number."
            )
        if config.system.name == "spatioformer_paper":
            if self.plots.chips is None:
                raise MiradaError(f"{self.source}: spatioformer_paper sees rasters only; give --rasters.")
            if self.plots.covariate_names:
                raise MiradaError(
                    f"{self.source}: spatioformer_paper takes no covariates, but {len(self.plots.covariate_names)} are "
                    "found; leave them out by data.covariates=[] or take spatioformer."
                )

    def describe(self) -> dict:
        """data.json"""
        plots, split, chips = self.plots, self._split, self.plots.chips
        (lon, lat), extent_km = self._extent()
        return {
            "source": plots.source,
            "inputs": self.inputs,
            "kind": plots.kind,
            **self.field.described(),
            "target_names": [plots.target_name],
            "class_names": [],
            "crs": plots.crs,
            "center": [lon, lat],
            "extent_km": extent_km,
            "scheme": self.maps.scheme,
            "block": self.block,
            "num_blocks": len(np.unique(self.blocks_N)),
            "covariate_names": list(plots.covariate_names),
            "band_names": [] if chips is None else list(chips.band_names),
            "in_channels": 0 if chips is None else len(chips.band_names),
            "chip_size": self.chip_size,
            "normalisation": self._scale.to_dict(),
            "held_out": self.held_out,
            "num_plots": {name: len(split.rows(name)) for name in SPLIT_NAMES},
            "checksum": plots.checksum(),
            "notes": [*plots.notes, *split.notes],
            "broken": [],
            "split": split.to_dict(),
        }

    @property
    def field(self) -> Field:
        """The task, with the statistics of the training rows."""
        return field_task(self.maps.head, self.plots.target_name, self.plots.targets_N[self._split.train])

    def _extent(self) -> tuple[tuple[float, float], float]:
        """The middle of the plots, and how far from it they lie (root mean square, km)."""
        u_N3 = unit_vectors(self.plots.lonlat_N2)
        middle = u_N3.mean(0)
        x, y, z = middle / np.linalg.norm(middle)
        lon, lat = math.degrees(math.atan2(y, x)), math.degrees(math.asin(z))
        apart = np.sqrt(np.square(u_N3 - (x, y, z)).sum(1).mean() / 3)
        return (round(lon, 4), round(lat, 4)), round(max(EARTH_KM * float(apart), 1e-3), 3)

    @property
    def _split(self) -> Split:
        assert self.split is not None, "ready() divides the plots"
        return self.split

    @property
    def _scale(self) -> LayerScale:
        assert self.scale is not None, "ready() scales the layers"
        return self.scale


def prepare_plots(data: DataConfig, system: str, *, saved: dict | None = None) -> PreparedPlots:
    """Read the plots and cut their chips; with `saved` (the data.json of a run) they are divided as then."""
    plots = open_plots(data.source, **reading_options(data))
    require_trainable_plots(plots)
    if saved is not None and plots.checksum() != saved["checksum"]:
        raise MiradaError(f"{data.source}: the data changed since this run started; restore it or train a new run.")
    return PreparedPlots(plots, layers_of(plots), system, saved)


def reading_options(data: DataConfig) -> dict:
    """What open_plots takes of a configuration."""
    if isinstance(data.label_column, list):
        raise MiradaError(f"data.label_column={data.label_column}: plots have one target; give one column.")
    return {option: getattr(data, setting) for option, setting in SETTING_OF_OPTION.items()}
