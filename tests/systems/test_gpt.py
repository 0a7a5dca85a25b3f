"""GPT: counts, start, causality, padding, decoding with and without a cache, lengths, a paragraph learned by heart."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from mirada.core import Band
from mirada.errors import MiradaError
from mirada.systems import create
from tests.systems import tiny_text
from tests.systems.tiny_text import TOKENS, text

PUBLISHED = {"small": 124_439_808, "medium": 354_823_168, "large": 774_030_080, "xl": 1_557_611_200}
POSITIONS = ("learned", "rotary", "sinusoidal")
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.mark.parametrize(("size", "count"), PUBLISHED.items())
def test_parameters_are_those_of_gpt2(size, count):
    with torch.device("meta"):
        model = create("gpt", size, num_tokens=50_257)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


make, shaken = partial(tiny_text.make, "gpt"), partial(tiny_text.shaken, "gpt")


def test_start_is_that_of_gpt2():
    """What writes into the residual path is divided by √(2·depth), so that the path does not grow with depth."""
    model = make(dim=96, depth=8, num_classes=101)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert torch.equal(parameter, torch.full_like(parameter, float("norm.weight" in name))), name
        else:
            writes = "to_out" in name or "contract" in name
            assert parameter.std().item() == pytest.approx(0.02 / 4 if writes else 0.02, rel=0.05), name


def test_output_is_tied_to_the_embedding():
    model = shaken()
    torch.testing.assert_close(model(text()), model.features(text()) @ model.embedding.weight.T)
    assert model.head is None


def test_only_what_comes_after_the_tokens_that_are_asked_for_is_told():
    model, asked_BN = shaken(), text() % 3 == 0
    torch.testing.assert_close(model(text(), asked_BN=asked_BN), model(text())[asked_BN], **CLOSE)


def test_A7_the_next_token_is_told_from_the_last_vector():
    model = shaken()
    h_BND = model.features(text())
    p_BT = model.next_logits(text(), model.begin(), num_last=1)[:, 0].softmax(-1)
    assert p_BT.shape == (3, TOKENS) and (p_BT >= 0).all()
    torch.testing.assert_close(p_BT.sum(-1), torch.ones(3))
    torch.testing.assert_close(p_BT, (h_BND[:, -1] @ model.embedding.weight.T).softmax(-1))


@pytest.mark.parametrize("position", POSITIONS)
def test_no_token_sees_a_later_one(position):
    model = shaken(position=position)
    logits = model(text())
    for n in (1, 6, 10):
        changed = text()
        changed[:, n] = changed[:, n] % (TOKENS - 1) + 1
        after = model(changed)
        assert torch.equal(after[:, :n], logits[:, :n])
        assert not any(torch.allclose(a, b) for a, b in zip(after[:, n], logits[:, n], strict=True))


@pytest.mark.parametrize("position", POSITIONS)
def test_padding_at_the_end_changes_nothing_before_it(position):
    model, padded = shaken(position=position), F.pad(text(), (0, 5))
    torch.testing.assert_close(model(padded)[:, :11], model(text()), **CLOSE)
    classifier = shaken(position=position, num_classes=5)
    assert classifier(text()).shape == (3, 5)
    torch.testing.assert_close(classifier(padded), classifier(text()), **CLOSE)


def test_classes_are_told_from_the_last_real_token():
    model = shaken(num_classes=5)
    token_BN = text()
    token_BN[0, 4:] = model.pad
    token_BN[1, 2] = model.pad  # in the middle of a text it is no end
    token_BN[2] = model.pad
    wanted = model.head(model.features(token_BN)[torch.arange(3), torch.tensor([3, 10, 0])])
    torch.testing.assert_close(model(token_BN), wanted)


@pytest.mark.parametrize("pieces", [(1,) * 11, (4, 1, 1, 5), (11,)], ids=str)
@pytest.mark.parametrize("position", POSITIONS)
def test_reading_in_steps_equals_reading_at_once(position, pieces):
    model = shaken(position=position)
    with torch.no_grad():
        state = model.begin()
        in_steps = [model.next_logits(piece, state) for piece in text().split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(in_steps, dim=1), model(text()), **CLOSE)


@pytest.mark.parametrize("index", [(2, 0, 1), (1,), (0, 0, 1, 1, 2, 2)])
def test_state_is_reordered(index):
    model, index_B = shaken(), torch.tensor(index)
    with torch.no_grad():
        state = model.begin()
        model.next_logits(text()[:, :6], state)
        state.reorder(index_B)
        rest = [model.next_logits(text()[index_B, n : n + 1], state) for n in range(6, 11)]
    torch.testing.assert_close(torch.cat(rest, dim=1), model(text())[index_B, 6:], **CLOSE)


def test_a_step_builds_no_mask(monkeypatch):
    model = shaken()
    with torch.no_grad():
        state = model.begin()
        model.next_logits(text(), state)
        monkeypatch.setattr(Band, "allowed", lambda *_: pytest.fail("a mask was built"))
        model.next_logits(text(1), state)


def test_learned_positions_end_and_say_so():
    model = shaken(max_length=8)
    assert model(text(8)).isfinite().all()
    message = "9 tokens, but learned positions exist for 8: .*rotary or sinusoidal"
    with pytest.raises(MiradaError, match=message):
        model(text(9))
    state = model.begin()
    model.next_logits(text(8), state)
    with pytest.raises(MiradaError, match=message):
        model.next_logits(text(1), state)


@pytest.mark.parametrize("position", POSITIONS[1:])
def test_other_positions_do_not_end(position):
    assert shaken(max_length=8, position=position)(text(50)).isfinite().all()


def test_unknown_position_is_refused():
    with pytest.raises(MiradaError, match=r"position='rotatory' \(did you mean 'rotary'\?\)"):
        make(position="rotatory")


PARAGRAPH = "En un lugar de la Mancha, de cuyo nombre no quiero acordarme, no ha mucho tiempo que vivía un hidalgo"


def test_G1_a_paragraph_is_learned_by_heart_and_written_again():
    letters = sorted(set(PARAGRAPH))
    token_1N = torch.tensor([[letters.index(letter) for letter in PARAGRAPH]])
    model = make(num_tokens=len(letters), max_length=len(PARAGRAPH), dim=48, num_heads=4).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(300):
        loss = F.cross_entropy(model(token_1N[:, :-1]).mT, token_1N[:, 1:])
        if loss < 0.01:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.01
    model.eval()
    written, state = [token_1N[0, 0].item()], model.begin()
    with torch.no_grad():
        while len(written) < len(PARAGRAPH):
            written.append(model.next_logits(torch.tensor([written[-1:]]), state).argmax().item())
    assert "".join(letters[token] for token in written) == PARAGRAPH


def test_G1_held_out_text_is_better_told_than_by_frequencies():
    """A grammar of which frequencies know nothing: each word is followed by its successor, or by 0."""
    generator = torch.Generator().manual_seed(3)

    def written(batch: int):
        token_BN = torch.zeros(batch, 20, dtype=torch.long)
        for n in range(1, 20):
            goes_on = torch.rand(batch, generator=generator) < 0.8
            token_BN[:, n] = torch.where(goes_on, (token_BN[:, n - 1] + 1) % TOKENS, 0)
        return token_BN

    def nats(model, token_BN):
        return F.cross_entropy(model(token_BN[:, :-1]).mT, token_BN[:, 1:])

    model, held_out = make(), written(64)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = nats(model, written(16))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    share_T = held_out.flatten().bincount(minlength=TOKENS) / held_out.numel()
    entropy = -torch.special.xlogy(share_T, share_T).sum()
    assert nats(model, held_out) < 0.5 * entropy
