"""What runs on text share: a table of texts, its split, and the tokeniser that is learned from its training side."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import nn

from mirada.config.schema import Config, TextConfig
from mirada.data.batches import Batch, Batches
from mirada.data.splits import Split
from mirada.data.table import SPLIT_NAMES
from mirada.data.text.table import TextTable
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.tasks.objective import Objective
from mirada.train.files import write_text
from mirada.train.folder import RunFolder

SETTINGS_OF_IMAGES = {
    "data": ("path_column", "image_root", "label_pattern", "image_size", "fit", "on_broken", "workers"),
    "augment": ("strength", "crop", "flip", "affine", "colour", "tone", "erase", "mixup", "cutmix", "mix"),
}

Some = TypeVar("Some", bound="PreparedText")


@dataclass(frozen=True, eq=False)
class PreparedText:
    """Texts that are ready to train on; the same methods as images have (see Prepared).

    `text` and `tokeniser` are there from `ready` on: which tokens to learn stands in the preset, and which preset to
    take is decided by the texts.
    """

    table: TextTable
    split: Split
    text: TextConfig = dataclasses.field(default_factory=TextConfig)
    known_tokeniser: Tokeniser | None = None
    known_num_tokens: int | None = None  # of a checkpoint, which may have vectors that no token uses
    known_counts: tuple[int, ...] | None = None  # of the tokens a run was trained on, where other texts are judged

    inputs = "text"
    task_name = ""
    default_preset = ""
    systems: ClassVar[tuple[str, ...]] = ()  # that learn this

    @property
    def source(self) -> str:
        return self.table.source

    @property
    def held_out(self) -> str:
        """The side on which the final result is measured: test, or val where the data brings no test texts."""
        return "test" if len(self.split.test) else "val"

    @property
    def tokeniser(self) -> Tokeniser:
        assert self.known_tokeniser is not None, "`ready` comes first"
        return self.known_tokeniser

    @property
    def num_tokens(self) -> int:
        return self.known_num_tokens or len(self.tokeniser)

    def name(self, row: int) -> str:
        return self.table.name(row)

    def texts(self, side: str) -> list[str]:
        return [self.table.texts[row] for row in self.split.rows(side)]

    def preset(self) -> tuple[str, str]:
        """Which preset suits, and why."""
        return self.default_preset, self.why()

    def why(self) -> str:
        raise NotImplementedError

    def settings(self) -> dict:
        """What the data decides of a configuration: nothing."""
        return {}

    def encoded(self, side: str) -> list[list[int]]:
        """The tokens of every text of a side; blank ones have none."""
        return self._kept(side, lambda: self.tokeniser.encode_many([text.strip() for text in self.texts(side)]))

    def counts(self, side: str) -> np.ndarray:
        """(T,) how often each token occurs there; of other texts than the run's, "train" means those of the run."""
        if side == "train" and self.known_counts is not None:
            return np.asarray(self.known_counts)
        return self._kept(f"counts of {side}", lambda: counted(self.encoded(side), len(self.tokeniser)))

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Made once: a side is asked for at every evaluation."""
        kept = self.__dict__.setdefault("_made", {})
        if name not in kept:
            kept[name] = make()
        return kept[name]

    def ready(self: Some, config: Config, folder: RunFolder | None = None) -> Some:
        """With a tokeniser: that of the folder, else that of a checkpoint, else one as the configuration asks for."""
        if folder is not None and folder.tokeniser.exists():
            tokeniser = Tokeniser.load(folder.tokeniser)
        else:
            tokeniser = self.known_tokeniser or self.learned_tokeniser(config.text)
        return dataclasses.replace(self, text=config.text, known_tokeniser=tokeniser)

    def learned_tokeniser(self, text: TextConfig) -> Tokeniser:
        return learn(self.texts("train"), text)

    def save(self, folder: RunFolder) -> None:
        """What the run needs besides data.json."""
        write_text(folder.tokeniser, self.tokeniser.to_text())

    def arguments(self) -> dict:
        """What the data decides of a system."""
        return {"num_tokens": self.num_tokens, "pad": self.tokeniser.pad}

    def attached(self, model: nn.Module, device: torch.device) -> nn.Module:
        return model

    # What is learned differs from kind to kind, and with it what a task can do; each kind knows its own.

    def training(self, config: Config) -> Batches:
        raise NotImplementedError

    def evaluation(self, side: str) -> Iterator[Batch]:
        """What a model is asked of a side, every text once."""
        raise NotImplementedError

    def task(self, config: Config) -> Any:
        raise NotImplementedError

    def objective(self, task: Any) -> Objective:
        """What a training step makes small."""
        return task.objective

    def watched(self, model: nn.Module, task: Any, device: torch.device) -> dict[str, float]:
        """What the validation side says of the model now."""
        raise NotImplementedError

    def judged(self, folder: RunFolder, model: nn.Module, task: Any, device: torch.device) -> tuple[dict, list[dict]]:
        """What the held-out side says of the best model: numbers, and a row per answer."""
        raise NotImplementedError

    def require_suitable(self, config: Config) -> None:
        """Refuse systems that learn something else, settings for images, and sides with nothing to ask about."""
        if config.system.name not in self.systems:
            known = " or ".join(self.systems)
            raise MiradaError(f"system {config.system.name!r} cannot learn to {self.task_name}; use {known}.")
        if config.train.choose_by == "metric" and "single-label" != self.task_name:
            raise MiradaError("train.choose_by=metric is for classes; weights of this task are chosen by the loss.")
        for side in ("train", "val", "test"):
            if len(self.split.rows(side)) and not self.can_ask(side):
                raise MiradaError(
                    f"{self.source}: its {side} part has nothing to ask about ({len(self.split.rows(side))} rows); "
                    "give more text, or other data.val and data.test."
                )
        for section, names in SETTINGS_OF_IMAGES.items():
            given = getattr(config, section)
            for name in names:
                if getattr(given, name) != type(given).model_fields[name].default:
                    raise MiradaError(
                        f"setting '{section}.{name}' is for images, but {self.source} holds text; leave it out."
                    )

    def can_ask(self, side: str) -> bool:
        """Whether there is a token whose neighbours are known."""
        return any(map(len, self.encoded(side)))

    def describe(self) -> dict:
        """data.json"""
        table, split = self.table, self.split
        return {
            "source": table.source,
            "inputs": self.inputs,
            "kind": table.kind,
            "task": self.task_name,
            "class_names": list(table.class_names),
            "target_names": [],
            "tokeniser": self.tokeniser.kind,
            "num_tokens": self.num_tokens,
            "max_length": self.text.max_length,
            "held_out": self.held_out,
            "num_texts": {name: len(split.rows(name)) for name in SPLIT_NAMES},
            "checksum": table.checksum(),
            "notes": [*table.notes, *split.notes],
            "broken": [],
            "split": split.to_dict(),
        }


def learn(texts: list[str], text: TextConfig) -> Tokeniser:
    return Tokeniser.train(texts, text.tokeniser, text.num_tokens, lowercase=text.lowercase)


def counted(tokens: list[list[int]], num_tokens: int) -> np.ndarray:
    """(T,) how often each token occurs."""
    if not tokens:
        return np.zeros(num_tokens)
    return np.bincount(np.concatenate([np.asarray(each, dtype=np.int64) for each in tokens]), minlength=num_tokens)
