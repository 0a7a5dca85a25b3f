"""Predicting tokens: the next one, hidden ones, or those of a translation. Shape letters: B rows of a batch, N tokens,
T tokens of the vocabulary, S all sequences.

    loss = − (1/n) Σ_n log p(t_n),      perplexity = exp(loss)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.data.batches import Batch
from mirada.data.masked_tokens import IGNORED
from mirada.systems.word2vec import negative_sampling_loss
from mirada.tasks.intervals import bootstrap


@dataclass(frozen=True)
class Tally:
    """Of every sequence: the sum of −log p of its tokens, how many these are, and how many were the likeliest."""

    nats_S: np.ndarray
    count_S: np.ndarray
    right_S: np.ndarray
    row_S: np.ndarray

    @property
    def nats(self) -> float:
        """Per token."""
        return float(self.nats_S.sum() / self.count_S.sum())

    def quick(self) -> dict[str, float]:
        """What is watched during training."""
        right = float(self.right_S.sum() / self.count_S.sum())
        return {"loss": self.nats, "perplexity": perplexity(self.nats), "token_accuracy": right}

    def interval(self) -> tuple[float, float]:
        """Of the nats per token, over sequences drawn anew."""

        def nats(rows: np.ndarray) -> float:
            return self.nats_S[rows].sum() / self.count_S[rows].sum()

        return bootstrap(nats, len(self.nats_S))


class Tokens:
    """loss = cross-entropy of the targets that are asked for (not IGNORED), smoothed by ε over the vocabulary."""

    metric = "perplexity"

    def __init__(self, *, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def asked(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """(logits_BNT, wanted_BN) of a batch."""
        return model(inputs), targets

    def objective(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        logits_BNT, wanted_BN = self.asked(model, inputs, targets)
        return F.cross_entropy(
            logits_BNT.flatten(0, 1), wanted_BN.flatten(), ignore_index=IGNORED, label_smoothing=self.label_smoothing
        )

    @torch.inference_mode()
    def tally(self, model: nn.Module, batches: Iterable[Batch], device: torch.device) -> Tally:
        """The model is left in evaluation mode."""
        model.eval()
        parts: list[list[np.ndarray]] = []
        for batch in batches:
            logits_BNT, wanted_BN = self.asked(model, batch.inputs.to(device), batch.targets.to(device))
            nats_BN = F.cross_entropy(logits_BNT.mT.float(), wanted_BN, ignore_index=IGNORED, reduction="none")
            is_asked_BN = wanted_BN != IGNORED
            right_BN = (logits_BNT.argmax(-1) == wanted_BN) & is_asked_BN
            sums = (nats_BN.double().sum(1), is_asked_BN.sum(1), right_BN.sum(1), batch.rows)
            parts.append([each.cpu().numpy() for each in sums])
        return Tally(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def result(self, tally: Tally) -> dict:
        """What is said about held-out text; `characters` is how many the asked tokens stand for, where all are."""
        low, high = tally.interval()
        return {
            "metric": self.metric,
            "value": perplexity(tally.nats),
            "low": perplexity(low),
            "high": perplexity(high),
            "interval": "bootstrap over sequences, 95 %",
            "n": len(tally.nats_S),
            "num_tokens_asked": int(tally.count_S.sum()),
            **tally.quick(),
        }


class Translated(Tokens):
    """The tokens of a translation, each after the true ones before it (teacher forcing)."""

    def __init__(self, *, pad: int, label_smoothing: float = 0.0) -> None:
        super().__init__(label_smoothing=label_smoothing)
        self.pad = pad

    def asked(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        wanted_BN = targets[:, 1:]
        return model(inputs, targets[:, :-1]), wanted_BN.masked_fill(wanted_BN == self.pad, IGNORED)


class Neighbouring:
    """loss = − log σ(v_c·u_o) − Σ_k log σ(−v_c·u_k): the true neighbour, then drawn ones (Mikolov 2013, eq. 4)."""

    metric = "loss"

    def objective(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return negative_sampling_loss(model(inputs, targets))

    @torch.inference_mode()
    def quick(self, model: nn.Module, batches: Iterable[Batch], device: torch.device) -> dict[str, float]:
        model.eval()
        scores = [model(batch.inputs.to(device), batch.targets.to(device)) for batch in batches]
        score_SK = torch.cat(scores).float()
        is_above_SK = score_SK[:, :1] > score_SK[:, 1:]
        return {"loss": negative_sampling_loss(score_SK).item(), "ranking": is_above_SK.double().mean().item()}


def perplexity(nats: float) -> float:
    return math.exp(min(nats, 700.0))


def nats_of_frequencies(count_T: np.ndarray, held_out_T: np.ndarray) -> float:
    """Nats per token of a model that knows how frequent tokens are and nothing else; unseen ones count as seen once."""
    known_T = count_T + 1.0
    return float(-(held_out_T * np.log(known_T / known_T.sum())).sum() / held_out_T.sum())
