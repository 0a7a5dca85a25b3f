"""How well query i fits key j: (q, k) → logits.

Shape letters: B batch, H heads, N queries, M keys, K head dim, Z hidden width or features, E edges. Heads are always
dimension 1; blocks of queries and keys may stand between heads and N, so the dense form is (B, H, …, N, K) ×
(B, H, …, M, K).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _per_head(weight_H: Tensor, like: Tensor, num_kept: int) -> Tensor:
    """A weight (H, …) shaped to meet (B, H, …, rest): its last `num_kept` dimensions stay last."""
    own = weight_H.shape[1:]
    if len(weight_H) == 1:
        return weight_H[0]  # one matrix product for the whole batch, where a batch of them would copy the matrix
    filler = (1,) * (like.ndim - 2 - num_kept)
    return weight_H.view(1, weight_H.shape[0], *filler, *own)


class Score(nn.Module):
    """(q_BHNK, k_BHMK) → logits_BHNM."""

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        raise NotImplementedError

    def pairs(self, q_BHNK: Tensor, k_BHMK: Tensor, i_E: Tensor, j_E: Tensor) -> Tensor:
        """logits_BHE of the pairs (i, j) only."""
        # index_select and not [..., i_E, :]: its gradient adds up in a fixed order on any number of threads.
        return self(q_BHNK.index_select(-2, i_E).unsqueeze(-2), k_BHMK.index_select(-2, j_E).unsqueeze(-2))[..., 0, 0]


class DotScore(Score):
    """Scores that are a dot product once the query is changed: logits = scale · q′ kᵀ. Fused kernels serve these."""

    def as_dot(self, q: Tensor) -> tuple[Tensor, float]:
        raise NotImplementedError

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        q, scale = self.as_dot(q)
        return (q * scale) @ k.mT

    def pairs(self, q_BHNK: Tensor, k_BHMK: Tensor, i_E: Tensor, j_E: Tensor) -> Tensor:
        q, scale = self.as_dot(q_BHNK)
        return (q.index_select(-2, i_E) * k_BHMK.index_select(-2, j_E)).sum(-1) * scale


class ScaledDot(DotScore):
    """logits = q kᵀ / √K (Vaswani 2017, eq. 1); K is the width of q and k, not of the model. `scale` replaces 1/√K."""

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale

    def as_dot(self, q: Tensor) -> tuple[Tensor, float]:
        return q, q.shape[-1] ** -0.5 if self.scale is None else self.scale


class Dot(DotScore):
    """logits = q kᵀ (Luong 2015, "dot")."""

    def as_dot(self, q: Tensor) -> tuple[Tensor, float]:
        return q, 1.0


class Bilinear(DotScore):
    """logits = qᵀ W k (Luong 2015, "general"), one W per head; q and k may have different widths."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, query_dim, key_dim))
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def as_dot(self, q: Tensor) -> tuple[Tensor, float]:
        return q @ _per_head(self.weight, q, 2), 1.0


class LearnedTemperature(DotScore):
    """logits = q kᵀ · eᵗ with a learned t, started at 1/√K (locality self-attention, Lee 2021, eq. 5).

    With the neighbourhood `NotSelf()` this is the whole of locality self-attention.
    """

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.tensor(-0.5 * math.log(head_dim)))

    def as_dot(self, q: Tensor) -> tuple[Tensor, float]:
        return q * self.log_temperature.exp(), 1.0


class Distance(Score):
    """logits = −eᵗ ‖q − k‖ with a learned t per head: the nearer, the more (ModernNCA, Ye 2025; a kernel regression).

    Its values are what is known of the keys: h_i is the mean of what is known around q_i. `sharpness` is eᵗ at first.
    """

    def __init__(self, num_heads: int = 1, sharpness: float = 1.0) -> None:
        super().__init__()
        self.log_sharpness = nn.Parameter(torch.full((num_heads, 1, 1), math.log(sharpness)))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        # Of differences: |q|² + |k|² − 2 q·k is off by 1e-3 where q = k, and by another amount in another batch. The
        # gradient there is zero.
        exact = torch.float64 if q.dtype == torch.float64 else torch.float32
        distance = torch.cdist(q.to(exact), k.to(exact), compute_mode="donot_use_mm_for_euclid_dist")
        return -_per_head(self.log_sharpness.exp(), q, 2) * distance.to(q.dtype)


