"""The plots and the model of a run, opened again for what only they can tell. Shape letters: N rows, L layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mirada.data.geo.batches import layers_of
from mirada.data.geo.plots import Plots
from mirada.data.geo.read_plots import SETTING_OF_OPTION, open_plots
from mirada.data.geo.scale import LayerScale
from mirada.data.splits import Split
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.tasks.field import Field
from mirada.tasks.image import saved_task
from mirada.train.checkpoint import load_model

ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Opened:
    """Plots as the run divided and scaled them, and its best model, loaded when it is first asked."""

    plots: Plots
    layers_NLHW: Tensor
    split: Split
    scale: LayerScale
    task: Field
    best: Path

    @property
    def layers(self) -> np.ndarray:
        return self.layers_NLHW.numpy()

    @cached_property
    def model(self) -> nn.Module:
        return load_model(self.best)

    def predict(self, layers_NLHW: np.ndarray) -> np.ndarray:
        """Layers as they are measured to values in the target's unit: a mirada.tasks.layers.Predict."""
        scaled = self.scale.apply(torch.from_numpy(layers_NLHW))
        with torch.inference_mode():
            return torch.cat([self.task.values(self.model(some)) for some in scaled.split(ROWS_AT_ONCE)]).numpy()


def open_run_on_plots(run: Contents) -> Opened:
    """Raises a MiradaError that says why the plots cannot be had."""
    settings = run.section("data")
    options = {option: settings[key] for option, key in SETTING_OF_OPTION.items() if settings.get(key) is not None}
    plots = open_plots(run.data["source"], **options)
    if plots.checksum() != run.data["checksum"]:
        raise MiradaError(f"{run.data['source']}: changed since the run, so its plots are no longer those of this run.")
    task = saved_task(run.data)
    assert isinstance(task, Field)
    split, scale = Split.from_dict(run.data["split"]), LayerScale.from_dict(run.data["normalisation"])
    return Opened(plots, layers_of(plots), split, scale, task, run.folder.best)
