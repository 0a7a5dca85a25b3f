"""What the outputs of a model of a field mean: a number per place, and how sure the model is of it.

Targets are standardised inside, z = (y − μ)/σ with μ and σ of the training rows, and everything given back is in the
target's unit. Outputs are those of one model (M = 1) or of the members of an ensemble; the loss is the mean over
members, and the members' variance adds to their own (law of total variance). Shape letters: B rows, M members,
T outputs.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

COVERAGE = 0.9  # of the bounds that the quantile head is trained for
SMALLEST_STD = 1e-3  # in units of σ: a likelihood has no maximum when a spread may become zero
SMALLEST_DISPERSION = 1e-4


class Head(Protocol):
    """Loss, values and spread of outputs (B, M, T)."""

    num_outputs: int
    lowest: float  # no target is smaller

    def loss(self, outputs_BMT: Tensor, targets_B: Tensor) -> Tensor: ...
    def members(self, outputs_BMT: Tensor) -> Tensor:
        """(B, M) the prediction of each member."""
        ...

    def scale(self, outputs_BMT: Tensor) -> Tensor:
        """(B,) how far off the head expects to be, up to a factor."""
        ...

    def bounds(self, outputs_BMT: Tensor, coverage: float) -> tuple[Tensor, Tensor]: ...


class Gaussian:
    """loss = ½ ((z − m)/s)² + log s, with m = o₁ and s = softplus(o₂): a mean and a standard deviation per place."""

    num_outputs = 2
    lowest = -math.inf

    def __init__(self, mean: float, std: float) -> None:
        self.mean, self.std = mean, std

    def loss(self, outputs_BMT: Tensor, targets_B: Tensor) -> Tensor:
        z_B1 = ((targets_B - self.mean) / self.std)[:, None]
        std_BM = self._std(outputs_BMT)
        return (((z_B1 - outputs_BMT[..., 0]) / std_BM).square() / 2 + std_BM.log()).mean()

    def members(self, outputs_BMT: Tensor) -> Tensor:
        return outputs_BMT[..., 0] * self.std + self.mean

    def scale(self, outputs_BMT: Tensor) -> Tensor:
        within_B = (self._std(outputs_BMT) * self.std).square().mean(1)
        return (within_B + self.members(outputs_BMT).var(1, correction=0)).sqrt()

    def bounds(self, outputs_BMT: Tensor, coverage: float) -> tuple[Tensor, Tensor]:
        return _around(self.members(outputs_BMT).mean(1), _normal_width(coverage) * self.scale(outputs_BMT))

    def _std(self, outputs_BMT: Tensor) -> Tensor:
        return F.softplus(outputs_BMT[..., 1]) + SMALLEST_STD


class Count:
    """loss = − log NB(y; m, α), a negative binomial of mean m and variance m + α m².

    m = σ softplus(o₁ + a), where a makes o₁ = 0 the mean of the training rows: standardised far from zero, never
    negative, and not exponential, so that an unusual place does not get a million species. α = α₀ softplus(o₂ + b),
    where o₂ = 0 gives α₀, the dispersion of the training rows.
    """

    num_outputs = 2
    lowest = 0.0

    def __init__(self, mean: float, std: float) -> None:
        mean = max(mean, 1e-3 * std)
        self.std = std
        self.mean_shift = _inverse_softplus(mean / std)
        self.dispersion = max((std**2 - mean) / mean**2, 0.01)
        self.dispersion_shift = _inverse_softplus(1.0)

    def loss(self, outputs_BMT: Tensor, targets_B: Tensor) -> Tensor:
        # lgamma(y + 1/α) − lgamma(1/α) has no digit left in float32 when α is small; only mps has no float64.
        given = torch.promote_types(outputs_BMT.dtype, torch.float32)
        exact = torch.float32 if outputs_BMT.device.type == "mps" else torch.float64
        outputs_BMT, y_B1 = outputs_BMT.to(exact), targets_B.to(exact)[:, None]
        mean_BM, dispersion_BM = self.members(outputs_BMT), self._dispersion(outputs_BMT)
        size_BM, product_BM = 1 / dispersion_BM, dispersion_BM * mean_BM
        log_likelihood_BM = (
            torch.lgamma(y_B1 + size_BM)
            - torch.lgamma(size_BM)
            - torch.lgamma(y_B1 + 1)
            + torch.xlogy(y_B1, product_BM)
            - (y_B1 + size_BM) * product_BM.log1p()
        )
        return -log_likelihood_BM.mean().to(given)

    def members(self, outputs_BMT: Tensor) -> Tensor:
        # softplus is 0 in float32 below −104; a count of nothing must still have a logarithm.
        return self.std * F.softplus(outputs_BMT[..., 0] + self.mean_shift).clamp(min=1e-12)

    def scale(self, outputs_BMT: Tensor) -> Tensor:
        mean_BM = self.members(outputs_BMT)
        within_BM = mean_BM + self._dispersion(outputs_BMT) * mean_BM.square()
        return (within_BM.mean(1) + mean_BM.var(1, correction=0)).sqrt()

    def bounds(self, outputs_BMT: Tensor, coverage: float) -> tuple[Tensor, Tensor]:
        """Quantiles of the negative binomial that has the members' mean and variance."""
        from scipy.stats import nbinom

        mean = self.members(outputs_BMT).mean(1).double().cpu().numpy()
        variance = self.scale(outputs_BMT).square().double().cpu().numpy()
        size = mean**2 / (variance - mean).clip(SMALLEST_DISPERSION * mean**2)
        tail = (1 - coverage) / 2
        low, high = (nbinom.ppf(share, size, size / (size + mean)) for share in (tail, 1 - tail))
        return torch.from_numpy(low).to(outputs_BMT), torch.from_numpy(high).to(outputs_BMT)

    def _dispersion(self, outputs_BMT: Tensor) -> Tensor:
        return self.dispersion * F.softplus(outputs_BMT[..., 1] + self.dispersion_shift) + SMALLEST_DISPERSION


