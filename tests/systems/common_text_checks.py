"""What every system of text must do, whatever it is made of. A new system gets these by being registered.

Each check takes `make`, which builds the system at the tiny size of its card: make(num_tokens=7). Those of systems that
read one sentence and write another (inputs "pairs") begin with `pair_`, those of one text with `text_`. What a system
cannot do by its nature stands on its card, under the name of the check, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import attention_layers, record
from mirada.systems import Word2Vec, create
from mirada.systems.registry import Card

PAD, START, END, TOKENS = 0, 2, 3, 13
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SOURCE_LENGTHS, TARGET_LENGTHS = (5, 11, 2), (4, 1, 6)  # N = 7 with the start

Make = Callable[..., nn.Module]


def pair_maker(card: Card, **variant: object) -> Make:
    """`variant` are further arguments, for checks of one system with other parts."""

    def make(**arguments: object) -> nn.Module:
        torch.manual_seed(7)
        return create(card.name, **{"num_tokens": TOKENS, "pad": PAD, **card.tiny, **variant, **arguments})

    return make


def shaken(model: nn.Module) -> nn.Module:
    """Every parameter random, so that what depends on a bias or a gain shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def padded(lengths: tuple[int, ...], num_tokens: int = TOKENS) -> Tensor:
    """(B, N) random tokens that are no specials, padded at the end."""
    token_BN = torch.randint(END + 1, num_tokens, (len(lengths), max(lengths)), generator=seeded(11))
    is_real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return token_BN.masked_fill(~is_real, PAD)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pair(num_target_tokens: int = TOKENS) -> tuple[Tensor, Tensor]:
    """A source (B, M), and what is read of the target (B, N): the start and its first tokens."""
    return padded(SOURCE_LENGTHS), F.pad(padded(TARGET_LENGTHS, num_target_tokens), (1, 0), value=START)


