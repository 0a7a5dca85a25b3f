"""Parts of a model with all left out that only training needs: around a small product, it takes as long as that.

Shape letters: B batch, N tokens, M keys, H heads, K head dim, D model dim, S sentences, W their beams, R = S·W rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import Attention, Cache, Places, full
from mirada.nn.mlp import MLP
from mirada.nn.residual import PostNorm, PreNorm


def can_be_lean(part: nn.Module) -> bool:
    """There is a lean form, and what that leaves out acts in training only."""
    if isinstance(part, PreNorm | PostNorm | MLP):
        left_out = part.dropout if isinstance(part, MLP) else part.branch
        return type(part) in LEAN and isinstance(left_out, nn.Dropout | nn.Identity)
    if type(part) is Attention:
        return part.rotary is None and part.attend.is_plain
    return type(part) in LEAN


class Called(nn.Module):
    """Called without looking for hooks, which takes as long as a small product."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


class LeanPreNorm(Called):
    """y = x + inner(norm(x))"""

    def __init__(self, whole: PreNorm) -> None:
        super().__init__()
        self.inner, self.norm = whole.inner, whole.norm

    def forward(self, x_BND: Tensor, *others: Any, **context: Any) -> Tensor:
        return x_BND + self.inner(self.norm(x_BND), *others, **context)


class LeanPostNorm(LeanPreNorm):
    """y = norm(x + inner(x))"""

    def forward(self, x_BND: Tensor, *others: Any, **context: Any) -> Tensor:
        return self.norm(x_BND + self.inner(x_BND, *others, **context))


class LeanMLP(Called):
    """y = W_2 g(W_1 x + b_1) + b_2"""

    def __init__(self, whole: MLP) -> None:
        super().__init__()
        self.expand, self.activation, self.contract = whole.expand, whole.activation, whole.contract
        if type(self.activation) is nn.ReLU:
            self.activation = nn.ReLU(inplace=True)

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.contract(self.activation(self.expand(x_BND)))


class LeanNorm(Called):
    """y = γ (x − mean) / std + β"""

    def __init__(self, whole: nn.LayerNorm) -> None:
        super().__init__()
        self.shape, self.eps = whole.normalized_shape, whole.eps
        self.weight, self.bias = whole.weight, whole.bias

    def forward(self, x_BND: Tensor) -> Tensor:
        return torch.layer_norm(x_BND, self.shape, self.weight, self.bias, self.eps)


class LeanAttention(Called, Attention):
    """As Attention, whose next token after those in the cache needs no place to see all of them."""

    def __init__(self, whole: Attention) -> None:
        nn.Module.__init__(self)
        self.heads, self.rotary, self.attend = whole.heads, whole.rotary, whole.attend

    def forward(
        self,
        x_BND: Tensor,
        memory_BMD: Tensor | None = None,
        *,
        valid_BM: Tensor | None = None,
        places: Places | None = None,
        cache: Cache | None = None,
        **others: Any,
    ) -> Tensor:
        if cache is None or x_BND.shape[1] != 1 or not self._sees_all(memory_BMD, places, cache, others):
            return super().forward(x_BND, memory_BMD, valid_BM=valid_BM, places=places, cache=cache, **others)
        # The beams of a sentence are so many queries to what it has in common, which is read once.
        if memory_BMD is None:
            width = cache.width(self)
            if width > 1 and valid_BM is not None:  # which speaks of the tokens of each row
                return super().forward(x_BND, valid_BM=valid_BM, places=places, cache=cache, **others)
            q_SHWK, k_SHWK, v_SHWK = self.heads.project(x_BND.view(-1, width, x_BND.shape[-1]))
            k_SHMK, v_SHMK, hidden_SWM = cache.append_together(self, k_SHWK, v_SHWK)
            mask = valid_BM if hidden_SWM is None else hidden_SWM
        else:
            k_SHMK, v_SHMK = self._memory_keys(memory_BMD, None, cache)
            width = len(x_BND) // len(k_SHMK)
            q_SHWK = self.heads.queries(x_BND.view(-1, width, x_BND.shape[-1]))
            mask = None if valid_BM is None else valid_BM[::width]
        out_SWD = self.heads.join(self.attend.to_all(q_SHWK, k_SHMK, v_SHMK, mask))
        return out_SWD.reshape(*x_BND.shape[:2], -1)

    def _sees_all(self, memory_BMD: Tensor | None, places: Places | None, cache: Cache, others: dict[str, Any]) -> bool:
        if others.get("neighbours") is not None or self.attend.is_watched:
            return False
        return cache.continues(self, places) if memory_BMD is None else self.attend.neighbours == full()


LEAN: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    PreNorm: LeanPreNorm,
    PostNorm: LeanPostNorm,
    MLP: LeanMLP,
    nn.LayerNorm: LeanNorm,
    Attention: LeanAttention,
}
