"""What a model of plots says of a place, and how far to believe it.

    prediction      the mean of the members, in the target's unit
    low, high       prediction ± q · scale, q from residuals of held-out blocks (mirada.tasks.conformal)
    spread          the standard deviation of the members, or of draws of thinned networks
    applicability   dissimilarity to the training plots, in thresholds: up to 1 is inside the area of applicability

Shape letters: P places, M members (of one model, or of all draws), T outputs, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from safetensors.numpy import load_file
from torch import Tensor

from mirada.tasks.applicability import Applicability
from mirada.tasks.conformal import Conformal
from mirada.tasks.field import Field
from mirada.tasks.field_heads import COVERAGE
from mirada.train.files import read_json
from mirada.train.folder import RunFolder


@dataclass(frozen=True, eq=False)
class Certainty:
    """What the validation of a run found, applied to outputs of its model."""

    task: Field
    conformal: Conformal | None
    area: Applicability | None
    notes: tuple[str, ...]  # what is missing, and what stands in for it

    @property
    def coverage(self) -> float:
        """What the intervals are to hold."""
        return COVERAGE if self.conformal is None else self.conformal.coverage

    def of(self, outputs_PMT: Tensor, samples_PL: np.ndarray, drawn_PMT: Tensor | None = None) -> dict[str, np.ndarray]:
        """float32 (P,) by name, as listed above; spread and applicability only where there are any.

        samples_PL: bands, covariates, longitude and latitude of the places themselves, not scaled.
        """
        values_P = self.task.values(outputs_PMT).numpy()
        low_P, high_P = self._interval(outputs_PMT, values_P)
        found = {"prediction": values_P, "low": low_P, "high": high_P}
        many_PMT = outputs_PMT if drawn_PMT is None else drawn_PMT
        if many_PMT.shape[1] > 1:
            found["spread"] = self.task.spread(many_PMT).numpy()
        if self.area is not None:
            found["applicability"] = self._applicability(samples_PL)
        return found

    def _interval(self, outputs_PMT: Tensor, values_P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.conformal is not None:
            scales = self.task.scale(outputs_PMT).numpy() if self.conformal.normalised else None
            return self.conformal.interval(values_P, scales, lowest=self.task.lowest)
        low_P, high_P = (bound.numpy() for bound in self.task.bounds(outputs_PMT))
        # The mean of a skewed head may lie outside its own quantiles.
        return np.minimum(low_P, values_P), np.maximum(high_P, values_P)

    def _applicability(self, samples_PL: np.ndarray) -> np.ndarray:
        """Places without data are not looked up, which is what takes long."""
        assert self.area is not None
        index_P = np.full(len(samples_PL), np.nan, dtype=np.float32)
        usable_P = np.isfinite(samples_PL[:, -2:]).all(axis=1)
        index_P[usable_P] = self.area.index(samples_PL[usable_P]) / np.float32(self.area.threshold)
        return index_P


def certainty_of(folder: RunFolder, task: Field, scheme: str | None) -> Certainty:
    """From validation.json and applicability.safetensors; `scheme` is how the run held out plots."""
    missing: list[str] = []
    conformal, area = None, None
    own = f"low and high are the model's own {COVERAGE:.0%} bounds, which nobody has checked"
    if not folder.validation.exists():
        missing.append(f"The run has no validation: {own}.")
    else:
        schemes = read_json(folder.validation)["schemes"]
        entry = schemes.get(scheme) or schemes.get("blocked") or next(iter(schemes.values()))
        if "conformal" in entry:
            conformal = Conformal.from_dict(entry["conformal"])
        else:
            missing.append(f"{entry['no_intervals'][:1].upper()}{entry['no_intervals'][1:].rstrip('.')}: {own}.")
    if folder.applicability.exists():
        area = Applicability.from_arrays(load_file(folder.applicability))
    else:
        missing.append("The run knows no area of applicability: nothing says where the model is asked too much.")
    return Certainty(task, conformal, area, tuple(missing))
