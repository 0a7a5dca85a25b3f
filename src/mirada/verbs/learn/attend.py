"""One attention layer on a sentence: who may look at whom, who looks at whom, which kernel computes it, what it costs.

    lesson = attend("el gato negro salta la cuerda", neighbours=[{"kind": "window", "reach": 1}, {"kind": "causal"}])

Nothing is trained: word vectors and weights are drawn from the seed, and equal words have equal vectors.

Shape letters: B batch (one), H heads, N tokens, D model dim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.core import Attention, Places, count_flops, formula_flops, kernels
from mirada.core.attention import stand_ins
from mirada.core.kernels import reference
from mirada.core.kernels.call import Call
from mirada.errors import MiradaError
from mirada.verbs.learn import parts
from mirada.verbs.learn.drawing_weights import draw_weights, word_vectors
from mirada.verbs.learn.parts import Rule, one_of, within

MAX_TOKENS = 64
MAX_LETTERS = 40
DIMS = (2, 128)
NUM_HEADS = (1, 8)
SEEDS = (0, 2**31 - 1)

SERVES_TOO = "it would serve as well, but comes later in the table"
TOO_WIDE = "the band is not narrow against the number of tokens"


@dataclass(frozen=True)
class Considered:
    """A kernel of the table, and why it was not taken (None: it was)."""

    name: str
    reason: str | None


@dataclass(frozen=True, eq=False)
class Lesson:
    tokens: list[str]
    mask_NN: Tensor  # True where i may look at j
    logits_HNN: Tensor  # of all pairs, before the mask
    weights_HNN: Tensor
    kernels: list[Considered]  # in the order in which they are asked
    num_pairs: int
    flops_formula: int  # of the projections and the allowed pairs
    flops_full: int  # by the same formula, if all looked at all
    size: tuple[int, ...]  # (N,) or (rows, columns)
    model: Layer
    x_BND: Tensor

    @property
    def kernel(self) -> str:
        return next(kernel.name for kernel in self.kernels if kernel.reason is None)

    def count_flops(self) -> int:
        """Operations of all products that really run: a kernel may compute pairs and then hide them.

        Apart from the rest, as the first count in a process loads the half of torch that compiles, which takes seconds.
        """
        return count_flops(self.model, self.x_BND)


class Layer(nn.Module):
    """An attention layer with the position of its tokens, wherever that enters."""

    def __init__(self, score: str, rules: Sequence[Rule], position: str, heads: str, num_heads: int, dim: int,
                 places: Places) -> None:  # fmt: skip
        super().__init__()
        self.places = places
        self.placed = parts.Placed(position, dim, places)
        made = parts.HEADS[heads](self.placed.dim, num_heads)
        width = parts.width_of_queries(made, self.placed.dim)
        self.attention = Attention(
            made,
            score=parts.SCORES[score](made, width),
            neighbours=parts.make_neighbours(rules, len(places)),
            position=parts.make_position(position, made, width, places),
        )

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.attention(self.placed(x_BND, self.places), places=self.places)


def attend(
    tokens: str | Sequence[str] | int,
    *,
    score: str = "scaled dot",
    neighbours: Sequence[Rule] = (),
    position: str = "none",
    heads: str = "concatenated",
    num_heads: int = 2,
    dim: int = 16,
    seed: int = 0,
    columns: int | None = None,
) -> Lesson:
    """Attention between the words of a sentence, or between a number of tokens without names."""
    words = named(tokens)
    within(dim, *DIMS, "dim")
    within(num_heads, *NUM_HEADS, "num_heads")
    within(seed, *SEEDS, "seed")
    rules = parts.checked(neighbours)
    places = parts.make_places(len(words), rules, columns)
    model = Layer(
        one_of(score, tuple(parts.SCORES), "the score"),
        rules,
        one_of(position, parts.POSITIONS, "the position"),
        one_of(heads, tuple(parts.HEADS), "the kind of heads"),
        num_heads,
        dim,
        places,
    ).eval()
    draw_weights(model, seed)
    x_BND = word_vectors(words, dim, seed)[None]
    call = _caught(model, x_BND)
    with torch.no_grad():
        allowed = reference.allowed_pairs(call)
        mask = torch.ones(len(words), len(words), dtype=torch.bool) if allowed is None else allowed
        logits, weights = reference.biased_logits(call)[0], reference.weights(call)[0]
        considered = consider(call)
    formula = formula_flops(model, x_BND)
    num_pairs = int(mask.sum())
    per_pair = 2 * num_heads * (call.q_BHNK.shape[-1] + call.v_BHMV.shape[-1])
    return Lesson(
        words,
        mask,
        logits,
        weights,
        considered,
        num_pairs,
        formula,
        formula if score == "random features" else formula + per_pair * (len(words) ** 2 - num_pairs),
        places.size,
        model,
        x_BND,
    )


def named(tokens: str | Sequence[str] | int) -> list[str]:
    """Words of a sentence as they stand between spaces; t0, t1, … for a number."""
    if isinstance(tokens, int):
        words = [f"t{i}" for i in range(min(tokens, MAX_TOKENS + 1))]
    else:
        words = tokens.split() if isinstance(tokens, str) else [str(word) for word in tokens]
    if not 1 <= len(words) <= MAX_TOKENS:
        raise MiradaError(f"a sentence of {tokens if isinstance(tokens, int) else len(words)} tokens cannot be shown: "
                          f"give 1 to {MAX_TOKENS}")  # fmt: skip
    for word in words:
        if len(word) > MAX_LETTERS:
            raise MiradaError(f"the token {word[:12] + '…'!r} has {len(word)} letters: give at most {MAX_LETTERS}")
        if not word.isprintable():  # half a surrogate pair, say, which could not be written back
            raise MiradaError(f"the token {word!r} has letters that cannot be shown: give words")
    return words


def consider(call: Call) -> list[Considered]:
    """Every kernel of the table with the reason why it does not compute this call."""
    chosen = kernels.choose(call)
    found, is_later = [], False
    for kernel in kernels.TABLE:
        reason = kernel.refuses(call)
        if kernel is not chosen and reason is None:
            reason = SERVES_TOO if is_later else TOO_WIDE
        is_later = is_later or kernel is chosen
        found.append(Considered(kernel.name, reason))
    return found


@torch.no_grad()
def _caught(model: Layer, x_BND: Tensor) -> Call:
    """What the layer asks of the kernels."""
    calls: list[Call] = []

    def listen(call: Call) -> Tensor:
        calls.append(call)
        return kernels.run(call)

    listener: dict[nn.Module, Callable[[Call], Tensor]] = {model.attention.attend: listen}
    with stand_ins.of({**stand_ins.get(), **listener}):
        model(x_BND)
    return calls[0]
