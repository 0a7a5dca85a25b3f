"""Labelled texts: learn to tell their classes apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from mirada.config.schema import Config
from mirada.data.batches import Batch
from mirada.data.table import SPLIT_NAMES
from mirada.data.text.labelled_batches import LabelledBatches, labelled_evaluation
from mirada.errors import MiradaError
from mirada.tasks.intervals import wilson
from mirada.tasks.single_label import SingleLabel, inverse_frequency
from mirada.train.folder import RunFolder
from mirada.verbs.judging import AnsweredByRow
from mirada.verbs.text.prepared import PreparedText

EVALUATION_BATCH = 64


@dataclass(frozen=True, eq=False)
class PreparedLabelled(AnsweredByRow, PreparedText):
    """Texts with one class each; judged as images are."""

    task_name = "single-label"
    default_preset = "text-classes"
    systems = ("bert", "gpt")

    def why(self) -> str:
        return f"{len(self.split.train):,} texts of {len(self.table.class_names)} classes to train on"

    def arguments(self) -> dict:
        own = {"max_length": self.text.max_length, "num_classes": len(self.table.class_names)}
        return {**super().arguments(), **own}

    def training(self, config: Config) -> LabelledBatches:
        return LabelledBatches(
            self.encoded("train"),
            self._labels("train"),
            self.tokeniser,
            rows=self.split.train,
            batch_size=config.train.batch_size,
            max_length=self.text.max_length,
            balanced=config.train.balanced,
            seed=config.train.seed,
        )

    def evaluation(self, side: str) -> Iterator[Batch]:
        return labelled_evaluation(
            self.encoded(side),
            self._labels(side),
            self.tokeniser,
            rows=self.split.rows(side),
            batch_size=EVALUATION_BATCH,
            max_length=self.text.max_length,
        )

    def task(self, config: Config) -> SingleLabel:
        weights = inverse_frequency(self._counts("train")) if config.train.class_weights else None
        return SingleLabel(self.table.class_names, label_smoothing=config.train.label_smoothing, class_weights=weights)

    def require_suitable(self, config: Config) -> None:
        super().require_suitable(config)
        if self.tokeniser.pad < 0:
            raise MiradaError(
                f"{config.start}: its tokeniser has no padding token, so texts of different lengths cannot be put into "
                "one batch; add a pad_token to its tokenizer_config.json."
            )

    def further_results(self, folder: RunFolder, model: nn.Module, device: torch.device) -> dict:
        """What word counts alone would answer: a linear model of them is hard to beat on small data."""
        if not len(self.split.train):  # other texts are judged
            return {}
        try:
            right = self._right_by_word_counts()
        except ValueError:  # no words, or one class only: there is nothing to count
            return {}
        low, high = wilson(int(right.sum()), len(right))
        return {"word_counts": {"accuracy": float(right.mean()), "low": low, "high": high}}

    def describe(self) -> dict:
        counted = {name: self._counts(name).tolist() for name in SPLIT_NAMES}
        described = super().describe() | {"class_counts": counted}
        limit = self.text.max_length - 2
        if num_cut := sum(len(text) > limit for text in self.encoded("train")):
            described["notes"].append(f"{num_cut:,} training texts are longer than {limit} tokens, and are cut.")
        return described

    def _right_by_word_counts(self) -> np.ndarray:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        side = self.held_out
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
        linear = LogisticRegression(C=10.0, max_iter=1000)
        linear.fit(words.fit_transform(self.texts("train")), self._labels("train"))
        return linear.predict(words.transform(self.texts(side))) == self._labels(side)

    def _labels(self, side: str) -> np.ndarray:
        assert self.table.labels is not None
        return self.table.labels[self.split.rows(side)]

    def _counts(self, side: str) -> np.ndarray:
        return np.bincount(self._labels(side), minlength=len(self.table.class_names))
