"""What belongs to no single part of the models of text."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mirada import systems
from mirada.nn import DecoderLayer, EncoderLayer, LinearPatches, TokenEmbedding
from mirada.nn.volumes import VolumePatches
from mirada.tasks.search import beam_search, greedy

START, END = 2, 3


def pair_model(**arguments: object) -> nn.Module:
    torch.manual_seed(0)
    return systems.create("transformer", "tiny", num_tokens=11, dim=16, depth=1, num_heads=2, **arguments).eval()


def test_A3_one_hot_vectors_know_no_similarity():
    one_hot_TT = torch.eye(7)
    assert torch.equal(one_hot_TT @ one_hot_TT.mT, torch.eye(7))  # every two words are equally unlike
    embedding = TokenEmbedding.from_pretrained(torch.randn(7, 3), scale=1.0)
    token_BN = torch.tensor([[5, 0, 2]])
    assert torch.equal(embedding(token_BN), one_hot_TT[token_BN] @ embedding.weight)


def test_A8_the_likeliest_token_is_the_largest_of_ten_thousand_logits():
    model = systems.create("gpt", "nano", num_tokens=10_000, max_length=5).eval()
    logits_BNT = model(torch.tensor([[1, 7, 9_999]]))
    assert logits_BNT.shape == (1, 3, 10_000)
    log_p_BNT = logits_BNT - logits_BNT.logsumexp(-1, keepdim=True)
    assert torch.equal(log_p_BNT.exp().argmax(-1), logits_BNT.argmax(-1))


@pytest.mark.parametrize("dim", [50, 100, 200, 300, 512, 768])
def test_A9_embeddings_of_the_usual_sizes(dim):
    embedding = TokenEmbedding(13, dim)
    assert sum(p.numel() for p in embedding.parameters()) == 13 * dim
    assert embedding(torch.tensor([[12, 0]])).shape == (1, 2, dim)


def test_A12_a_later_adjective_changes_a_noun_only_where_one_may_look_ahead():
    """ "banco verde" and "banco central": a decoder reads the noun before it knows which, an encoder does not."""
    noun, adjectives = 5, (6, 7)
    texts_BN = torch.tensor([[START, noun, adjective, END] for adjective in adjectives])
    torch.manual_seed(0)
    gpt = systems.create("gpt", "nano", num_tokens=11, max_length=8).eval()
    bert = systems.create("bert", "tiny", num_tokens=11, max_length=8).eval()
    (one, other), place = gpt.features(texts_BN), 1
    assert torch.equal(one[place], other[place])
    one, other = bert.features(texts_BN)
    assert not torch.allclose(one[place], other[place], atol=1e-3)
    assert torch.equal(bert.embedding(texts_BN)[0, place], bert.embedding(texts_BN)[1, place])  # the static vector


def test_A14_language_time_series_and_video_become_rows_of_vectors():
    dim = 19
    language_BND = TokenEmbedding(11, dim)(torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]))
    series_BCT = torch.randn(2, 3, 35)  # three channels over time: an image of one row, in patches of seven steps
    series_BND, _ = LinearPatches(3, dim, (1, 7))(series_BCT[:, :, None])
    video_BND, _ = VolumePatches(3, dim, (2, 4, 4))(torch.randn(2, 3, 10, 4, 4))
    assert language_BND.shape == series_BND.shape == video_BND.shape == (2, 5, dim)


@pytest.mark.parametrize("system", ["transformer", "seq2seq"])
def test_G6_each_token_depends_on_its_own_state_whether_read_at_once_or_step_by_step(system):
    torch.manual_seed(0)
    model = systems.create(system, "tiny", num_tokens=11, dim=16, depth=1).eval()
    source_BM, read_BN = torch.randint(4, 11, (3, 7)), torch.randint(4, 11, (3, 5))
    at_once_BNT = model(source_BM, read_BN)
    state = model.begin(source_BM)
    steps = [model.next_logits(read_BN[:, n : n + 1], state) for n in range(5)]
    assert torch.allclose(torch.cat(steps, 1), at_once_BNT, atol=1e-5)


def test_G7_three_kinds_of_transformer_from_one_set_of_blocks():
    encoder = systems.create("bert", "tiny", num_tokens=11, max_length=8)
    decoder = systems.create("gpt", "nano", num_tokens=11, max_length=8)
    both = pair_model()

    def blocks(model: nn.Module) -> set[type]:
        return {type(part) for part in model.modules() if isinstance(part, EncoderLayer | DecoderLayer)}

    assert blocks(encoder) == blocks(decoder) == {EncoderLayer} and blocks(both) == {EncoderLayer, DecoderLayer}


def test_G9_greedy_is_a_beam_of_one_and_stops_at_the_end_or_fifty_tokens_after_the_source():
    model = pair_model()
    source_BM = torch.tensor([[5, 6, END, 0], [7, 8, 9, END]])
    texts = greedy(model, source_BM, start=START, end=END)
    assert texts == [best for (best,) in beam_search(model, source_BM, start=START, end=END, beam=1, penalty="none")]
    for text, length in zip(texts, (3, 4), strict=True):
        assert END not in text.tokens
        assert text.is_finished or len(text.tokens) == length + 50