def pair_learns_with_every_parameter(make: Make) -> None:
    model, (source, read) = make().train(), pair()
    F.cross_entropy(model(source, read).flatten(0, 1), read.roll(-1, 1).flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert parameter.grad.isfinite().all(), f"{name} has a gradient that is not finite"
        # A bias of all keys shifts every logit of a row alike, which the softmax cancels.
        assert parameter.grad.any() or name.endswith("to_k.bias"), f"{name} has a zero gradient"


def pair_takes_two_vocabularies(make: Make) -> None:
    model = make(num_target_tokens=17).eval()
    source, read = pair(num_target_tokens=17)
    logits = model(source, read)
    assert logits.shape == (*read.shape, 17) and logits.isfinite().all()


def pair_saves_and_loads(make: Make) -> None:
    model, other = make().eval(), shaken(make())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_file(model.state_dict(), path)
        other.load_state_dict(load_file(path))
    assert torch.equal(other(*pair()), model(*pair()))


def pair_is_independent_of_padding_and_batch(make: Make) -> None:
    model, (source, read) = shaken(make()), pair()
    logits = model(source, read)
    assert torch.equal(model(source, read), logits)
    for row, (m, n) in enumerate(zip(SOURCE_LENGTHS, TARGET_LENGTHS, strict=True)):
        alone = model(source[row : row + 1, :m], read[row : row + 1, : n + 1])
        torch.testing.assert_close(alone[0], logits[row, : n + 1], **CLOSE)


def pair_computes_only_what_is_asked(make: Make) -> None:
    model, (source, read) = shaken(make()), pair()
    logits, asked = model(source, read), read > START
    torch.testing.assert_close(model(source, read, asked_BN=asked), logits[asked], **CLOSE)
    state = model.begin(source)
    torch.testing.assert_close(model.next_logits(read, state, num_last=2), logits[:, -2:], **CLOSE)


def pair_sees_no_later_token(make: Make) -> None:
    """A leak would make training look perfect and writing fail."""
    model, (source, read) = shaken(make()), pair()
    logits = model(source, read)
    for n in range(1, read.shape[1]):
        changed = read.clone()
        changed[:, n] = (changed[:, n] + 1) % TOKENS
        after = model(source, changed)
        assert torch.equal(after[:, :n], logits[:, :n]), f"token {n} is seen before it is read"
        assert not torch.allclose(after[:, n], logits[:, n]), f"token {n} is not read"


def pair_reads_every_source_token(make: Make) -> None:
    model, (source, read) = shaken(make()), pair()
    first = model(source, read)[:, 0]
    for m in range(min(SOURCE_LENGTHS)):
        changed = source.clone()
        changed[:, m] = END + 1 + (changed[:, m] - END) % (TOKENS - END - 1)
        assert not any(torch.allclose(a, b) for a, b in zip(model(changed, read)[:, 0], first, strict=True))


def pair_reads_in_steps_as_at_once(make: Make) -> None:
    """Teacher forcing, reading token by token, and reading in pieces give the same probabilities."""
    model, (source, read) = shaken(make()), pair()
    at_once = model(source, read)
    for pieces in ([1] * read.shape[1], [3, 1, read.shape[1] - 4]):
        with torch.no_grad():
            state = model.begin(source)
            in_steps = [model.next_logits(piece, state) for piece in read.split(pieces, dim=1)]
        torch.testing.assert_close(torch.cat(in_steps, dim=1), at_once, **CLOSE)


def pair_reorders_its_state(make: Make) -> None:
    """Rows are moved, dropped and repeated: before the first token, for beams, and between tokens."""
    model, (source, read) = shaken(make()), pair()
    for index in (torch.tensor([2, 0, 1]), torch.tensor([1]), torch.tensor([0, 0, 1, 1, 2, 2])):
        expected = model(source[index], read[index])
        for seen in (0, 2):
            with torch.no_grad():
                state = model.begin(source)
                if seen:
                    model.next_logits(read[:, :seen], state)
                assert state.reorder(index) is None
                rest = model.next_logits(read[index, seen:], state)
            torch.testing.assert_close(rest, expected[:, seen:], **CLOSE)


def pair_overfits_eight_pairs(make: Make) -> None:
    model = make().train()
    source = torch.randint(END + 1, TOKENS, (8, 5), generator=seeded(13))
    target = F.pad(torch.randint(END + 1, TOKENS, (8, 4), generator=seeded(17)), (1, 0), value=START)
    target = F.pad(target, (0, 1), value=END)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(300):
        loss = F.cross_entropy(model(source, target[:, :-1]).mT, target[:, 1:])
        if loss < 0.05:
            return
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    raise AssertionError(f"after 300 steps on eight pairs the loss is {loss:.3f}")


def pair_recording(make: Make) -> None:
    """Rows sum to one, nobody looks at padding, the output is the same to the bit, and there is an alignment."""
    model, (source, read) = shaken(make()), pair()
    assert attention_layers(model), "there is no attention to record"
    plain = model(source, read)
    with record(model) as maps:
        assert torch.equal(model(source, read), plain), "recording changed the output"
    shapes = set()
    for name in maps:
        weights_BHNM = torch.cat(maps.every(name), dim=2)
        shapes.add(weights_BHNM.shape[2:])
        row_BNH = weights_BHNM.sum(-1).mT
        if row_BNH.shape[1] == source.shape[1]:
            row_BNH = row_BNH[source != PAD]  # padding may have nobody but padding around it
        torch.testing.assert_close(row_BNH, torch.ones_like(row_BNH))
        if weights_BHNM.shape[-1] == source.shape[1]:
            assert not weights_BHNM.movedim(-1, 1)[source == PAD].any(), f"{name} looks at padding"
    assert (read.shape[1], source.shape[1]) in shapes, "no map is an alignment of target and source"


PAIR_CHECKS: dict[str, Callable[[Make], None]] = {
    check.__name__: check
    for check in (
        pair_learns_with_every_parameter,
        pair_takes_two_vocabularies,
        pair_saves_and_loads,
        pair_is_independent_of_padding_and_batch,
        pair_sees_no_later_token,
        pair_computes_only_what_is_asked,
        pair_reads_every_source_token,
        pair_reads_in_steps_as_at_once,
        pair_reorders_its_state,
        pair_overfits_eight_pairs,
        pair_recording,
    )
}


TEXT_LENGTHS, CLASSES = (5, 11, 2), 5


def read(model: nn.Module, token_BN: Tensor) -> Tensor:
    """Scores of a text, whatever of; word2vec takes the first word as the centre and the others as its neighbours."""
    return model(token_BN[:, 0], token_BN[:, 1:]) if isinstance(model, Word2Vec) else model(token_BN)


def kinds(make: Make) -> list[nn.Module]:
    """The system with each of its heads: of tokens, and of classes where it has them."""
    model = make()
    return [model] if isinstance(model, Word2Vec) else [model, make(num_classes=CLASSES)]


def text_learns_with_every_parameter(make: Make) -> None:
    """After one step, as word2vec's contexts start at zero and hide the words from the first."""
    for model in kinds(make):
        optimiser = torch.optim.SGD(model.train().parameters(), lr=0.1)
        for _ in range(2):
            optimiser.zero_grad()
            scores = read(model, padded(TEXT_LENGTHS)).flatten(0, -2)
            F.cross_entropy(scores, torch.arange(len(scores)) % scores.shape[-1]).backward()
            optimiser.step()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, f"{name} has no gradient"
            assert parameter.grad.isfinite().all(), f"{name} has a gradient that is not finite"
            assert parameter.grad.any() or name.endswith("to_k.bias"), f"{name} has a zero gradient"


def text_accepts_any_vocabulary(make: Make) -> None:
    for num_tokens in (5, 101):
        model, token_BN = make(num_tokens=num_tokens).eval(), padded(TEXT_LENGTHS, num_tokens)
        assert read(model, token_BN).isfinite().all()
        if not isinstance(model, Word2Vec):
            assert read(model, token_BN).shape == (*token_BN.shape, num_tokens)


def text_accepts_any_class_count(make: Make) -> None:
    for num_classes in (1, 2, 101):
        logits = make(num_classes=num_classes).eval()(padded(TEXT_LENGTHS))
        assert logits.shape == (len(TEXT_LENGTHS), num_classes) and logits.isfinite().all()


def text_saves_and_loads(make: Make) -> None:
    for model, other in zip(kinds(make), kinds(make), strict=True):
        model, other = model.eval(), shaken(other)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            save_file(model.state_dict(), path)
            other.load_state_dict(load_file(path))
        assert torch.equal(read(other, padded(TEXT_LENGTHS)), read(model, padded(TEXT_LENGTHS)))


def text_is_independent_of_padding_and_batch(make: Make) -> None:
    token_BN = padded(TEXT_LENGTHS)
    for model in map(shaken, kinds(make)):
        scores = read(model, token_BN)
        assert torch.equal(read(model, token_BN), scores)
        for row, length in enumerate(TEXT_LENGTHS):
            alone = read(model, token_BN[row : row + 1, :length])[0]
            torch.testing.assert_close(alone, scores[row, : len(alone)], **CLOSE)


def text_overfits_eight_samples(make: Make) -> None:
    model = kinds(make)[-1].train()
    order = torch.stack([torch.randperm(TOKENS - END - 1, generator=seeded(row)) for row in range(8)])
    token_BN = END + 1 + torch.cat([torch.arange(8)[:, None], order[:, :CLASSES]], dim=1)
    labels = torch.arange(8) % CLASSES
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(300):
        loss = F.cross_entropy(read(model, token_BN), labels)
        if loss < 0.05:
            return
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    raise AssertionError(f"after 300 steps on eight texts the loss is {loss:.3f}")


def text_recording(make: Make) -> None:
    """Rows sum to one, no word looks at padding, and the output is the same to the bit; one map per layer."""
    token_BN = padded(TEXT_LENGTHS)
    is_pad_BN = token_BN == PAD
    for depth in (1, 3):
        model = shaken(make(depth=depth))
        plain = model(token_BN)
        with record(model) as maps:
            assert torch.equal(model(token_BN), plain), "recording changed the output"
        assert len(maps) == depth
        for name in maps:
            weights_BNMH = maps[name].movedim(1, -1)
            real = weights_BNMH[~is_pad_BN].sum(1)
            torch.testing.assert_close(real, torch.ones_like(real))
            assert not weights_BNMH[~is_pad_BN[:, :, None] & is_pad_BN[:, None, :]].any(), f"{name} looks at padding"


TEXT_CHECKS: dict[str, Callable[[Make], None]] = {
    check.__name__: check
    for check in (
        text_learns_with_every_parameter,
        text_accepts_any_vocabulary,
        text_accepts_any_class_count,
        text_saves_and_loads,
        text_is_independent_of_padding_and_batch,
        text_overfits_eight_samples,
        text_recording,
    )
}
