"""word2vec on a grammar whose answer is known: words of a class cluster, relations are parallel."""

import pytest
import torch
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.systems import Word2Vec, create
from mirada.systems.word2vec import negative_sampling_loss
from mirada.tasks.vectors import analogy, neighbours

KINDS, FORMS, MARKS = 8, 3, 4  # a word is one of 8 nouns in one of 3 forms; 4 words tell each noun, 4 each form
WORDS = KINDS * FORMS
NOUN_MARK, FORM_MARK = WORDS, WORDS + KINDS * MARKS
TOKENS = FORM_MARK + FORMS * MARKS


def pairs(count: int, generator: torch.Generator):
    """A word beside a word that goes with its noun, or beside one that goes with its form; and the other way round."""
    noun, form, mark, which = (torch.randint(0, n, (count,), generator=generator) for n in (KINDS, FORMS, MARKS, 4))
    beside = torch.where(which % 2 == 0, NOUN_MARK + noun * MARKS + mark, FORM_MARK + form * MARKS + mark)
    word = noun * FORMS + form
    return torch.where(which < 2, word, beside), torch.where(which < 2, beside, word)


@pytest.fixture(scope="module")
def vectors():
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(3)
    model = create("word2vec", num_tokens=TOKENS, dim=16)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-2)
    for _ in range(400):
        centre_B, near_B = pairs(512, generator)
        drawn_BK = torch.randint(0, TOKENS, (512, 5), generator=generator)
        loss = negative_sampling_loss(model(centre_B, torch.cat([near_B[:, None], drawn_BK], dim=1)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.vectors.detach()


def test_scores_are_dot_products_and_the_loss_is_that_of_the_paper():
    model = Word2Vec(num_tokens=7, dim=3)
    with torch.no_grad():
        model.context.weight.normal_()
    centre_B, other_BK = torch.tensor([1, 4]), torch.tensor([[2, 3, 0], [6, 5, 5]])
    scores = model(centre_B, other_BK)
    v, u = model.vectors, model.context.weight
    for b in range(2):
        for k in range(3):
            torch.testing.assert_close(scores[b, k], v[centre_B[b]] @ u[other_BK[b, k]])
    by_hand = [-s[0].sigmoid().log() - (-s[1]).sigmoid().log() - (-s[2]).sigmoid().log() for s in scores]
    torch.testing.assert_close(negative_sampling_loss(scores), sum(by_hand) / 2)


def test_start_is_that_of_the_published_code():
    model = create("word2vec", "large", num_tokens=499)
    assert model.vectors.shape == (499, 300)
    assert not model.context.weight.any()
    assert model.vectors.abs().max().item() == pytest.approx(0.5 / 300, rel=0.01)


def test_A4_words_of_a_class_are_each_others_neighbours(vectors):
    """Four words tell a noun: are the three nearest of each the other three? By chance, 3/67 of them are."""
    marks = range(NOUN_MARK, FORM_MARK)
    near = {mark: [other for other, _ in neighbours(vectors, mark, 3)] for mark in marks}
    same = [(other - NOUN_MARK) // MARKS == (mark - NOUN_MARK) // MARKS for mark in marks for other in near[mark]]
    assert sum(same) / len(same) > 0.8


def test_A4_analogies_are_solved(vectors):
    """noun a in form 1 is to noun a in form 0 as noun b in form 1 is to noun b in form 0; by chance 1/65."""
    solved, asked = 0, 0
    for one in range(KINDS):
        for other in set(range(KINDS)) - {one}:
            for form in range(1, FORMS):
                found = analogy(vectors, one * FORMS + form, one * FORMS, other * FORMS, 1)
                solved, asked = solved + (found[0][0] == other * FORMS + form), asked + 1
    assert solved / asked > 0.5


def test_A6_differences_of_parallel_pairs_are_parallel(vectors):
    """The whole distribution of cosines lies higher than that of random pairs: bootstrap of the difference of means."""
    generator = torch.Generator().manual_seed(5)
    word_KFD = vectors[:WORDS].unflatten(0, (KINDS, FORMS))
    step_KD = F.normalize(word_KFD[:, 1] - word_KFD[:, 0], dim=1)
    parallel = (step_KD @ step_KD.T)[~torch.eye(KINDS, dtype=torch.bool)]
    one, other, third, fourth = torch.randint(0, WORDS, (4, 500), generator=generator)
    random = F.cosine_similarity(vectors[one] - vectors[other], vectors[third] - vectors[fourth])
    draws = [
        sample[torch.randint(0, len(sample), (1000, len(sample)), generator=generator)].mean(1)
        for sample in (parallel, random)
    ]
    assert (draws[0] - draws[1]).quantile(0.025) > 0.2


def test_neighbours_are_ordered_by_cosine_without_the_word_itself():
    matrix = torch.tensor([[1.0, 0.0], [9.0, 1.0], [0.0, 2.0], [-1.0, 0.0]])
    found = neighbours(matrix, 0, 9)
    assert [token for token, _ in found] == [1, 2, 3]
    assert [cosine for _, cosine in found] == pytest.approx([9 / 82**0.5, 0.0, -1.0], abs=1e-6)
    assert neighbours(matrix, 0, 1) == found[:1]


def test_analogy_leaves_the_three_out():
    matrix = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.7, 1.0], [-1.0, 0.0, 0.0]])
    assert [token for token, _ in analogy(matrix, 0, 1, 2, 5)] == [3, 4]


@pytest.mark.parametrize("token", [-1, 4])
def test_a_word_that_is_not_there_is_refused(token):
    with pytest.raises(MiradaError, match=f"token {token}: must be 0 to 3"):
        neighbours(torch.zeros(4, 2), token, 1)
