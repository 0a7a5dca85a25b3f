"""Heads that find relations by construction, and heads that do not."""

import pytest
import torch

from mirada.errors import MiradaError
from mirada.explain.looks import Look, Tokens
from mirada.explain.relations import relation_scores

TEXTS, HEADS, LENGTH = 6, 3, 7


def looking(at: dict[tuple[int, int], torch.Tensor]) -> list[Look]:
    """Two layers; head (layer, head) looks at the given word of each text and token, the others at random."""
    generator = torch.Generator().manual_seed(2)
    looks = []
    for layer in range(2):
        weights = torch.rand(TEXTS, HEADS, LENGTH, LENGTH, generator=generator)
        for (where, head), word_BN in at.items():
            if where == layer:
                weights[:, head].scatter_(-1, word_BN[..., None], 9.0)
        looks.append(
            Look(f"layer {layer}", weights / weights.sum(-1, keepdim=True), Tokens((LENGTH,)), Tokens((LENGTH,)))
        )
    return looks


def partners() -> torch.Tensor:
    """(B, N): another word for each, at no fixed distance."""
    return torch.stack([torch.randperm(LENGTH, generator=torch.Generator().manual_seed(n)) for n in range(TEXTS)])


def links_to(word_BN: torch.Tensor) -> torch.Tensor:
    rows = [(text, i, int(word_BN[text, i])) for text in range(TEXTS) for i in range(LENGTH)]
    return torch.tensor(rows)


def test_the_head_that_finds_a_relation_is_named():
    word_BN = partners()
    (score,) = relation_scores(looking({(1, 2): word_BN}), {"object": links_to(word_BN)}).values()
    assert (score.layer, score.head, score.found, score.num_links) == (1, 2, 1.0, TEXTS // 2 * LENGTH)
    assert score.found_LH[1, 2] == 1 and score.found_LH[0].max() < 0.6
    assert score.gain > 0.5


def test_a_fixed_offset_needs_no_attention():
    after = torch.arange(1, LENGTH + 1).clamp(max=LENGTH - 1).expand(TEXTS, -1)
    links = links_to(after)
    links = links[links[:, 1] < LENGTH - 1]
    (score,) = relation_scores(looking({(0, 1): after}), {"next": links}).values()
    assert (score.offset, score.offset_found, score.found, score.gain) == (1, 1.0, 1.0, 0.0)


def test_a_head_that_is_good_on_one_half_only_is_judged_on_the_other():
    word_BN = partners()
    lucky = word_BN.clone()
    lucky[1::2] = (word_BN[1::2] + 1) % LENGTH  # right on the texts that choose, wrong on those that judge
    (score,) = relation_scores(looking({(0, 0): lucky}), {"object": links_to(word_BN)}).values()
    assert (score.layer, score.head, score.found) == (0, 0, 0.0)


def test_special_tokens_do_not_count():
    word_BN = partners()
    looks = looking({(0, 0): word_BN})
    for look in looks:
        look.weights_BHNM[..., 0] = 99.0  # everyone stares at the first token
    is_word_BN = torch.ones(TEXTS, LENGTH, dtype=torch.bool)
    is_word_BN[:, 0] = False
    links = links_to(word_BN)
    links = links[links[:, 2] != 0]
    (plain,) = relation_scores(looks, {"object": links}).values()
    (words,) = relation_scores(looks, {"object": links}, is_word_BN=is_word_BN).values()
    assert plain.found == 0 and words.found == 1


def test_bad_links_are_refused():
    looks = looking({})
    with pytest.raises(MiradaError, match="expected whole numbers"):
        relation_scores(looks, {"object": torch.rand(3, 3)})
    with pytest.raises(MiradaError, match="every other text"):
        relation_scores(looks, {"object": torch.tensor([[0, 1, 2], [2, 1, 2]])})
    with pytest.raises(MiradaError, match="is_word_BN is"):
        relation_scores(looks, {"object": torch.tensor([[0, 1, 2], [1, 1, 2]])}, is_word_BN=torch.ones(1, 2).bool())