class Additive(Score):
    """logits = vᵀ tanh(W_q q + W_k k + b) (Bahdanau 2015, appendix A.1.2), one v, W_q, W_k per head.

    `key_dim=None` leaves W_k out: the keys come as W_k k, computed once for a memory that is looked at many times.
    """

    def __init__(
        self, query_dim: int, key_dim: int | None, hidden_dim: int, num_heads: int = 1, bias: bool = False
    ) -> None:
        super().__init__()
        self.query_weight = nn.Parameter(torch.empty(num_heads, query_dim, hidden_dim))
        self.key_weight = None if key_dim is None else nn.Parameter(torch.empty(num_heads, key_dim, hidden_dim))
        self.bias = nn.Parameter(torch.zeros(num_heads, 1, hidden_dim)) if bias else None
        self.v = nn.Parameter(torch.empty(num_heads, hidden_dim, 1))
        for weight in (*self.query_weight, *(() if self.key_weight is None else self.key_weight), *self.v):
            nn.init.xavier_uniform_(weight)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        hidden_q = q @ _per_head(self.query_weight, q, 2)
        if self.bias is not None:
            hidden_q = hidden_q + _per_head(self.bias, q, 2)
        hidden_k = k if self.key_weight is None else k @ _per_head(self.key_weight, k, 2)
        hidden_NMZ = torch.tanh(hidden_q[..., :, None, :] + hidden_k[..., None, :, :])
        return (hidden_NMZ @ _per_head(self.v, hidden_NMZ, 2))[..., 0]


class GraphAdditive(Score):
    """logits = LeakyReLU(a_qᵀ q_i + a_kᵀ k_j) (GAT, Veličković 2018, eq. 3, with a = [a_q ‖ a_k])."""

    def __init__(self, head_dim: int, num_heads: int = 1, negative_slope: float = 0.2) -> None:
        super().__init__()
        self.query_weight = nn.Parameter(torch.empty(num_heads, head_dim, 1))
        self.key_weight = nn.Parameter(torch.empty(num_heads, head_dim, 1))
        self.negative_slope = negative_slope
        for weight in (self.query_weight, self.key_weight):
            # Glorot over (heads, width).
            bound = math.sqrt(6 / (num_heads + head_dim))
            nn.init.uniform_(weight, -bound, bound)

    def _terms(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return (q @ _per_head(self.query_weight, q, 2))[..., 0], (k @ _per_head(self.key_weight, k, 2))[..., 0]

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        of_query, of_key = self._terms(q, k)
        return F.leaky_relu(of_query[..., :, None] + of_key[..., None, :], self.negative_slope)

    def pairs(self, q_BHNK: Tensor, k_BHMK: Tensor, i_E: Tensor, j_E: Tensor) -> Tensor:
        of_query, of_key = self._terms(q_BHNK, k_BHMK)
        return F.leaky_relu(of_query.index_select(-1, i_E) + of_key.index_select(-1, j_E), self.negative_slope)


class SoftCapped(Score):
    """logits = c · tanh(score / c): no logit exceeds c (Gemma 2)."""

    def __init__(self, score: Score, cap: float) -> None:
        super().__init__()
        self.score, self.cap = score, cap

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return self.cap * torch.tanh(self.score(q, k) / self.cap)


class RandomFeatures(Score):
    """logits = log φ(q)ᵀφ(k),  φ(x) = exp(W x′ − |x′|²/2) / √Z,  x′ = x √scale (Performer, Choromanski 2021, eq. 7).

    The softmax of these is φ(q_i)ᵀφ(k_j) / Σ_l φ(q_i)ᵀφ(k_l): a sum that needs no N × M matrix, which the kernel
    "features" makes use of. With many features the logits approach scale · q kᵀ. W is drawn once and never learned: Z
    orthogonal rows of length `norm` (None: √K, which estimates the exponential without bias in the limit of large K).
    `scale` is 1/√K if None.
    """

    def __init__(
        self, head_dim: int, num_features: int, *, scale: float | None = None, norm: float | None = None
    ) -> None:
        super().__init__()
        self.scale = head_dim**-0.5 if scale is None else scale
        # Only K rows can be orthogonal to each other: more come in blocks of K.
        blocks = [torch.empty(min(head_dim, num_features - at), head_dim) for at in range(0, num_features, head_dim)]
        for block in blocks:
            nn.init.orthogonal_(block)
        self.weight: Tensor
        self.register_buffer("weight", torch.cat(blocks) * (head_dim**0.5 if norm is None else norm))

    def log_features(self, x: Tensor) -> Tensor:
        """log φ(x) without the constant: (…, N, K) → (…, N, Z)."""
        x = x * self.scale**0.5
        return x @ self.weight.T.to(x.dtype) - x.square().sum(-1, keepdim=True) / 2

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        log_q, log_k = self.log_features(q), self.log_features(k)
        # The largest feature of each token is taken out first, so that the exponential neither overflows nor vanishes.
        top_q, top_k = log_q.detach().amax(-1, keepdim=True), log_k.detach().amax(-1, keepdim=True)
        product = (log_q - top_q).exp() @ (log_k - top_k).exp().mT
        product = product.clamp(min=torch.finfo(product.dtype).tiny)
        return product.log() + top_q + top_k.mT - math.log(len(self.weight))

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, scale={self.scale:g}"
