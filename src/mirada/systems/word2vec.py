"""word2vec: a word is known by the company it keeps. Skip-gram with negative sampling (Mikolov 2013).

    loss = −log σ(v_c·u_o) − Σ_k log σ(−v_c·u_k)

v_c is the vector of a word, u_o that of a word that stood near it, u_k those of words drawn at random.

Shape letters: B batch, K words to score, D dim, T tokens of the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.nn import TokenEmbedding
from mirada.systems.registry import Card, register


@register(
    Card(
        name="word2vec",
        title="word2vec",
        summary="Gives each word one vector, in which words of like use are near and parallel relations parallel.",
        paper="Mikolov et al., Distributed Representations of Words and Phrases and their Compositionality, 2013",
        inputs="text",
        parts={},
        sizes={"small": {"dim": 50}, "medium": {"dim": 100}, "large": {"dim": 300}},
        default_size="medium",
        when_to_use="For words alike, analogies, and as a start for embeddings: seconds where others need hours.",
        cannot={
            "text_accepts_any_class_count": "it gives vectors, not classes",
            "text_recording": "it has no attention",
        },
        tiny={"dim": 16},
        learning_rate=1e-2,
    )
)
class Word2Vec(nn.Module):
    """Scores (B, K) of words (B, K) near a word (B,): the dot products v_c·u_k.

    Started as the published code: v uniform in ±1/(2·dim), u zero. Every text system has `pad`; no pair has one.
    """

    def __init__(self, *, num_tokens: int, pad: int = 0, dim: int = 100) -> None:
        super().__init__()
        self.pad = pad
        self.centre = TokenEmbedding(num_tokens, dim, scale=1.0)
        self.context = TokenEmbedding(num_tokens, dim, scale=1.0)
        nn.init.uniform_(self.centre.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, centre_B: Tensor, other_BK: Tensor) -> Tensor:
        return (self.context(other_BK) @ self.centre(centre_B)[..., None])[..., 0]

    @property
    def vectors(self) -> Tensor:
        """(T, D): v, what is used of it afterwards."""
        return self.centre.weight


def negative_sampling_loss(score_BK: Tensor) -> Tensor:
    """mean over B of −log σ(s_0) − Σ_{k ≥ 1} log σ(−s_k): the first word is the true one."""
    sign_K = torch.ones(score_BK.shape[1], dtype=score_BK.dtype, device=score_BK.device)
    sign_K[1:] = -1
    return -F.logsigmoid(sign_K * score_BK).sum(1).mean()
