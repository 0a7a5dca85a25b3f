"""Predicting tokens: the next one, hidden ones, or those of a translation.

    loss = − (1/n) Σ_n log p(t_n),      perplexity = exp(loss)

Shape letters: B rows of a batch, N tokens, A those that are asked for, T tokens of the vocabulary, S all sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.data.batches import Batch
from mirada.data.masked_tokens import IGNORED
from mirada.errors import MiradaError
from mirada.machine.processes import together
from mirada.systems.word2vec import negative_sampling_loss
from mirada.tasks.intervals import bootstrap

LOGITS_AT_ONCE = 2**25  # 128 MB of float32, in evaluation
NOTHING_ASKED = "there is no token to ask for in this part of the text; give more text, or longer ones."


@dataclass(frozen=True)
class Tally:
    """Of every sequence: the sum of −log p of its tokens, how many these are, and how many were the likeliest."""

    nats_S: np.ndarray
    count_S: np.ndarray
    right_S: np.ndarray
    row_S: np.ndarray

    def __post_init__(self) -> None:
        if not self.count_S.sum():
            raise MiradaError(NOTHING_ASKED)

    @property
    def nats(self) -> float:
        """Per token."""
        return float(self.nats_S.sum() / self.count_S.sum())

    def quick(self) -> dict[str, float]:
        """What is watched during training."""
        right = float(self.right_S.sum() / self.count_S.sum())
        return {"loss": self.nats, "perplexity": perplexity(self.nats), "token_accuracy": right}

    def interval(self) -> tuple[float, float]:
        """Of the nats per token, over sequences drawn anew, of those that have tokens to ask for."""
        asked = self.count_S > 0
        nats_S, count_S = self.nats_S[asked], self.count_S[asked]
        return bootstrap(lambda rows: nats_S[rows].sum() / count_S[rows].sum(), len(nats_S))


class Tokens:
    """loss = cross-entropy of the targets that are asked for (not IGNORED), smoothed by ε over the vocabulary."""

    metric = "perplexity"

    def __init__(self, *, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def wanted(self, targets: Tensor) -> Tensor:
        """(B, N) tokens, IGNORED where none is asked for."""
        return targets

    def logits(self, model: nn.Module, inputs: Tensor, targets: Tensor, asked_BN: Tensor) -> Tensor:
        """(A, T) of the tokens that are asked for, row by row."""
        return model(inputs, asked_BN=asked_BN)

    def objective(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        wanted_BN = self.wanted(targets)
        asked_BN = wanted_BN != IGNORED
        logits_AT = self.logits(model, inputs, targets, asked_BN)
        return F.cross_entropy(logits_AT, wanted_BN[asked_BN], label_smoothing=self.label_smoothing)

    def measure(self, targets: Tensor) -> float:
        """What the objective divides by."""
        return float((self.wanted(targets) != IGNORED).sum())

    @torch.inference_mode()
    def tally(self, model: nn.Module, batches: Iterable[Batch], device: torch.device) -> Tally:
        """Processes that work together share the batches. The model is left in evaluation mode."""
        model.eval()
        parts: list[tuple[np.ndarray, ...]] = []
        processes = together()
        for rows_B, logits_AT, wanted_BN in self._pieces(model, processes.share(batches), device):
            asked_BN = wanted_BN != IGNORED
            wanted_A = wanted_BN[asked_BN]
            nats_BN = torch.zeros(asked_BN.shape, device=device)
            nats_BN[asked_BN] = F.cross_entropy(logits_AT.float(), wanted_A, reduction="none")
            right_BN = torch.zeros_like(asked_BN)
            right_BN[asked_BN] = logits_AT.argmax(-1) == wanted_A
            sums = (nats_BN.cpu().double().sum(1), asked_BN.sum(1), right_BN.sum(1), rows_B)
            parts.append(tuple(each.cpu().numpy() for each in sums))
        parts = processes.gathered(parts)
        if not parts:
            raise MiradaError(NOTHING_ASKED)
        return Tally(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _pieces(
        self, model: nn.Module, batches: Iterable[Batch], device: torch.device
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """(rows_B, logits_AT, wanted_BN) of as many rows of a batch as give LOGITS_AT_ONCE, but at least of one."""
        num_tokens = LOGITS_AT_ONCE  # of the vocabulary: not known before the first row
        for batch in batches:
            first = 0
            while first < len(batch.rows):
                asked_B = (self.wanted(batch.targets[first:]) != IGNORED).sum(1)
                count = max(1, int((asked_B.cumsum(0) * num_tokens <= LOGITS_AT_ONCE).sum()))
                some = slice(first, first + count)
                inputs, targets = batch.inputs[some].to(device), batch.targets[some].to(device)
                wanted_BN = self.wanted(targets)
                logits_AT = self.logits(model, inputs, targets, wanted_BN != IGNORED)
                yield batch.rows[some], logits_AT, wanted_BN
                first, num_tokens = first + count, logits_AT.shape[1]

    def result(self, tally: Tally) -> dict:
        """What is said about held-out text."""
        low, high = tally.interval()
        return {
            "metric": self.metric,
            "value": perplexity(tally.nats),
            "low": perplexity(low),
            "high": perplexity(high),
            "interval": "bootstrap over sequences, 95 %",
            "n": int((tally.count_S > 0).sum()),
            "num_tokens_asked": int(tally.count_S.sum()),
            **tally.quick(),
        }


class Translated(Tokens):
    """The tokens of a translation, each after the true ones before it (teacher forcing)."""

    def __init__(self, *, pad: int, label_smoothing: float = 0.0) -> None:
        super().__init__(label_smoothing=label_smoothing)
        self.pad = pad

    def wanted(self, targets: Tensor) -> Tensor:
        wanted_BN = targets[:, 1:]
        return wanted_BN.masked_fill(wanted_BN == self.pad, IGNORED)

    def logits(self, model: nn.Module, inputs: Tensor, targets: Tensor, asked_BN: Tensor) -> Tensor:
        return model(inputs, targets[:, :-1], asked_BN=asked_BN)


class Neighbouring:
    """loss = − log σ(v_c·u_o) − Σ_k log σ(−v_c·u_k): the true neighbour, then drawn ones (Mikolov 2013, eq. 4)."""

    metric = "loss"

    def objective(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return negative_sampling_loss(model(inputs, targets))

    @torch.inference_mode()
    def quick(self, model: nn.Module, batches: Iterable[Batch], device: torch.device) -> dict[str, float]:
        model.eval()
        scores = [model(batch.inputs.to(device), batch.targets.to(device)) for batch in batches]
        if not scores:
            raise MiradaError(NOTHING_ASKED)
        score_SK = torch.cat(scores).float()
        is_above_SK = score_SK[:, :1] > score_SK[:, 1:]
        return {"loss": negative_sampling_loss(score_SK).item(), "ranking": is_above_SK.double().mean().item()}


def perplexity(nats: float) -> float:
    return math.exp(min(nats, 700.0))


def nats_of_frequencies(count_T: np.ndarray, held_out_T: np.ndarray) -> float:
    """Nats per token of a model that knows how frequent tokens are and nothing else; unseen ones count as seen once."""
    known_T = count_T + 1.0
    return float(-(held_out_T * np.log(known_T / known_T.sum())).sum() / held_out_T.sum())
