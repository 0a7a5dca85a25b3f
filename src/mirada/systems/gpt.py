"""GPT: a text is written from left to right, each token from those before it (Radford 2018; GPT-2, Radford 2019).

    p(t_{n+1} | t_1 … t_n) = softmax(E LN(z_depth)_n),   z_0 = E t + P,   z_l = causal layer_l(z_{l−1})

E both embeds and unembeds. The named sizes from "small" on are those of GPT-2.

Shape letters: B batch, N tokens, A those that are asked for, D dim, T tokens of the vocabulary, C classes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mirada.core import Attention, Cache, Concatenated, Learned, Rotary, Sinusoidal, causal, line
from mirada.nn import MLP, Encoder, EncoderLayer, TokenEmbedding, pre_norm
from mirada.nn.dropout import Dropout
from mirada.systems.registry import Card, one_of, register

STD = 0.02


@register(
    Card(
        name="gpt",
        title="GPT",
        summary="Reads a text from left to right and says what comes next: it writes, or tells classes apart.",
        paper="Radford et al., Language Models are Unsupervised Multitask Learners, 2019",
        inputs="text",
        parts={
            "score": "scaled dot",
            "neighbours": "causal",
            "position": "learned, rotary or sinusoidal",
            "heads": "concatenated",
        },
        sizes={
            "nano": {"dim": 128, "depth": 4, "num_heads": 4},
            "micro": {"dim": 192, "depth": 6, "num_heads": 6},
            "mini": {"dim": 384, "depth": 6, "num_heads": 6},
            "small": {"dim": 768, "depth": 12, "num_heads": 12},
            "medium": {"dim": 1024, "depth": 24, "num_heads": 16},
            "large": {"dim": 1280, "depth": 36, "num_heads": 20},
            "xl": {"dim": 1600, "depth": 48, "num_heads": 25},
        },
        default_size="nano",
        when_to_use="To write text like that of a file: nano and micro from scratch, small to xl with GPT-2's weights.",
        tiny={"dim": 16, "depth": 2, "num_heads": 2, "max_length": 32},
    )
)
class GPT(nn.Module):
    """Logits (B, N, num_tokens) of the token after each of (B, N); with `num_classes`, (B, num_classes) of the texts.

    pad         fills texts at their end, where nobody looks at it; classes are told from the last token before it
    max_length  of a text, with learned positions; others have no limit
    position    "learned", "rotary", or "sinusoidal" (with tokens times √dim, as its waves have amplitude one)
    dropout     of the embedded tokens, of the attention weights and of every branch

    Started as GPT-2: all matrices normal(0, 0.02), those that write into the residual path divided by √(2·depth), as
    so many are added up there; biases zero.
    """

    def __init__(
        self,
        *,
        num_tokens: int,
        pad: int = 0,
        num_classes: int | None = None,
        dim: int = 128,
        depth: int = 4,
        num_heads: int = 4,
        mlp_ratio: float = 4.0,
        max_length: int = 1024,
        position: str = "learned",
        dropout: float = 0.0,
        norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.pad = pad
        positions: dict[str, Callable[[], nn.Module | None]] = {
            "learned": lambda: Learned((max_length,), dim, std=STD),
            "rotary": lambda: None,  # in the attention
            "sinusoidal": lambda: Sinusoidal(dim),
        }
        self.position = one_of("position", position, positions)()
        scale = None if position == "sinusoidal" else 1.0
        self.embedding = TokenEmbedding(num_tokens, dim, scale, std=STD)
        self.dropout = Dropout(dropout)

        def layer() -> EncoderLayer:
            heads = Concatenated(dim, num_heads)
            rotary = Rotary(heads.head_dim) if position == "rotary" else None
            return EncoderLayer(
                Attention(heads, neighbours=causal(), position=rotary, dropout=dropout),
                MLP(dim, int(dim * mlp_ratio), nn.GELU("tanh")),
                pre_norm(lambda: nn.LayerNorm(dim, eps=norm_eps), lambda: Dropout(dropout)),
            )

        self.encoder = Encoder((layer() for _ in range(depth)), nn.LayerNorm(dim, eps=norm_eps))
        self.head = None if num_classes is None else nn.Linear(dim, num_classes, bias=False)
        for name, part in self.named_modules():
            if isinstance(part, nn.Linear):
                writes = name.endswith(("to_out", "contract"))
                nn.init.normal_(part.weight, std=STD * (2 * depth) ** -0.5 if writes else STD)

    def forward(self, token_BN: Tensor, asked_BN: Tensor | None = None) -> Tensor:
        """With `asked_BN`, logits (A, T) after the tokens where it is True, in their order."""
        return self.answer(self.features(token_BN), token_BN, asked_BN)

    def answer(self, h_BND: Tensor, token_BN: Tensor, asked_BN: Tensor | None = None) -> Tensor:
        """What the heads make of what is known of each token."""
        if self.head is not None:
            return self.head(self._last_real(h_BND, token_BN))
        return self.embedding.unembed(h_BND if asked_BN is None else h_BND[asked_BN])

    def features(self, token_BN: Tensor) -> Tensor:
        """(B, N, D): what the head sees of each token; it knows those before it."""
        return self._read(token_BN)

    def begin(self) -> Cache:
        """What `next_logits` remembers of a text; at first nothing."""
        return Cache()

    def next_logits(self, token_BN: Tensor, state: Cache, num_last: int | None = None) -> Tensor:
        """(B, N, T): what comes after each token. Give those that `state` has not seen yet; it moves on, in place.

        `num_last` computes the logits of so many at the end only: of a long beginning, that of the last is enough.
        """
        h_BND = self._read(token_BN, state)
        return self.embedding.unembed(h_BND if num_last is None else h_BND[:, -num_last:])

    def _read(self, token_BN: Tensor, cache: Cache | None = None) -> Tensor:
        seen = 0 if cache is None else cache.length(self.encoder.layers[0].get_submodule("attention.inner"))
        places = line(token_BN.shape[1], start=seen, device=token_BN.device)
        x_BND = self.embedding(token_BN)
        if self.position is not None:
            x_BND = self.position(x_BND, places)
        return self.encoder(self.dropout(x_BND), places=places, cache=cache)

    def _last_real(self, h_BND: Tensor, token_BN: Tensor) -> Tensor:
        """(B, D): of the last token that is not padding; of the first, where all are."""
        place_N = torch.arange(token_BN.shape[1], device=token_BN.device)
        last_B = (place_N * (token_BN != self.pad)).amax(1)
        return h_BND[torch.arange(len(h_BND), device=h_BND.device), last_B]
