"""Claims about attention that need a little training, or a count of steps, to be seen (B8, B27, B29, B30, E46)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Additive, Attention, Concatenated, record

DIM = 24


def train(model: nn.Module, batch, loss, num_steps: int, rate: float = 0.01) -> None:
    optimiser = torch.optim.Adam(model.parameters(), rate)
    for _ in range(num_steps):
        optimiser.zero_grad()
        loss(*batch()).backward()
        optimiser.step()


class Translator(nn.Module):
    """One target word per position, from an attention on the source words."""

    def __init__(self, num_words: int, length: int) -> None:
        super().__init__()
        self.source = nn.Embedding(num_words, DIM)
        self.source_place, self.target_place = (nn.Parameter(torch.randn(length, DIM)) for _ in range(2))
        self.attention = Attention(Concatenated(DIM, 1), score=Additive(DIM, DIM, DIM))
        self.word = nn.Linear(DIM, num_words)

    def forward(self, source: Tensor) -> Tensor:
        memory = self.source(source) + self.source_place
        queries = self.target_place.expand(len(source), -1, -1)
        return self.word(self.attention(queries, memory))


def test_B8_attention_aligns_a_language_pair_that_reorders():
    """Each word has its translation, and neighbours change places; only the translations are shown, no alignment."""
    num_words, length = 11, 8
    dictionary = torch.randperm(num_words)
    order = torch.arange(length).view(-1, 2).flip(1).flatten()
    model = Translator(num_words, length)

    def batch() -> tuple[Tensor, Tensor]:
        source = torch.randint(0, num_words, (64, length))
        return source, dictionary[source][:, order]

    def loss(source: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(model(source).flatten(0, 1), target.flatten())

    train(model, batch, loss, num_steps=300)
    with torch.no_grad(), record(model) as maps:
        model(batch()[0])
    error_rate = (maps[0][:, 0].argmax(-1) != order).double().mean()
    assert error_rate < 0.05


def test_B27_a_head_finds_a_grammatical_relation():
    """Objects look for their verb, wherever it stands; no fixed distance would find it."""
    num_verbs, length, num_senses = 6, 12, 5
    verb, sense = nn.Embedding(num_verbs, DIM), nn.Embedding(num_senses, DIM)
    noun = nn.Embedding(num_verbs, DIM)
    attention, answer = Attention(Concatenated(DIM, 2)), nn.Linear(DIM, num_senses)
    model = nn.ModuleList([verb, noun, sense, attention, answer])

    def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Six verbs and their six objects in random order; each verb has a sense that its object must name."""
        place = torch.rand(64, length).argsort(1)
        at_verb, at_object = place[:, :num_verbs], place[:, num_verbs:]
        return at_verb, at_object, torch.randint(0, num_senses, (64, num_verbs)), torch.arange(64)[:, None]

    def look(at_verb: Tensor, at_object: Tensor, senses: Tensor, rows: Tensor) -> Tensor:
        x = torch.zeros(64, length, DIM)
        x = x.index_put((rows, at_verb), verb.weight + sense(senses)).index_put((rows, at_object), noun.weight[None])
        return answer(attention(x)[rows, at_object])

    train(model, batch, lambda *b: F.cross_entropy(look(*b).flatten(0, 1), b[2].flatten()), num_steps=250)
    at_verb, at_object, senses, rows = batch()
    with torch.no_grad(), record(attention) as maps:
        look(at_verb, at_object, senses, rows)
    found = [(maps[0][:, h].argmax(-1)[rows, at_object] == at_verb).double().mean() for h in range(2)]
    distance = at_verb - at_object
    positional = max((distance == offset).double().mean() for offset in range(-length, length))
    assert max(found) > 0.9
    assert max(found) > 4 * positional


def longest_path(output: Tensor) -> int:
    """Number of operations that must wait for each other, from the graph of the gradient."""
    depth: dict = {}
    stack = [output.grad_fn]
    while stack:
        node = stack[-1]
        before = [parent for parent, _ in node.next_functions if parent is not None]
        missing = [parent for parent in before if parent not in depth]
        if missing:
            stack += missing
        else:
            depth[stack.pop()] = 1 + max((depth[parent] for parent in before), default=0)
    return depth[output.grad_fn]


def test_B29_steps_that_wait_for_each_other_do_not_grow_with_the_length():
    """Attention takes the same number of steps in sequence at every length; a recurrent network one more per token."""
    attention, cell = Attention(Concatenated(DIM, 2)), nn.RNNCell(DIM, DIM)

    def recurrent(x: Tensor) -> Tensor:
        state = torch.zeros(1, DIM)
        for token in x.unbind(1):
            state = cell(token, state)
        return state

    inputs = [torch.randn(1, length, DIM) for length in (5, 50)]
    steps = [longest_path(attention(x)) for x in inputs]
    recurrent_steps = [longest_path(recurrent(x)) for x in inputs]
    assert steps[0] == steps[1]
    assert recurrent_steps[1] - recurrent_steps[0] >= 45


class AgreementByAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention(Concatenated(DIM, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x[:, -1:], x)[:, 0]


class AgreementByRecurrence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.RNN(DIM, DIM, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.cells(x)[1][0]


def test_B30_agreement_over_a_long_distance():
    """The last word must agree with the first, "su" with "jaguar": attention keeps it, recurrence forgets."""
    num_subjects, num_others = 4, 9

    def accuracies(reader: nn.Module) -> dict[int, float]:
        torch.manual_seed(0)
        words, answer = nn.Embedding(num_subjects + num_others, DIM), nn.Linear(DIM, num_subjects)

        def batch(distance: int | None = None) -> Tensor:
            distance = int(torch.randint(2, 61, ())) if distance is None else distance
            between = torch.randint(num_subjects, num_subjects + num_others, (64, distance))
            return torch.cat([torch.randint(0, num_subjects, (64, 1)), between], dim=1)

        def logits(tokens: Tensor) -> Tensor:
            return answer(reader(words(tokens)))

        model = nn.ModuleList([words, answer, reader])
        train(model, lambda: (batch(),), lambda tokens: F.cross_entropy(logits(tokens), tokens[:, 0]), num_steps=150)
        with torch.no_grad():
            tests = {distance: torch.cat([batch(distance) for _ in range(4)]) for distance in (3, 60)}
            return {d: (logits(t).argmax(-1) == t[:, 0]).double().mean().item() for d, t in tests.items()}

    attention, recurrent = accuracies(AgreementByAttention()), accuracies(AgreementByRecurrence())
    assert attention[3] > 0.95 and attention[60] > 0.95
    assert recurrent[60] < attention[60] - 0.3


def test_E46_gradients_of_the_output_reach_the_encoder():
    """The decoder does not wait for a trained encoder: the loss at its end trains both."""
    encoder, decoder = Attention(Concatenated(DIM, 2)), Attention(Concatenated(DIM, 2))
    out = decoder(torch.randn(2, 5, DIM), encoder(torch.randn(2, 7, DIM)))
    out.square().sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())
    assert encoder.heads.to_v.weight.grad.abs().sum() > 0
