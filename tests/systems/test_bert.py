"""BERT: counts, start, heads, segments, padding, features of layers, hidden words that are found from both sides."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.systems import create
from tests.systems import tiny_text
from tests.systems.tiny_text import TOKENS, text

MASK = 4
HEAD = 3  # classes
# The encoder with its pooler, as published, and the encoder with its output for hidden tokens.
POOLED = {"base": (768, 109_482_240), "large": (1024, 335_141_888), "tiny": (128, 4_385_920)}
FILLING = {"base": 109_514_298}


def count(model) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("size", "dim", "number"), [(size, *pair) for size, pair in POOLED.items()])
def test_parameters_are_those_of_the_paper(size, dim, number):
    with torch.device("meta"):
        model = create("bert", size, num_tokens=30_522, num_classes=HEAD)
    assert count(model) - HEAD * (dim + 1) == number


@pytest.mark.parametrize(("size", "number"), FILLING.items())
def test_parameters_with_the_output_for_hidden_tokens(size, number):
    with torch.device("meta"):
        assert count(create("bert", size, num_tokens=30_522)) == number


make, shaken = partial(tiny_text.make, "bert"), partial(tiny_text.shaken, "bert")


def test_start_is_that_of_the_published_code():
    model = make(dim=96, num_classes=101)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert torch.equal(parameter, torch.full_like(parameter, float("norm.weight" in name))), name
        else:
            assert parameter.abs().max() <= 0.04 + 1e-6, name
            assert parameter.std().item() == pytest.approx(0.0176, rel=0.1), name  # 0.02, cut at two deviations


def test_output_for_hidden_tokens_is_tied_to_the_embedding():
    model = shaken()
    h_BND = F.layer_norm(F.gelu(model.fill.dense(model.features(text()))), (16,), *model.fill.norm.parameters(), 1e-12)
    torch.testing.assert_close(model(text()), h_BND @ model.embedding.weight.T + model.fill.bias)


def test_classes_are_told_from_the_first_token():
    model = shaken(num_classes=5)
    first_BD = model.features(text())[:, 0]
    torch.testing.assert_close(model(text()), model.head(torch.tanh(model.pooler(first_BD))))


def test_every_token_sees_every_other():
    model = shaken()
    token_BN = text().requires_grad_(False)
    before = model.features(token_BN)
    for n in (0, 5, 10):
        changed = token_BN.clone()
        changed[:, n] = changed[:, n] % (TOKENS - 1) + 1
        assert not torch.isclose(model.features(changed), before).all(-1).any(), n


def test_segments_tell_sentences_apart():
    model, segment_BN = shaken(), torch.zeros(3, 11, dtype=torch.long)
    assert torch.equal(model(text(), segment_BN), model(text()))
    segment_BN[:, 6:] = 1
    assert not torch.allclose(model(text(), segment_BN), model(text()))


def test_features_of_layers():
    model = shaken(depth=3)
    assert torch.equal(model.features(text(), 3), model.features(text()))
    x_BND = model.features(text(), 0)
    for number, layer in enumerate(model.encoder.layers, start=1):
        x_BND = layer(x_BND)
        torch.testing.assert_close(model.features(text(), number), x_BND)
    for wrong in (-1, 4):
        with pytest.raises(MiradaError, match=f"features after layer {wrong} of a BERT with 3: must be 0 to 3"):
            model.features(text(), wrong)


def test_before_any_layer_a_word_has_one_vector_and_after_one_a_vector_for_each_context():
    model = shaken()
    one, other = torch.tensor([[5, 6, 7]]), torch.tensor([[5, 9, 7]])
    assert torch.equal(model.features(one, 0)[0, 2], model.features(other, 0)[0, 2])
    assert not torch.allclose(model.features(one, 1)[0, 2], model.features(other, 1)[0, 2])


def test_padding_is_not_looked_at():
    model = shaken()
    padded = F.pad(text(), (0, 5))
    torch.testing.assert_close(model(padded)[:, :11], model(text()), atol=1e-5, rtol=1e-5)
    assert model(torch.zeros(2, 4, dtype=torch.long)).isfinite().all()  # nothing but padding


def test_longer_texts_than_positions_are_refused():
    with pytest.raises(MiradaError, match="33 tokens, but learned positions exist for 32"):
        make()(text(33))


def test_G8_hidden_words_are_found_from_both_sides():
    """The middle word is the sum of its neighbours: neither side alone tells it."""
    generator = torch.Generator().manual_seed(3)

    def sample(batch: int):
        side_B2 = torch.randint(0, 4, (batch, 2), generator=generator)
        middle_B = 5 + side_B2.sum(1)
        left, right = side_B2[:, 0] + 5, side_B2[:, 1] + 5
        return torch.stack([left, torch.full_like(left, MASK), right], dim=1), middle_B

    model = make()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = None
    for _ in range(150):
        token_B3, middle_B = sample(64)
        loss = F.cross_entropy(model(token_B3)[:, 1], middle_B)
        first = loss.item() if first is None else first
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.1 * first
    token_B3, middle_B = sample(200)
    assert (model.eval()(token_B3)[:, 1].argmax(-1) == middle_B).float().mean() > 0.95


def test_only_the_tokens_that_are_asked_for_are_unembedded():
    model, token_BN = shaken(), text()
    asked_BN = torch.rand(token_BN.shape, generator=torch.Generator().manual_seed(3)) < 0.3
    seen = []
    model.fill.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[:-1]))
    torch.testing.assert_close(model(token_BN, asked_BN=asked_BN), model(token_BN)[asked_BN])
    assert seen == [(int(asked_BN.sum()),), token_BN.shape]
    assert model(token_BN, asked_BN=torch.zeros_like(asked_BN)).shape == (0, TOKENS)
