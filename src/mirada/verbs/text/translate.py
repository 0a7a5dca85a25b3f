"""Pairs of sentences: learn to translate the first into the second."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from mirada.config.schema import Config, TextConfig
from mirada.data.batches import Batch
from mirada.data.text.pair_batches import PairBatches, pair_evaluation
from mirada.data.text.tokeniser import Tokeniser
from mirada.tasks.bleu import quick_scores, require_sacrebleu, scores
from mirada.tasks.tokens import Tokens, Translated
from mirada.tasks.translation import Translator
from mirada.train.files import write_text
from mirada.train.folder import RunFolder
from mirada.verbs.text.prepared import PreparedText, learn

WATCHED = 200  # validation sentences that are translated, greedily, at every evaluation
JUDGED = 5000  # held-out sentences that are translated at most
BEAM = 4
CHARACTERS = 6  # of a token, about: longer sentences are not translated only to watch a training

Some = TypeVar("Some", bound="PreparedPairs")


@dataclass(frozen=True, eq=False)
class PreparedPairs(PreparedText):
    """Sentence pairs; `known_target` is the tokeniser of the translations where each side has its own."""

    known_target: Tokeniser | None = None

    inputs = "pairs"
    task_name = "translate"
    default_preset = "translation"
    systems = ("transformer", "seq2seq")

    @property
    def target_tokeniser(self) -> Tokeniser:
        return self.known_target or self.tokeniser

    def why(self) -> str:
        return f"{len(self.split.train):,} pairs of sentences to train on"

    def ready(self: Some, config: Config, folder: RunFolder | None = None) -> Some:
        prepared = super().ready(config, folder)
        if config.text.shared:
            return prepared
        if folder is not None and folder.target_tokeniser.exists():
            target = Tokeniser.load(folder.target_tokeniser)
        else:
            target = self.known_target or learn(self.translations("train"), config.text)
        return dataclasses.replace(prepared, known_target=target)

    def learned_tokeniser(self, text: TextConfig) -> Tokeniser:
        both = self.translations("train") if text.shared else []
        return learn([*self.texts("train"), *both], text)

    def save(self, folder: RunFolder) -> None:
        super().save(folder)
        if self.known_target is not None:
            write_text(folder.target_tokeniser, self.known_target.to_text())

    def translations(self, side: str) -> list[str]:
        assert self.table.targets is not None
        return [self.table.targets[row] for row in self.split.rows(side)]

    def arguments(self) -> dict:
        other = {} if self.known_target is None else {"num_target_tokens": len(self.known_target)}
        return {**super().arguments(), **other}

    def require_suitable(self, config: Config) -> None:
        super().require_suitable(config)
        require_sacrebleu()

    def training(self, config: Config) -> PairBatches:
        return PairBatches(
            *self._encoded("train"),
            self.tokeniser,
            rows=self.split.train,
            tokens_per_batch=self.text.tokens_per_batch,
            max_length=self.text.max_length,
            seed=config.train.seed,
        )

    def task(self, config: Config) -> Tokens:
        return Translated(pad=self.target_tokeniser.pad, label_smoothing=config.train.label_smoothing)

    def watched(self, model: nn.Module, task: Tokens, device: torch.device) -> dict[str, float]:
        """Loss on all validation pairs; BLEU and chrF of greedy translations of some of them that are not long."""
        quick = task.tally(model, self.evaluation("val"), device).quick()
        translator = self._translator(model, device)
        short = (pair for pair in self._sentences("val") if len(pair[0]) <= CHARACTERS * self.text.max_length)
        readable = (pair for pair in short if translator.can_read(pair[0]))
        sentences = list(itertools.islice(readable, WATCHED)) or [("", ("",))]
        written = translator.translate([source for source, _ in sentences], beam=1, max_length=self.text.max_length)
        return {**quick, **quick_scores([best[0].text for best in written], [refs for _, refs in sentences])}

    def judged(
        self, folder: RunFolder, model: nn.Module, task: Tokens, device: torch.device
    ) -> tuple[dict, list[dict]]:
        """BLEU and chrF of beam search on the held-out sentences, and a row with each translation."""
        tally = task.tally(model, self.evaluation(self.held_out), device)
        everything = self._sentences(self.held_out)
        drawn = np.random.default_rng(0).permutation(len(everything))[:JUDGED]
        sentences = [everything[number] for number in sorted(drawn)]
        sources, references = [source for source, _ in sentences], [refs for _, refs in sentences]
        translator = self._translator(model, device)
        known = [source if translator.can_read(source) else "" for source in sources]  # too long counts as not answered
        translations = [best[0] for best in translator.translate(known, beam=BEAM)]
        written = [each.text for each in translations]
        lines = [
            {
                "name": f"{self.held_out} {number + 1}",
                "row": number,
                "source": source,
                "target": refs[0],
                "num_references": len(refs),
                "predicted": said.text,
                "score": round(said.score, 4),
                "is_finished": said.is_finished,
            }
            for number, ((source, refs), said) in enumerate(zip(sentences, translations, strict=True))
        ]
        found = scores(written, references)
        result = {
            "split": self.held_out,
            "inputs": self.inputs,
            "task": self.task_name,
            "metric": "bleu",
            "value": found["bleu"],
            "low": found["bleu_low"],
            "high": found["bleu_high"],
            "interval": "sacrebleu's bootstrap over sentences, 95 %",
            "n": len(sentences),
            "search": f"beam {BEAM}, GNMT length penalty 0.6",
            "majority": quick_scores(sources, references)["bleu"],  # the source itself as its translation
            **found,
            "n_held_out": len(everything),
            **tally.quick(),
        }
        return result, lines

    def describe(self) -> dict:
        described = super().describe() | {"sides": list(self.table.sides), "shared": self.known_target is None}
        limit = self.text.max_length
        long = sum(len(a) + 1 > limit or len(b) + 2 > limit for a, b in zip(*self._encoded("train"), strict=True))
        if long:
            described["notes"].append(f"{long:,} training pairs are longer than {limit} tokens, and are left out.")
        return described

    def _sentences(self, side: str) -> list[tuple[str, tuple[str, ...]]]:
        """(source, all its translations), every source once."""
        table = self.table
        assert table.references is not None
        return [(table.texts[row], table.references[row]) for row in table.first_of_each_source(self.split.rows(side))]

    def _translator(self, model: nn.Module, device: torch.device) -> Translator:
        return Translator(model, self.tokeniser, self.target_tokeniser, device)

    def _encoded(self, side: str) -> tuple[list[list[int]], list[list[int]]]:
        """Sources and translations."""
        translations = self._kept(
            f"translations of {side}", lambda: self.target_tokeniser.encode_many(self.translations(side))
        )
        return self.encoded(side), translations

    def evaluation(self, side: str) -> Iterator[Batch]:
        return pair_evaluation(
            *self._encoded(side),
            self.tokeniser,
            rows=self.split.rows(side),
            tokens_per_batch=self.text.tokens_per_batch,
            max_length=self.text.max_length,
        )
