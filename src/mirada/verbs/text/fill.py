"""Lines of text: learn to fill in hidden words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from mirada.config.schema import Config
from mirada.data.batches import Batch
from mirada.data.text.masked_batches import MaskedBatches, masked_evaluation
from mirada.tasks.tokens import Tokens, nats_of_frequencies, perplexity
from mirada.train.folder import RunFolder
from mirada.verbs.text.prepared import PreparedText
from mirada.verbs.text.senses import require_senses, sense_results

EVALUATION_BATCH = 64


@dataclass(frozen=True, eq=False)
class PreparedMasked(PreparedText):
    """Every line is a text of its own."""

    task_name = "fill"
    default_preset = "masked-text"
    systems = ("bert",)

    def why(self) -> str:
        return f"{len(self.split.train):,} lines to train on, of which words are hidden and asked for"

    def arguments(self) -> dict:
        return {**super().arguments(), "max_length": self.text.max_length}

    def training(self, config: Config) -> MaskedBatches:
        return MaskedBatches(
            self.encoded("train"),
            self.tokeniser,
            rows=self.split.train,
            batch_size=config.train.batch_size,
            max_length=self.text.max_length,
            share=self.text.masked,
            whole_words=self.text.whole_words,
            seed=config.train.seed,
        )

    def task(self, config: Config) -> Tokens:
        return Tokens(label_smoothing=config.train.label_smoothing)

    def watched(self, model: nn.Module, task: Tokens, device: torch.device) -> dict[str, float]:
        return task.tally(model, self.evaluation("val"), device).quick()

    def judged(
        self, folder: RunFolder, model: nn.Module, task: Tokens, device: torch.device
    ) -> tuple[dict, list[dict]]:
        """How well hidden tokens of held-out lines are known; every line is hidden in the same places each time."""
        side = self.held_out
        tally = task.tally(model, self.evaluation(side), device)
        lines = [
            {
                "name": self.name(row),
                "row": row,
                "text": self.table.texts[row].strip(),
                "asked": int(count),
                "right": int(right),
                "nats_per_token": round(float(nats / max(count, 1)), 4),
            }
            for row, nats, count, right in zip(
                tally.row_S.tolist(), tally.nats_S, tally.count_S, tally.right_S, strict=True
            )
        ]
        seen, asked = (self.counts(name) for name in ("train", side))
        result = {
            "split": side,
            "inputs": self.inputs,
            "task": self.task_name,
            **task.result(tally),
            "majority": perplexity(nats_of_frequencies(seen, asked)),
            **sense_results(self, model, device),
        }
        return result, lines

    def require_suitable(self, config: Config) -> None:
        super().require_suitable(config)
        require_senses(self)

    def describe(self) -> dict:
        return super().describe() | {"token_counts": self.counts("train").tolist()}

    def can_ask(self, side: str) -> bool:
        """Whether there is a token that can be hidden: not an unknown one."""
        known = set(self.tokeniser.ordinary.tolist())
        return any(not known.isdisjoint(text) for text in self.encoded(side))

    def evaluation(self, side: str) -> Iterator[Batch]:
        return masked_evaluation(
            self.encoded(side),
            self.tokeniser,
            rows=self.split.rows(side),
            batch_size=EVALUATION_BATCH,
            max_length=self.text.max_length,
            share=self.text.masked,
            whole_words=self.text.whole_words,
        )
