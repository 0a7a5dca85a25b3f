"""Running text: learn a vector for every word from the words around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.config.schema import Config
from mirada.data.batches import Batch
from mirada.data.text.skipgram_batches import SkipgramBatches, skipgram_evaluation
from mirada.tasks.intervals import wilson
from mirada.tasks.objective import Objective
from mirada.tasks.tokens import Neighbouring
from mirada.tasks.vectors import neighbours
from mirada.train.folder import RunFolder
from mirada.verbs.text.prepared import PreparedText

NUM_WORDS, NUM_NEIGHBOURS = 200, 8
EVALUATION_BATCH = 4096


@dataclass(frozen=True, eq=False)
class PreparedVectors(PreparedText):
    """Words and those around them, line by line."""

    task_name = "embed"
    default_preset = "word-vectors"
    systems = ("word2vec",)

    def why(self) -> str:
        return f"{len(self.split.train):,} lines whose words get vectors"

    def training(self, config: Config) -> SkipgramBatches:
        return SkipgramBatches(
            self.encoded("train"),
            self._counts(),
            batch_size=config.train.batch_size,
            seed=config.train.seed,
        )

    def task(self, config: Config) -> Neighbouring:
        return Neighbouring()

    def objective(self, task: Neighbouring) -> Objective:
        return task.objective

    def watched(self, model: nn.Module, task: Neighbouring, device: torch.device) -> dict[str, float]:
        return task.quick(model, self.evaluation("val"), device)

    def judged(
        self, folder: RunFolder, model: nn.Module, task: Neighbouring, device: torch.device
    ) -> tuple[dict, list[dict]]:
        """How often a true neighbour scores above a drawn word on held-out lines, and who is near whom."""
        side = self.held_out
        quick = task.quick(model, self.evaluation(side), device)
        num_asked = sum(batch.targets[:, 1:].numel() for batch in self.evaluation(side))
        low, high = wilson(round(quick["ranking"] * num_asked), num_asked)
        vectors_TD = model.vectors.detach().cpu()  # type: ignore[operator]
        frequent = self._counts().argsort(descending=True, stable=True)
        special = set(self.tokeniser.special.values())
        words = [int(token) for token in frequent if int(token) not in special][:NUM_WORDS]
        lines = []
        for row, word in enumerate(words):
            near = neighbours(vectors_TD, word, NUM_NEIGHBOURS + len(special))
            shown = [(token, cosine) for token, cosine in near if token not in special][:NUM_NEIGHBOURS]
            told = ", ".join(f"{self.tokeniser.tokens([token])[0]} {cosine:.2f}" for token, cosine in shown)
            lines.append({"name": self.tokeniser.tokens([word])[0], "row": row, "neighbours": told})
        result = {
            "split": side,
            "inputs": self.inputs,
            "task": self.task_name,
            "metric": "ranking",
            "value": quick["ranking"],
            "low": low,
            "high": high,
            "interval": "Wilson, 95 %",
            "n": num_asked,
            "majority": 0.5,
            **quick,
        }
        return result, lines

    def can_ask(self, side: str) -> bool:
        return any(len(text) > 1 for text in self.encoded(side))

    def describe(self) -> dict:
        return super().describe() | {"token_counts": self.counts("train").tolist()}

    def evaluation(self, side: str) -> Iterator[Batch]:
        return skipgram_evaluation(self.encoded(side), self._counts(), batch_size=EVALUATION_BATCH)

    def _counts(self) -> Tensor:
        return torch.from_numpy(self.counts("train"))
