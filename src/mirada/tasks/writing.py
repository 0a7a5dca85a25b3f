"""Going on with a text: a model of next tokens draws one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import torch
from torch import nn

from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.tasks.sampling import stream

OVERLAP = 16  # tokens that are decoded again with those after them: how one reads may depend on the ones before it
HALF = "\ufffd"  # what a character reads of which not all bytes are there yet
MOST_HELD = 8  # tokens that may wait for the rest of a character, which has at most four bytes


@dataclass(frozen=True)
class Draw:
    """How tokens are chosen (see mirada.tasks.sampling); temperature 0 takes the likeliest."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class Likely:
    """A token that may come next, and its probability."""

    token: str
    probability: float


class Writer:
    """A trained language model with its tokeniser; it has learned to see `max_length` tokens at once."""

    def __init__(self, model: nn.Module, tokeniser: Tokeniser, max_length: int, device: torch.device) -> None:
        self.model, self.tokeniser, self.max_length, self.device = model.eval(), tokeniser, max_length, device

    def write(self, prompt: str = "", *, count: int = 1, max_tokens: int = 200, draw: Draw | None = None) -> list[str]:
        """`count` continuations of the prompt, without the prompt itself."""
        written: list[list[int]] = [[] for _ in range(count)]
        for step in self.tokens(prompt, count=count, max_tokens=max_tokens, draw=draw):
            for row, token in step:
                written[row].append(token)
        known = self.known(prompt)
        start = self.tokeniser.decode(known)
        # Decoded together with the prompt: what a token looks like may depend on the one before it.
        return [self.tokeniser.decode([*known, *each])[len(start) :] for each in written]

    def stream(self, prompt: str = "", *, max_tokens: int = 200, draw: Draw | None = None) -> Iterator[str]:
        """One continuation, piece by piece as it is written: together they are what `write` gives."""
        text = _Growing(self.tokeniser, self.known(prompt))
        for step in self.tokens(prompt, count=1, max_tokens=max_tokens, draw=draw):
            for _, token in step:
                if piece := text.add(token):
                    yield piece
        if rest := text.rest():
            yield rest

    def tokens(
        self, prompt: str, *, count: int, max_tokens: int, draw: Draw | None = None
    ) -> Iterator[list[tuple[int, int]]]:
        """At every step the pairs (continuation, token) that were written.

        When as many tokens are there as the model can see, it goes on from the later half of them.
        """
        if max_tokens < 1:
            raise MiradaError(f"{max_tokens} tokens are asked for; at least one can be written.")
        how = asdict(draw or Draw())
        unused = range(len(self.tokeniser), len(self.model.embedding.weight))  # type: ignore[arg-type, union-attr]
        never = {*self.tokeniser.special.values(), *unused} - {self.tokeniser.end}
        texts = {row: list(self.known(prompt)) for row in range(count)}
        wanted = dict.fromkeys(texts, max_tokens)
        begun = 0
        while wanted:
            rows = list(wanted)
            prompts = [self._seen(texts[row]) for row in rows]
            room = max(1, self.max_length - max(map(len, prompts)))
            steps = stream(
                self.model,  # type: ignore[arg-type]
                self.model.begin(),  # type: ignore[operator]
                prompts,
                max_length=min(room, min(wanted.values())),
                end=self.tokeniser.end,
                numbers=[(begun << 32) + row for row in rows],  # new noise after every new beginning
                forbidden=never,
                device=self.device,
                **how,
            )
            for step in steps:
                told = [(rows[place], token) for place, token in step]
                for row, token in told:
                    texts[row].append(token)
                    wanted[row] = 0 if token == self.tokeniser.end else wanted[row] - 1
                yield [(row, token) for row, token in told if token != self.tokeniser.end]
            wanted = {row: left for row, left in wanted.items() if left > 0}
            begun += 1

    @torch.inference_mode()
    def next(self, prompt: str, k: int = 10) -> list[Likely]:
        """The `k` likeliest next tokens."""
        seen = self.seen(self.known(prompt))
        logits_T = self.model(torch.tensor([seen], device=self.device))[0, -1].float()
        best = (logits_T - logits_T.logsumexp(-1)).exp().topk(min(k, len(logits_T)))
        return [
            Likely(self.tokeniser.tokens([token])[0], probability)
            for token, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def known(self, prompt: str) -> list[int]:
        """The tokens of the prompt; a text without beginning begins as lines do."""
        return self.tokeniser.encode(prompt) or self.tokeniser.encode("\n") or [self.tokeniser.end]

    def seen(self, tokens: list[int]) -> list[int]:
        """The last of them, as many as the model can see."""
        return self._seen(tokens, self.max_length)

    def _seen(self, tokens: list[int], most: int | None = None) -> list[int]:
        most = max(1, self.max_length // 2) if most is None else most
        return list(tokens) if len(tokens) < self.max_length else tokens[-most:]


class _Growing:
    """A text to which tokens are added. Only its last ones are decoded, from where a character was complete."""

    def __init__(self, tokeniser: Tokeniser, tokens: list[int]) -> None:
        self.tokeniser = tokeniser
        self.tail, self.next_tail, self.num_held = list(tokens), len(tokens), 0
        self.shown = tokeniser.decode(tokens)

    def add(self, token: int) -> str:
        """What the text reads more by it; nothing while a character is half there."""
        self.tail.append(token)
        self.num_held += 1
        text = self.tokeniser.decode(self.tail)
        return "" if text.endswith(HALF) and self.num_held < MOST_HELD else self._show(text)

    def rest(self) -> str:
        """What was held back to the end."""
        return self._show(self.tokeniser.decode(self.tail))

    def _show(self, text: str) -> str:
        piece = text[len(self.shown) :]
        if len(self.tail) - self.next_tail >= OVERLAP:
            self.tail = self.tail[self.next_tail :]
            self.next_tail, text = len(self.tail), self.tokeniser.decode(self.tail)
        self.shown, self.num_held = text, 0
        return piece
