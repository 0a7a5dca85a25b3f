"""Embedding: scaled by √D, tied to its unembedding, random or pretrained."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mirada.nn import TokenEmbedding

B, N, D, T = 2, 5, 7, 13


def test_A5_a_row_of_the_matrix_is_a_word_and_a_lookup_is_a_product_with_a_one_hot_vector():
    embedding = TokenEmbedding(T, D, scale=1.0)
    matrix_DT = embedding.weight.T  # the lecture's form, with words as columns
    for token in range(T):
        one_hot = nn.functional.one_hot(torch.tensor(token), T).float()
        row = embedding(torch.tensor([[token]]))[0, 0]
        assert torch.equal(row, matrix_DT[:, token]) and torch.equal(row, one_hot @ matrix_DT.T)


def test_A5_a_lookup_teaches_only_the_rows_it_used():
    embedding, token = TokenEmbedding(T, D), torch.tensor([[1, 4, 4], [7, 1, 11]])
    embedding(token).square().sum().backward()
    assert embedding.weight.grad.abs().sum(1).nonzero().flatten().tolist() == [1, 4, 7, 11]


def test_A10_output_is_the_row_times_root_of_dim():
    embedding, token = TokenEmbedding(T, D), torch.randint(0, T, (B, N))
    rows = torch.stack([torch.stack([embedding.weight[t] for t in row]) for row in token])
    torch.testing.assert_close(embedding(token), D**0.5 * rows)


def test_A10_scaled_standard_deviation_is_root_of_dim_times_that_of_the_table():
    embedding = TokenEmbedding(499, 64)
    x = embedding(torch.arange(499))
    assert (x.std() / embedding.weight.std()).item() == pytest.approx(8.0)
    assert x.std().item() == pytest.approx(1.0, abs=0.03)


def test_A10_without_scale_as_in_BERT_it_equals_torch():
    embedding, token = TokenEmbedding(T, D, scale=1.0, std=0.02), torch.randint(0, T, (B, N))
    theirs = nn.Embedding(T, D)
    theirs.load_state_dict(embedding.state_dict())
    assert torch.equal(embedding(token), theirs(token))
    assert embedding.weight.std().item() == pytest.approx(0.02, rel=0.3)


def test_A11_pretrained_rows_equal_their_source_and_random_ones_do_not_repeat():
    matrix = torch.randn(T, D)
    embedding = TokenEmbedding.from_pretrained(matrix, scale=1.0)
    assert torch.equal(embedding(torch.arange(T)), matrix)
    with torch.no_grad():
        embedding.weight.zero_()
    assert matrix.abs().max() > 0, "the source was not copied"
    assert embedding.weight.requires_grad
    assert not torch.equal(TokenEmbedding(T, D).weight, TokenEmbedding(T, D).weight)
    assert TokenEmbedding.from_pretrained(matrix.double()).weight.dtype == torch.float64


def test_A11_tied_unembedding_uses_the_same_weight_and_both_uses_train_it():
    embedding, token = TokenEmbedding(T, D), torch.randint(0, T, (B, N))
    h = torch.randn(B, N, D)
    torch.testing.assert_close(embedding.unembed(h), h @ embedding.weight.T)
    assert len(list(embedding.parameters())) == len(embedding.state_dict()) == 1
    (from_in,) = torch.autograd.grad(embedding(token).sum(), embedding.weight)
    (from_out,) = torch.autograd.grad(embedding.unembed(h).sum(), embedding.weight)
    (from_both,) = torch.autograd.grad(embedding(token).sum() + embedding.unembed(h).sum(), embedding.weight)
    assert from_in.abs().max() > 0 and from_out.abs().max() > 0
    torch.testing.assert_close(from_both, from_in + from_out)
