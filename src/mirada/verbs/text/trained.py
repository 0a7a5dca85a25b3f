"""A trained model of text: it translates, writes, fills in, classifies, or knows words by their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import numpy as np
from torch import Tensor

from mirada.data.text.labelled_batches import labelled_evaluation
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.tasks.filling import Filler
from mirada.tasks.translation import Translator
from mirada.tasks.vectors import analogy, neighbours
from mirada.tasks.writing import Writer
from mirada.train.files import write_text
from mirada.train.folder import RunFolder
from mirada.train.outputs import outputs_of
from mirada.verbs.images import NamedImage
from mirada.verbs.load import Progress, Trained, load
from mirada.verbs.text.lines import texts_of

VERBS = {
    "translate": "translates: use `mirada translate`",
    "generate": "goes on writing: use `mirada generate`",
    "fill": "fills in hidden words: use `mirada fill`",
    "embed": "has a vector for every word: use `mirada neighbours`",
    "single-label": "tells classes of texts apart: use `mirada predict`",
}


class TrainedText(Trained):
    """The best model of a run on text."""

    @property
    def does(self) -> str:
        return self.data["task"]

    @cached_property
    def tokeniser(self) -> Tokeniser:
        return Tokeniser.load(_near(self.folder, "tokeniser"))

    @cached_property
    def target_tokeniser(self) -> Tokeniser:
        if self.data.get("shared", True):
            return self.tokeniser
        return Tokeniser.load(_near(self.folder, "target_tokeniser"))

    def save_tokenisers(self, folder: Path) -> list[Path]:
        """tokeniser.json, and target_tokeniser.json where the target has its own."""
        files = {RunFolder(folder).tokeniser: self.tokeniser}
        if self.target_tokeniser is not self.tokeniser:
            files[RunFolder(folder).target_tokeniser] = self.target_tokeniser
        for file, tokeniser in files.items():
            write_text(file, tokeniser.to_text())
        return list(files)

    @property
    def translator(self) -> Translator:
        self.require("translate")
        return Translator(self.model, self.tokeniser, self.target_tokeniser, self.device)

    @property
    def writer(self) -> Writer:
        self.require("generate")
        return Writer(self.model, self.tokeniser, self.data["max_length"], self.device)

    @property
    def filler(self) -> Filler:
        self.require("fill")
        return Filler(self.model, self.tokeniser, self.device)

    def predict(self, images: object, *, batch_size: int = 64) -> list[dict]:
        """Answers in words, one per text: its class, its translation, or its filled blanks.

        The argument, called as for models of images, is a text, a file of texts (.txt with one per line, or a table
        with a column of them), or a list of these.
        """
        texts = texts_of(images)
        if self.does == "translate":
            return [asdict(best[0]) for best in self.translator.translate(texts, batch_size=batch_size)]
        if self.does == "fill":
            return [self._filled(text) for text in texts]
        return self.task.answers(self.outputs(texts, batch_size=batch_size))

    def outputs(self, images: object, *, batch_size: int = 64) -> Tensor:
        """(N, C) what a model of classes gives for these texts, before it is put into words; texts as in `predict`."""
        self.require("single-label")
        texts = texts_of(images)
        batches = labelled_evaluation(
            self.tokeniser.encode_many([text.strip() for text in texts]),  # as those it learned from
            np.zeros(len(texts), dtype=np.int64),
            self.tokeniser,
            batch_size=batch_size,
            max_length=self.data["max_length"],
        )
        outputs_NC, _, rows_N = outputs_of(self.model, batches, self.device)
        return outputs_NC[rows_N.argsort()]

    def rows(self, images: object, *, batch_size: int = 64, progress: Progress | None = None) -> list[dict]:
        """One row per text: the text, the answer, and `error` (None, or why there is none); texts as in `predict`."""
        texts = texts_of(images)
        if self.does == "fill":
            return [self._filled_row(text) for text in texts]
        answers = self.predict(texts, batch_size=batch_size)
        return [{"name": text, **answer, "error": None} for text, answer in zip(texts, answers, strict=True)]

    def batches(
        self, images: list[NamedImage], batch_size: int, progress: Progress | None = None
    ) -> Iterator[tuple[list[NamedImage], list[str], Tensor]]:
        raise MiradaError(f"{self.folder.path}: this model was trained on text; it has no answers about images.")

    def neighbours(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """The words whose vectors point most the same way, and their cosines."""
        self.require("embed")
        return self._words(neighbours(self._vectors(), self._number(word), k + 5), k)

    def analogy(self, a: str, b: str, c: str, k: int = 10) -> list[tuple[str, float]]:
        """a − b + c: "king", "man", "woman" asks what is to a woman as a king to a man."""
        self.require("embed")
        first, minus, plus = (self._number(word) for word in (a, b, c))
        return self._words(analogy(self._vectors(), first, minus, plus, k + 5), k)

    def _filled(self, text: str) -> dict:
        return {"blanks": [[asdict(way) for way in ways] for ways in self.filler.fill(text)]}

    def _filled_row(self, text: str) -> dict:
        """A text without a blank has no answer, which is no reason to leave out the others."""
        try:
            return {"name": text, **self._filled(text), "error": None}
        except MiradaError as error:
            return {"name": text, "blanks": None, "error": str(error)}

    def _vectors(self) -> Tensor:
        return self.model.vectors.detach().cpu()  # type: ignore[operator]

    def _number(self, word: str) -> int:
        tokens = self.tokeniser.encode(word)
        if len(tokens) != 1 or tokens[0] == self.tokeniser.unknown:
            raise MiradaError(f"{word!r}: is no word of the {len(self.tokeniser):,} that {self.folder.path} knows.")
        return tokens[0]

    def _words(self, found: Sequence[tuple[int, float]], k: int) -> list[tuple[str, float]]:
        special = set(self.tokeniser.special.values())
        return [(self.tokeniser.tokens([token])[0], cosine) for token, cosine in found if token not in special][:k]

    def require(self, task: str) -> None:
        if self.does != task:
            raise MiradaError(f"{self.folder.path}: this model {VERBS[self.does]}.")


def _near(folder: RunFolder, name: str) -> Path:
    """A baseline was trained with the tokeniser of its parent."""
    own = getattr(folder, name)
    return own if own.exists() else getattr(RunFolder(folder.path.parent), name)


def text_run(run: str | Path | RunFolder | Trained, device: str = "auto") -> TrainedText:
    """A trained model of text."""
    trained = run if isinstance(run, Trained) else load(run, device=device)
    if not isinstance(trained, TrainedText):
        raise MiradaError(f"{trained.folder.path}: this model was not trained on text; `mirada train TEXT` makes one.")
    return trained
