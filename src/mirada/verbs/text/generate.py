"""Running text: learn to go on writing it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.config.schema import Config, TextConfig
from mirada.data.batches import Batch
from mirada.data.text.stream_batches import StreamBatches, stream_evaluation
from mirada.data.text.tokeniser import Tokeniser
from mirada.tasks.tokens import Tokens, nats_of_frequencies, perplexity
from mirada.tasks.writing import Draw, Writer
from mirada.train.folder import RunFolder
from mirada.verbs.text.prepared import PreparedText, learn

NUM_SAMPLES, SAMPLE_TOKENS = 3, 300
EVALUATION_BATCH = 32
PIECE = 200_000  # characters that are encoded at once


@dataclass(frozen=True, eq=False)
class PreparedStream(PreparedText):
    """The sides of the split are stretches of one text."""

    task_name = "generate"
    default_preset = "language"
    systems = ("gpt",)

    def why(self) -> str:
        return f"running text of {sum(map(len, self.texts('train'))):,} characters to train on"

    def arguments(self) -> dict:
        return {**super().arguments(), "max_length": self.text.max_length}

    def training(self, config: Config) -> StreamBatches:
        return StreamBatches(
            self.tokens("train"),
            length=self.text.max_length,
            batch_size=config.train.batch_size,
            seed=config.train.seed,
        )

    def task(self, config: Config) -> Tokens:
        return Tokens(label_smoothing=config.train.label_smoothing)

    def watched(self, model: nn.Module, task: Tokens, device: torch.device) -> dict[str, float]:
        return task.tally(model, self.evaluation("val"), device).quick()

    def judged(
        self, folder: RunFolder, model: nn.Module, task: Tokens, device: torch.device
    ) -> tuple[dict, list[dict]]:
        """Perplexity on the held-out stretch, and what the model writes by itself."""
        side = self.held_out
        tally = task.tally(model, self.evaluation(side), device)
        tokens_N = self.tokens(side)
        lines = [
            {
                "name": f"{side}, token {offset:,}",
                "row": offset,
                "nats_per_token": round(nats / count, 4),
                "text": self.tokeniser.decode(tokens_N[offset : offset + self.text.max_length]),
            }
            for offset, nats, count in zip(tally.row_S.tolist(), tally.nats_S, tally.count_S, strict=True)
        ]
        seen, asked = (self.counts(name) for name in ("train", side))
        characters = len("".join(self.texts(side)))
        result = {
            "split": side,
            "inputs": self.inputs,
            "task": self.task_name,
            **task.result(tally),
            "bits_per_character": tally.nats_S.sum() / math.log(2) / characters,
            "majority": perplexity(nats_of_frequencies(seen, asked)),
            "samples": self._samples(model, device),
        }
        return result, lines

    def learned_tokeniser(self, text: TextConfig) -> Tokeniser:
        return learn(pieces(self.texts("train")), text)

    def encoded(self, side: str) -> list[list[int]]:
        """Large pieces, not lines: in learning and in use the first word of a line is one after a line end."""
        return self._kept(side, lambda: self.tokeniser.encode_many(pieces(self.texts(side))))

    def tokens(self, side: str) -> Tensor:
        """(N,) the stretch of text as one row of tokens."""

        def row() -> Tensor:
            found = [torch.tensor(piece, dtype=torch.int32) for piece in self.encoded(side)]
            return torch.cat(found) if found else torch.empty(0, dtype=torch.int32)

        return self._kept(f"row of {side}", row)

    def can_ask(self, side: str) -> bool:
        return len(self.tokens(side)) > 1

    def describe(self) -> dict:
        return super().describe() | {"token_counts": self.counts("train").tolist()}

    def evaluation(self, side: str) -> Iterator[Batch]:
        return stream_evaluation(self.tokens(side), batch_size=EVALUATION_BATCH, length=self.text.max_length)

    def _samples(self, model: nn.Module, device: torch.device) -> list[str]:
        writer = Writer(model, self.tokeniser, self.text.max_length, device)
        return writer.write("\n", count=NUM_SAMPLES, max_tokens=SAMPLE_TOKENS, draw=Draw(temperature=0.8, seed=0))


def pieces(lines: list[str]) -> list[str]:
    """The text in pieces of about PIECE characters that end where lines end."""
    found, piece, length = [], [], 0
    for line in lines:
        piece.append(line)
        length += len(line)
        if length >= PIECE:
            found.append("".join(piece))
            piece, length = [], 0
    return [*found, "".join(piece)] if piece else found
