"""Tokens drawn at random from what a model says comes next.

    y ~ p,     p_t ∝ exp(logit_t / temperature)  for the tokens t that are kept, 0 for the others
    top_k      the k likeliest are kept
    top_p      of those, the fewest likeliest whose probability together reaches p

Every row has random numbers of its own, made from (seed, its number): what it says depends on no other row.

Shape letters: R rows, N tokens, T tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.nn.decoding import State
from mirada.tasks.candidates import BROKEN, without


class TextModel(Protocol):
    """What can be sampled: GPT, Transformer, Seq2Seq, or anything else that says which token is next."""

    def next_logits(self, read_BN: Tensor, state: Any, /, num_last: int | None = None) -> Tensor:
        """(B, N, T), or (B, num_last, T): of the last ones that are read."""
        ...


def sample(model: TextModel, state: State, prompts: Sequence[Sequence[int]], **how: object) -> list[list[int]]:
    """For every prompt the tokens that go on from it, without `end`; `how` as in `stream`."""
    texts: list[list[int]] = [[] for _ in prompts]
    for step in stream(model, state, prompts, **how):  # type: ignore[arg-type]
        for row, token in step:
            texts[row].append(token)
    return [text[:-1] if text and text[-1] == how.get("end") else text for text in texts]


def stream(
    model: TextModel,
    state: State,
    prompts: Sequence[Sequence[int]],
    *,
    max_length: int,
    end: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    forbidden: Iterable[int] = (),
    device: torch.device | str | None = None,
) -> Iterator[list[tuple[int, int]]]:
    """At every step the pairs (row, token) that were written, `end` too, until all rows have ended.

    state       from `model.begin`, with one row per prompt once it has read
    prompts     tokens to go on from, of any lengths; a translation goes on from `[start]`
    max_length  tokens that a row writes at most, `end` included
    numbers     of the rows, from which their random numbers are made: 0, 1, … if None. A job that is split into
                batches numbers its rows through, and the same prompt with another number goes on in another way.
    """
    check_choice(temperature=temperature, top_k=top_k, top_p=top_p)
    numbers = range(len(prompts)) if numbers is None else numbers
    if len(numbers) != len(prompts):
        raise MiradaError(f"{len(numbers)} numbers for {len(prompts)} prompts: give one for each")
    if seed < 0:
        raise MiradaError(f"seed={seed}: must be at least 0")
    if max_length < 1:
        raise MiradaError(f"max_length={max_length}: must be at least 1, or nothing is written")
    for row, prompt in enumerate(prompts):
        if not len(prompt):
            raise MiradaError(
                f"prompt {row + 1} of {len(prompts)} has no token to go on from: put the start token first"
            )
    never = tuple(forbidden)
    if end in never:
        raise MiradaError(f"token {end} is forbidden and is also the end of a text: without it none would end")
    generators = [row_generator(seed, number) for number in numbers]

    def choose(logits_RT: Tensor, rows: list[int]) -> list[int]:
        own = [generators[row] for row in rows]
        allowed_RT = without(logits_RT, never) if never else logits_RT
        return drawn(allowed_RT, temperature=temperature, top_k=top_k, top_p=top_p, generator=own).tolist()

    return _written(model, state, prompts, choose, max_length, end, device)


@torch.inference_mode()
def _written(
    model: TextModel,
    state: State,
    prompts: Sequence[Sequence[int]],
    choose: Callable[[Tensor, list[int]], list[int]],
    max_length: int,
    end: int | None,
    device: torch.device | str | None,
) -> Iterator[list[tuple[int, int]]]:
    """What all prompts have is read at once; then, while longer prompts are still being read, the others write."""
    rows = list(range(len(prompts)))
    num_read = min(map(len, prompts), default=0)
    unread = [list(prompt[:num_read]) for prompt in prompts]
    while rows:
        logits_RT = model.next_logits(torch.tensor(unread, device=device), state, num_last=1)[:, -1]
        writing = [place for place, row in enumerate(rows) if len(prompts[row]) <= num_read]
        some_RT = logits_RT if len(writing) == len(rows) else logits_RT[writing]
        tokens = choose(some_RT, [rows[place] for place in writing])
        written = dict(zip(writing, tokens, strict=True))
        if written:
            yield [(rows[place], token) for place, token in written.items()]
        num_read += 1
        going_on = [
            place
            for place, row in enumerate(rows)
            if place not in written or (written[place] != end and num_read - len(prompts[row]) < max_length)
        ]
        unread = [[written[place] if place in written else prompts[rows[place]][num_read - 1]] for place in going_on]
        if 0 < len(going_on) < len(rows):
            state.reorder(torch.tensor(going_on, device=device))
        rows = [rows[place] for place in going_on]


def drawn(
    logits_RT: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | Sequence[torch.Generator] | None = None,
) -> Tensor:
    """(R,) tokens drawn with probability ∝ exp(logit / temperature) among those kept; with one generator per row, a
    row's draw is its own.

    argmax of logits plus Gumbel noise is such a draw; at temperature 0 it is the likeliest token.
    """
    highest_R1, token_R1 = logits_RT.max(-1, keepdim=True)
    if not bool(highest_R1.isfinite().all()):
        raise MiradaError(BROKEN)
    if temperature == 0:
        return token_R1[:, 0]
    logits_RT = (logits_RT.double() - highest_R1) / temperature  # at most 0, so that a tiny temperature gives no ∞
    if top_k is not None and top_k < logits_RT.shape[-1]:
        lowest_R1 = logits_RT.topk(top_k).values[:, -1:]
        logits_RT = logits_RT.masked_fill(logits_RT < lowest_R1, -torch.inf)
    if top_p is not None and top_p < 1:
        logits_RT = logits_RT.masked_fill(~nucleus(logits_RT, top_p), -torch.inf)
    return (logits_RT + gumbel(logits_RT.shape, generator).to(logits_RT.device)).argmax(-1)


def nucleus(logits_RT: Tensor, top_p: float) -> Tensor:
    """(R, T) whether a token is among the fewest likeliest whose probability together reaches `top_p` (Holtzman 2020);
    of equally likely ones the smaller number comes first.
    """
    log_p_RT, order_RT = logits_RT.log_softmax(-1).sort(descending=True, stable=True)
    p_RT = log_p_RT.exp()
    is_missing_RT = p_RT.cumsum(-1) - p_RT < top_p * (1 - 1e-12)  # 0.5 and 0.25 reach 0.75, also in float64
    return torch.zeros_like(is_missing_RT).scatter(-1, order_RT, is_missing_RT)


def gumbel(shape: Sequence[int], generator: torch.Generator | Sequence[torch.Generator] | None) -> Tensor:
    """−log(−log u), u uniform."""
    if isinstance(generator, Sequence):
        rows = [torch.rand(shape[1:], generator=own, dtype=torch.float64) for own in generator]
        uniform = torch.stack(rows) if rows else torch.empty(*shape, dtype=torch.float64)
    else:
        uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
    return -torch.log(-torch.log(uniform.clamp(1e-300, 1 - 1e-16)))


def row_generator(seed: int, number: int) -> torch.Generator:
    """Random numbers of one row; neighbouring seeds and numbers give unrelated ones."""
    mixed = np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)[0] >> np.uint64(1)
    return torch.Generator().manual_seed(int(mixed))


def check_choice(*, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> None:
    if not 0 <= temperature < torch.inf:
        raise MiradaError(f"temperature={temperature}: must be at least 0, where the likeliest token is taken")
    if top_k is not None and top_k < 1:
        raise MiradaError(f"top_k={top_k}: must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise MiradaError(f"top_p={top_p}: must be above 0 and at most 1, where all tokens are kept")
