"""From sentences to sentences: search for the likeliest translations, and what was looked at while writing them.

Shape letters: B sentences, H heads, M tokens of a source, N tokens of a translation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.core import attention_layers, record
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.tasks.length_penalty import LengthPenalty
from mirada.tasks.search import Hypothesis, beam_search

BATCH = 32
LONGEST = 1024  # tokens of a source: what is longer is not a sentence, and attention to it costs its square


@dataclass(frozen=True)
class Translation:
    """One way to say it. `score` is the penalised log-probability that the search compared."""

    text: str
    score: float
    log_probability: float
    is_finished: bool


@dataclass(frozen=True)
class Alignment:
    """weights_NM[n, m]: how much token m of the source was looked at when token n of the translation was written."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights_NM: Tensor

    def links(self) -> list[tuple[int, int]]:
        """(m, n): for every token of the translation the one of the source that it looked at most."""
        return [(int(row.argmax()), n) for n, row in enumerate(self.weights_NM)]

    def moses(self) -> str:
        """'0-0 1-2 2-1', as aligners write it."""
        return " ".join(f"{m}-{n}" for m, n in self.links())


class Translator:
    """A trained model with the tokenisers of both sides."""

    def __init__(self, model: nn.Module, source: Tokeniser, target: Tokeniser, device: torch.device) -> None:
        self.model, self.source, self.target, self.device = model.eval(), source, target, device
        self.num_positions: int | None = getattr(model, "num_positions", None)  # recurrent ones have none

    @property
    def longest(self) -> int:
        """Tokens of a source, without its end."""
        return LONGEST if self.num_positions is None else min(LONGEST, self.num_positions - 1)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int = 4,
        penalty: LengthPenalty | None = None,
        n_best: int = 1,
        max_length: int | None = None,
        batch_size: int = BATCH,
    ) -> list[list[Translation]]:
        """The `n_best` translations of every text, best first. An empty text has one, which is empty."""
        tokens = self.source.encode_many([text.strip() for text in texts])
        for number, each in enumerate(tokens, start=1):
            if len(each) > self.longest:
                raise MiradaError(
                    f"text {number} of {len(texts)} has {len(each):,} tokens, expected at most {self.longest:,}; "
                    "divide it into sentences."
                )
        found: list[list[Translation]] = [[Translation("", 0.0, 0.0, True)] for _ in texts]
        # Sentences of like length go together, so that little is padded; the answers do not depend on it.
        asked = sorted((row for row, each in enumerate(tokens) if each), key=lambda row: len(tokens[row]))
        for rows in pieces(asked, batch_size):
            source_BM = self.read([tokens[row] for row in rows])
            best = beam_search(
                self.model,  # type: ignore[arg-type]
                source_BM,
                start=self.target.start,
                end=self.target.end,
                forbidden=set(self.target.special.values()) - {self.target.end, self.target.start},
                beam=beam,
                n_best=n_best,
                max_length=max_length,
                longest=self.num_positions,
                penalty=penalty or LengthPenalty("gnmt", 0.6),
            )
            for row, hypotheses in zip(rows, best, strict=True):
                found[row] = [self._said(hypothesis) for hypothesis in hypotheses]
        return found

    def can_read(self, text: str) -> bool:
        return len(self.source.encode(text.strip())) <= self.longest

    @torch.inference_mode()
    def alignment(self, source: str, target: str) -> Alignment:
        """What the model looks at when it writes this translation: the mean over heads and layers."""
        source_tokens, target_tokens = self.source.encode(source.strip()), self.target.encode(target.strip())
        if not source_tokens or not target_tokens:
            raise MiradaError("an empty sentence has no alignment; give words on both sides.")
        source_BM = self.read([source_tokens])
        written = [*target_tokens, self.target.end]
        read_BN = torch.tensor([[self.target.start, *target_tokens]], device=self.device)
        names = self.require_attention()
        with record(self.model, layers=names) as maps:
            self.model(source_BM, read_BN)
        layers_HNM = [torch.cat(maps.every(name), dim=2)[0] for name in names]
        weights_NM = torch.stack([each.mean(0) for each in layers_HNM]).mean(0).cpu()
        shown_source = (*self.source.tokens(source_tokens), "⏎")
        shown_target = (*self.target.tokens(written[:-1]), "⏎")
        return Alignment(shown_source, shown_target, weights_NM)

    def require_attention(self) -> list[str]:
        """The layers that look at the source."""
        names = [name for name in attention_layers(self.model) if ".cross." in name or name == "decoder.attend"]
        if not names:
            raise MiradaError("this model does not attend to the source, so there is no alignment.")
        return names

    def read(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """(B, M) source tokens with their end, padded."""
        longest = max(map(len, tokens)) + 1
        rows = [[*each, self.source.end] + [self.source.pad] * (longest - 1 - len(each)) for each in tokens]
        return torch.tensor(rows, device=self.device)

    def _said(self, hypothesis: Hypothesis) -> Translation:
        text = self.target.decode(hypothesis.tokens)
        return Translation(text, hypothesis.score, hypothesis.log_probability, hypothesis.is_finished)


def pieces(rows: Iterable[int], size: int) -> Iterator[list[int]]:
    rows = list(rows)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