class Quantile:
    """loss = mean over τ of max(τ e, (τ − 1) e), e = z − q_τ, for τ = 5 %, 50 % and 95 % (pinball loss).

    q₅₀ = o₁, q₅ = o₁ − softplus(o₂), q₉₅ = o₁ + softplus(o₃): the three cannot cross. The prediction is the median.
    """

    num_outputs = 3
    lowest = -math.inf

    def __init__(self, mean: float, std: float) -> None:
        self.mean, self.std = mean, std

    def loss(self, outputs_BMT: Tensor, targets_B: Tensor) -> Tensor:
        z_B11 = ((targets_B - self.mean) / self.std)[:, None, None]
        error_BM3 = z_B11 - torch.stack(self._quantiles(outputs_BMT), dim=-1)
        level_3 = error_BM3.new_tensor([(1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2])
        return torch.maximum(level_3 * error_BM3, (level_3 - 1) * error_BM3).mean()

    def members(self, outputs_BMT: Tensor) -> Tensor:
        return outputs_BMT[..., 0] * self.std + self.mean

    def scale(self, outputs_BMT: Tensor) -> Tensor:
        """Half the width of the bounds."""
        low_B, high_B = self.bounds(outputs_BMT, COVERAGE)
        return (high_B - low_B) / 2

    def bounds(self, outputs_BMT: Tensor, coverage: float) -> tuple[Tensor, Tensor]:
        """The mean of the members' bounds; for a coverage other than 90 %, widened on each side as a normal would."""
        low_B, median_B, high_B = (q_BM.mean(1) * self.std + self.mean for q_BM in self._quantiles(outputs_BMT))
        ratio = _normal_width(coverage) / _normal_width(COVERAGE)
        return median_B - ratio * (median_B - low_B), median_B + ratio * (high_B - median_B)

    def _quantiles(self, outputs_BMT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        median_BM, below_BM, above_BM = outputs_BMT.unbind(-1)
        return median_BM - F.softplus(below_BM), median_BM, median_BM + F.softplus(above_BM)


class RootMeanSquare:
    """loss = √(mean (z − o)²), the loss of Guo et al. 2025; with μ = 0 and σ = 1 it is theirs to the letter.

    It says nothing of how sure it is, so its bounds are as wide as its members disagree: of one model, nothing.
    """

    num_outputs = 1
    lowest = -math.inf

    def __init__(self, mean: float, std: float) -> None:
        self.mean, self.std = mean, std

    def loss(self, outputs_BMT: Tensor, targets_B: Tensor) -> Tensor:
        error_BM = ((targets_B - self.mean) / self.std)[:, None] - outputs_BMT[..., 0]
        # A norm has the gradient 0 where all errors are 0; the root of a mean has none.
        return torch.linalg.vector_norm(error_BM, dim=0).mean() / math.sqrt(len(error_BM))

    def members(self, outputs_BMT: Tensor) -> Tensor:
        return outputs_BMT[..., 0] * self.std + self.mean

    def scale(self, outputs_BMT: Tensor) -> Tensor:
        """The same everywhere."""
        return torch.ones_like(outputs_BMT[:, 0, 0])

    def bounds(self, outputs_BMT: Tensor, coverage: float) -> tuple[Tensor, Tensor]:
        member_BM = self.members(outputs_BMT)
        return _around(member_BM.mean(1), _normal_width(coverage) * member_BM.std(1, correction=0))


def _around(centre_B: Tensor, half_width_B: Tensor) -> tuple[Tensor, Tensor]:
    return centre_B - half_width_B, centre_B + half_width_B


def _normal_width(coverage: float) -> float:
    """Half the width, in standard deviations, of what holds this share of a normal distribution."""
    return NormalDist().inv_cdf((1 + coverage) / 2)


def _inverse_softplus(value: float) -> float:
    return value + math.log(-math.expm1(-value))
