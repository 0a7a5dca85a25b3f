"""A trained model that answers about places: points of a table, a vector file or ready chips."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mirada.config.schema import DataConfig
from mirada.data.geo.batches import layers_of
from mirada.data.geo.plots import Plots
from mirada.data.geo.read_points import Needs, Points, open_points
from mirada.data.geo.scale import LayerScale
from mirada.data.tabular import is_table, read_header
from mirada.errors import MiradaError
from mirada.tasks.field import Field
from mirada.tasks.layers import middle_pixel
from mirada.train.folder import RunFolder
from mirada.verbs.images import NamedImage
from mirada.verbs.load import Progress, Trained, load
from mirada.verbs.maps.certainty import Certainty, certainty_of

AREA = {True: "inside", False: "outside"}


class TrainedPlots(Trained):
    """The best model of a run on plots. Its sources are files of points, or Plots in memory; no target is needed."""

    @property
    def field(self) -> Field:
        assert isinstance(self.task, Field)
        return self.task

    @cached_property
    def scale(self) -> LayerScale:
        return LayerScale.from_dict(self.data["normalisation"])

    @cached_property
    def certainty(self) -> Certainty:
        return certainty_of(self.folder, self.field, self.data.get("scheme"))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about the numbers."""
        return self.certainty.notes

    @property
    def needs(self) -> Needs:
        data = self.data
        return Needs(tuple(data["band_names"]), tuple(data["covariate_names"]), data["chip_size"])

    def predict(
        self, images: object, *, batch_size: int = 64, rasters: Sequence[str | os.PathLike] | None = None
    ) -> list[dict]:
        """Answers in words, one per point, all of which must lie where the model can look."""
        points = self._all(images, rasters)
        return self.described(points.plots, self.on(points.plots, batch_size))

    def outputs(
        self, images: object, *, batch_size: int = 64, rasters: Sequence[str | os.PathLike] | None = None
    ) -> Tensor:
        """(N, M, T) what the members of the model give for these points, before it is put into words."""
        return self.on(self._all(images, rasters).plots, batch_size)

    def rows(
        self,
        images: object,
        *,
        batch_size: int = 64,
        progress: Progress | None = None,
        rasters: Sequence[str | os.PathLike] | None = None,
    ) -> list[dict]:
        """One row per point: name, longitude, latitude, the answer, and `error` (None, or why there is no answer).

        rasters: where bands and missing covariates are read; by default the rasters of the run.
        """
        points = self.points(images, rasters)
        answers = self.described(points.plots, self.on(points.plots, batch_size, progress))
        by_row = dict(zip(points.rows_N.tolist(), answers, strict=True))
        columns = list(answers[0])
        rows = []
        for row, name in enumerate(points.names):
            reason = points.reasons.get(row)
            answer = by_row.get(row, {})
            cells = {column: answer.get(column) for column in columns}
            rows.append({"name": name, **cells, "error": f"{name} {reason}." if reason else None})
        return rows

    def batches(
        self, images: list[NamedImage], batch_size: int, progress: Progress | None = None
    ) -> Iterator[tuple[list[NamedImage], list[str], Tensor]]:
        raise MiradaError(f"{self.folder.path}: this model was trained on plots; it has no answers about images.")

    @torch.inference_mode()
    def on(self, plots: Plots, batch_size: int = 64, progress: Progress | None = None) -> Tensor:
        """(N, M, T) of plots that have the bands and covariates of the model."""
        outputs, layers_NLHW = [], layers_of(plots)
        for some in layers_NLHW.split(batch_size):
            given = self.model(self.scale.apply(some).to(self.device)).float().cpu()
            outputs.append(given if given.dim() == 3 else given[:, None])
            if progress is not None:
                progress(sum(map(len, outputs)), len(plots))
        return torch.cat(outputs)

    def described(self, plots: Plots, outputs_NMT: Tensor) -> list[dict]:
        """What the model says of these plots, with the interval, the spread and how unlike the training plots it is."""
        found = self.certainty.of(outputs_NMT, middle_pixel(layers_of(plots).numpy()))
        found = {f"predicted_{self.field.target_name}" if n == "prediction" else n: v for n, v in found.items()}
        answers = []
        for row, (lon, lat) in enumerate(plots.lonlat_N2):
            numbers = {name: float(f"{values_N[row]:.7g}") for name, values_N in found.items()}
            area = {"area": AREA[bool(found["applicability"][row] <= 1)]} if "applicability" in found else {}
            answers.append({"longitude": round(float(lon), 6), "latitude": round(float(lat), 6), **numbers, **area})
        return answers

    def points(
        self,
        source: object,
        rasters: Sequence[str | os.PathLike] | None = None,
        target: str | None = None,
        **reading: str,
    ) -> Points:
        """The points of a source, with what the model needs of them; `reading` are x, y and crs of open_points."""
        if isinstance(source, list | tuple) and len(source) == 1:
            source = source[0]
        if isinstance(source, Plots):
            names = tuple(source.name(row) for row in range(len(source)))
            return Points(self._fitted(source), np.arange(len(source)), {}, names)
        if not isinstance(source, str | os.PathLike):
            raise MiradaError(f"{source!r}: this model answers about one file of points at a time; give one.")
        needs = dataclasses.replace(self.needs, target=target)
        reading = self._reading(Path(source)) | reading
        return open_points(source, needs, **reading, rasters=self._rasters(rasters))

    def _all(self, source: object, rasters: Sequence[str | os.PathLike] | None) -> Points:
        points = self.points(source, rasters)
        for row, reason in points.reasons.items():
            raise MiradaError(f"{points.names[row]} {reason}.")
        return points

    @property
    def _own(self) -> DataConfig | None:
        """How the run read its plots; an exported model has forgotten it."""
        return self.config.data if self.folder.config.exists() else None

    def _rasters(self, given: Sequence[str | os.PathLike] | None) -> Sequence[str | os.PathLike]:
        if given is not None or self._own is None:
            return given or ()
        return self._own.rasters

    def _reading(self, path: Path) -> dict[str, str]:
        """The columns of the run, if this table has them too, and the CRS of the run where names do not say it."""
        reading, own = {"crs": self.data["crs"]}, self._own
        if own is not None and own.x_column and own.y_column and is_table(path) and path.is_file():
            has_both = {own.x_column, own.y_column} <= set(read_header(path))
            reading |= {"x": own.x_column, "y": own.y_column} if has_both else {}
        return reading

    def _fitted(self, plots: Plots) -> Plots:
        bands = () if plots.chips is None else plots.chips.band_names
        if (bands, plots.covariate_names) != (self.needs.bands, self.needs.covariates):
            raise MiradaError(
                f"{plots.source}: these plots have other bands or covariates than the model, which needs "
                f"{', '.join((*self.needs.bands, *self.needs.covariates)) or 'none'} in this order."
            )
        return plots


def plots_run(run: str | Path | RunFolder | Trained, device: str = "auto") -> TrainedPlots:
    """A trained model of plots."""
    trained = run if isinstance(run, Trained) else load(run, device=device)
    if not isinstance(trained, TrainedPlots):
        raise MiradaError(
            f"{trained.folder.path}: this model was not trained on plots, so it has no map; "
            "`mirada train plots.csv` makes one that has."
        )
    return trained
