"""Looks with known weights."""

import torch

from mirada.explain.looks import Look, Tokens


def look(weights_BHNM: torch.Tensor, queries: Tokens, keys: Tokens | None = None, **changes) -> Look:
    return Look("layer", weights_BHNM, queries, queries if keys is None else keys, **changes)


def even(queries: Tokens, keys: Tokens | None = None, batch: int = 2, num_heads: int = 3) -> Look:
    keys = queries if keys is None else keys
    return look(torch.full((batch, num_heads, len(queries), len(keys)), 1 / len(keys)), queries, keys)


def random_rows(batch: int, num_heads: int, num_queries: int, num_keys: int) -> torch.Tensor:
    weights = torch.rand(batch, num_heads, num_queries, num_keys) + 0.01
    return weights / weights.sum(-1, keepdim=True)
