"""BERT: every token looks at all others, to find what was hidden or what the text is about (Devlin 2018).

    z_0 = LN(E t + P + S s),   z_l = layer_l(z_{l−1}) with the norm after each branch
    hidden tokens:  logits_n = E LN(GELU(W z_n + b)) + c        classes:  logits = W_c tanh(W_p z_1 + b_p) + b_c

s says which of two sentences a token belongs to. Sizes "tiny" to "medium" are those of Turc 2019.

Shape letters: B batch, N tokens, A those that are asked for, D dim, T tokens of the vocabulary, C classes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.core import Attention, Concatenated, Learned, line
from mirada.errors import MiradaError
from mirada.nn import MLP, Encoder, EncoderLayer, TokenEmbedding, post_norm
from mirada.nn.dropout import Dropout
from mirada.systems.registry import Card, register

STD = 0.02


@register(
    Card(
        name="bert",
        title="BERT",
        summary="Reads a text in both directions: it fills gaps, tells classes apart, gives each word its context.",
        paper="Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers, 2018",
        inputs="text",
        parts={"score": "scaled dot", "neighbours": "full", "position": "learned", "heads": "concatenated"},
        sizes={
            "tiny": {"dim": 128, "depth": 2, "num_heads": 2},
            "mini": {"dim": 256, "depth": 4, "num_heads": 4},
            "small": {"dim": 512, "depth": 4, "num_heads": 8},
            "medium": {"dim": 512, "depth": 8, "num_heads": 8},
            "base": {"dim": 768, "depth": 12, "num_heads": 12},
            "large": {"dim": 1024, "depth": 24, "num_heads": 16},
        },
        default_size="tiny",
        when_to_use="To classify texts or fill gaps: tiny and mini from scratch, the others with published weights.",
        tiny={"dim": 16, "depth": 2, "num_heads": 2, "max_length": 32, "dropout": 0.0},
    )
)
class Bert(nn.Module):
    """Logits (B, N, num_tokens) of the tokens (B, N) themselves, as some are hidden; with `num_classes`,
    (B, num_classes) of the texts, from their first token.

    pad           fills texts at their end; nobody looks at it
    max_length    of a text
    num_segments  kinds of token, such as the first and the second of two sentences
    dropout       of the embedded tokens, of the attention weights, of every branch and before the classes

    Started as the published code: all matrices normal(0, 0.02) cut at two deviations, biases zero.
    """

    def __init__(
        self,
        *,
        num_tokens: int,
        pad: int = 0,
        num_classes: int | None = None,
        dim: int = 128,
        depth: int = 2,
        num_heads: int = 2,
        mlp_ratio: float = 4.0,
        max_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        norm_eps: float = 1e-12,
    ) -> None:
        super().__init__()
        self.pad = pad
        self.embedding = TokenEmbedding(num_tokens, dim, scale=1.0, std=STD)
        self.position = Learned((max_length,), dim, std=STD)
        self.segment = TokenEmbedding(num_segments, dim, scale=1.0, std=STD)
        self.norm = nn.LayerNorm(dim, eps=norm_eps)
        self.dropout = Dropout(dropout)
        self.encoder = Encoder(
            EncoderLayer(
                Attention(Concatenated(dim, num_heads), dropout=dropout),
                MLP(dim, int(dim * mlp_ratio), nn.GELU()),
                post_norm(lambda: nn.LayerNorm(dim, eps=norm_eps), lambda: Dropout(dropout)),
            )
            for _ in range(depth)
        )
        if num_classes is None:
            self.fill: FillHead | None = FillHead(dim, num_tokens, norm_eps)
            self.pooler, self.head = None, None
        else:
            self.fill = None
            self.pooler, self.head = nn.Linear(dim, dim), nn.Linear(dim, num_classes)
        for part in self.modules():
            if isinstance(part, nn.Linear | TokenEmbedding | Learned):
                nn.init.trunc_normal_(part.weight, std=STD, a=-2 * STD, b=2 * STD)
            if isinstance(part, nn.Linear):
                nn.init.zeros_(part.bias)

    def forward(self, token_BN: Tensor, segment_BN: Tensor | None = None, asked_BN: Tensor | None = None) -> Tensor:
        """Without `segment_BN` all tokens are of the first segment; with `asked_BN`, logits (A, T) of the tokens where
        it is True, in their order: of few among many, the others' would be most of the work.
        """
        return self.answer(self.features(token_BN, segment_BN=segment_BN), asked_BN)

    def answer(self, h_BND: Tensor, asked_BN: Tensor | None = None) -> Tensor:
        """What the heads make of tokens in their context."""
        if self.fill is not None:
            return self.fill(h_BND if asked_BN is None else h_BND[asked_BN], self.embedding)
        assert self.pooler is not None and self.head is not None
        return self.head(self.dropout(torch.tanh(self.pooler(h_BND[:, 0]))))

    def features(self, token_BN: Tensor, layer: int | None = None, segment_BN: Tensor | None = None) -> Tensor:
        """(B, N, D): each token in its context, after `layer` layers (0: none has been looked at; None: after all)."""
        layers = self.encoder.layers
        if layer is not None and not 0 <= layer <= len(layers):
            raise MiradaError(f"features after layer {layer} of a BERT with {len(layers)}: must be 0 to {len(layers)}")
        x_BND = self.position(self.embedding(token_BN), line(token_BN.shape[1], device=token_BN.device))
        x_BND = x_BND + (self.segment.weight[0] if segment_BN is None else self.segment(segment_BN))
        x_BND = self.dropout(self.norm(x_BND))
        valid_BN = token_BN != self.pad
        for number in range(len(layers) if layer is None else layer):
            x_BND = layers[number](x_BND, valid_BM=valid_BN)
        return x_BND


class FillHead(nn.Module):
    """logits = E LN(GELU(W h + b)) + c, with the E that embeds."""

    def __init__(self, dim: int, num_tokens: int, norm_eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(dim, dim)
        self.activation = nn.GELU()
        self.norm = nn.LayerNorm(dim, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(num_tokens))

    def forward(self, h_BND: Tensor, embedding: TokenEmbedding) -> Tensor:
        return embedding.unembed(self.norm(self.activation(self.dense(h_BND)))) + self.bias
