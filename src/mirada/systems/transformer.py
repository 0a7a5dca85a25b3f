"""Transformer: an encoder reads the source, a decoder writes the target and looks at what was read (Vaswani 2017).

    m = encoder(√D E x + P),   h_t = decoder(√D E y_1 … y_t + P, m),   p(y_{t+1} | y_1 … y_t, x) from E h_t

Shape letters: B batch, M tokens of the source, N tokens of the target, A those that are asked for, D dim, T tokens of
the target's vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn

from mirada.core import Attention, Cache, Concatenated, Learned, Rotary, Shaw, Sinusoidal, line
from mirada.errors import MiradaError
from mirada.nn import (
    MLP,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    TokenMatrices,
    neighbours_named,
    post_norm,
    pre_norm,
)
from mirada.nn.dropout import Dropout
from mirada.systems.registry import Card, one_of, register

SHAW_DISTANCE = 16  # the clipping distance of the base model (Shaw 2018, section 4.2)


@dataclass
class TransformerState:
    """What was read, which of it is real (None: all), and the keys and values of the `length` target tokens so far.

    After the first step the cache has the keys and values of what was read, and `memory_BMD` no content (D = 0).
    """

    memory_BMD: Tensor
    valid_BM: Tensor | None
    cache: Cache = field(default_factory=Cache)
    length: int = 0

    def reorder(self, index_B: Tensor) -> None:
        self.memory_BMD = self.memory_BMD.index_select(0, index_B)
        self.valid_BM = None if self.valid_BM is None else self.valid_BM.index_select(0, index_B)
        self.cache.reorder(index_B)


@register(
    Card(
        name="transformer",
        title="Transformer",
        summary="Reads a sentence with self-attention and writes another, looking at what it read at every word.",
        paper="Vaswani et al., Attention Is All You Need, 2017",
        inputs="pairs",
        parts={
            "score": "scaled dot",
            "neighbours": "full, window, strided or fixed; causal in the decoder; full from target to source",
            "position": "sinusoidal, learned, rotary or relative (Shaw)",
            "heads": "concatenated",
        },
        sizes={
            "tiny": {"dim": 128, "depth": 2, "num_heads": 4},
            "small": {"dim": 256, "depth": 3, "num_heads": 4},
            "base": {"dim": 512, "depth": 6, "num_heads": 8, "norm": "post"},
            "big": {"dim": 1024, "depth": 6, "num_heads": 16, "norm": "post", "dropout": 0.3},
        },
        default_size="small",
        when_to_use="To translate or rewrite sentences: tiny and small on a laptop, base and big are the paper's.",
        tiny={"dim": 24, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "dropout": 0.0},
    )
)
class Transformer(nn.Module):
    """Logits (B, N, num_target_tokens) of the token after each of `read` (B, N), given a source (B, M).

    num_tokens       of the vocabulary, that of the source if `num_target_tokens` says that the target has its own
    pad              the token that fills up sources: nobody looks at it
    norm             "post": LN(x + F(x)), the paper; "pre": x + F(LN(x)), which learns without a long warm-up
    final_norm       one more norm after the last layers: pre-norm needs it; torch.nn.Transformer has it with both,
                     the paper and Marian, with post-norm, do not
    position         "sinusoidal" ("sinusoidal_half": all sines first, Marian), "learned" up to `max_length` tokens,
                     "rotary", "shaw", "none"; the last three act within self-attention
    neighbours       whom tokens of one side look at: "full", "window:8", "strided:16", "fixed:16", "fixed:16:2"; the
                     decoder looks at those of them that came before
    tie              which matrices are one: "all", "output" or "none"; None: as far as the vocabularies allow
    embedding_scale  in place of √dim
    dropout          of the embedded tokens and of every sublayer's result, as in the paper

    Padding of the target stands at its end, where the causal decoder never looks: it needs no mask, and a target may
    begin with `pad`, as Marian's do. Started with Xavier uniform weights, zero biases, tokens normal(0, 1/√dim).
    """

    def __init__(
        self,
        *,
        num_tokens: int,
        num_target_tokens: int | None = None,
        pad: int = 0,
        dim: int = 256,
        depth: int = 3,
        decoder_depth: int | None = None,
        num_heads: int = 4,
        mlp_ratio: float = 4.0,
        norm: str = "pre",
        final_norm: bool = True,
        position: str = "sinusoidal",
        max_length: int = 512,
        neighbours: str = "full",
        tie: str | None = None,
        activation: str = "relu",
        embedding_scale: float | None = None,
        output_bias: bool = False,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if norm == "pre" and not final_norm:
            raise MiradaError("norm='pre' with final_norm=False: no layer would norm the output, use final_norm=True")
        self.pad = pad
        self.tokens = TokenMatrices(
            num_tokens, dim, num_target_tokens=num_target_tokens, tie=tie, scale=embedding_scale, bias=output_bias
        )
        self.source_position = added_position(position, dim, max_length)
        self.target_position = added_position(position, dim, max_length)
        self.dropout = Dropout(dropout)
        wrap = one_of("norm", norm, {"pre": pre_norm, "post": post_norm})
        residual = wrap(lambda: nn.LayerNorm(dim), lambda: Dropout(dropout))

        def self_attention(is_causal: bool) -> Attention:
            heads = Concatenated(dim, num_heads)
            rule = neighbours_named(neighbours, is_causal=is_causal)
            return Attention(heads, neighbours=rule, position=inner_position(position, heads.head_dim))

        def mlp() -> MLP:
            g = one_of("activation", activation, {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU})
            return MLP(dim, int(dim * mlp_ratio), g())

        def norm_at_the_end() -> nn.Module | None:
            return nn.LayerNorm(dim) if final_norm else None

        self.encoder = Encoder(
            [EncoderLayer(self_attention(is_causal=False), mlp(), residual) for _ in range(depth)], norm_at_the_end()
        )
        self.decoder = Decoder(
            [
                DecoderLayer(self_attention(is_causal=True), Attention(Concatenated(dim, num_heads)), mlp(), residual)
                for _ in range(depth if decoder_depth is None else decoder_depth)
            ],
            norm_at_the_end(),
        )

    @property
    def num_positions(self) -> int | None:
        """Tokens that either side can have at most, where positions are learned; None: any number."""
        learned = [part for part in (self.source_position, self.target_position) if isinstance(part, Learned)]
        return min((part.size[0] for part in learned), default=None)

    def forward(self, source_BM: Tensor, read_BN: Tensor, asked_BN: Tensor | None = None) -> Tensor:
        """With `asked_BN`, logits (A, T) after the tokens where it is True, in their order."""
        y_BND = self._written(read_BN, self.encode(source_BM), source_BM != self.pad)
        return self.tokens.scores(y_BND if asked_BN is None else y_BND[asked_BN])

    def encode(self, source_BM: Tensor) -> Tensor:
        """(B, M, D): what the decoder looks at."""
        places = line(source_BM.shape[1], device=source_BM.device)
        x_BMD = self.dropout(self.source_position(self.tokens.source(source_BM), places))
        return self.encoder(x_BMD, valid_BM=source_BM != self.pad)

    def begin(self, source_BM: Tensor) -> TransformerState:
        valid_BM = source_BM != self.pad
        return TransformerState(self.encode(source_BM), None if bool(valid_BM.all()) else valid_BM)

    def next_logits(self, read_BN: Tensor, state: TransformerState, num_last: int | None = None) -> Tensor:
        """(B, N, T) after each of the tokens that the state has not seen; the state has seen them then.

        `num_last` computes the logits of so many at the end only.
        """
        y_BND = self._written(read_BN, state.memory_BMD, state.valid_BM, state.cache, state.length)
        state.length += read_BN.shape[1]
        state.memory_BMD = state.memory_BMD.new_empty(*state.memory_BMD.shape[:2], 0)
        return self.tokens.scores(y_BND if num_last is None else y_BND[:, -num_last:])

    def _written(
        self, read_BN: Tensor, memory_BMD: Tensor, valid_BM: Tensor | None, cache: Cache | None = None, seen: int = 0
    ) -> Tensor:
        places = line(read_BN.shape[1], start=seen, device=read_BN.device)
        y_BND = self.dropout(self.target_position(self.tokens.target(read_BN), places))
        return self.decoder(y_BND, memory_BMD, memory_valid_BM=valid_BM, cache=cache)


class NoPosition(nn.Module):
    """x_i: nothing is added to the tokens."""

    def forward(self, x_BND: Tensor, places: object) -> Tensor:
        return x_BND


def added_position(name: str, dim: int, max_length: int) -> nn.Module:
    """What is added to the tokens."""
    positions: dict[str, Callable[[], nn.Module]] = {
        "sinusoidal": lambda: Sinusoidal(dim),
        "sinusoidal_half": lambda: Sinusoidal(dim, convention="half"),
        "learned": lambda: Learned((max_length,), dim),
        "rotary": NoPosition,
        "shaw": NoPosition,
        "none": NoPosition,
    }
    return one_of("position", name, positions)()


def inner_position(name: str, head_dim: int) -> Rotary | Shaw | None:
    """What acts within self-attention."""
    if name == "rotary":
        return Rotary(head_dim)
    return Shaw(head_dim, SHAW_DISTANCE, value_dim=head_dim) if name == "shaw" else None
