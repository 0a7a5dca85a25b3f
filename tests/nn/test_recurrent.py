"""Recurrent networks: equal to torch's, blind to padding; decoders with attention learn to reverse."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.core import Additive, Attend, Bilinear, Dot, Sinusoidal, line, record
from mirada.errors import MiradaError
from mirada.nn import BahdanauDecoder, ElmanCell, LuongDecoder, RecurrentEncoder, TokenEmbedding

B, N, M, IN, D = 3, 7, 11, 5, 13
EXACT = {"atol": 1e-9, "rtol": 1e-7}
KINDS = pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
DECODERS = pytest.mark.parametrize("make", [BahdanauDecoder, LuongDecoder])
SCORES = {
    "dot": lambda: Dot(),
    "bilinear": lambda: Bilinear(D, D),
    "additive": lambda: Additive(D, D, 17),
}


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def flat(state) -> list[torch.Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


@pytest.mark.parametrize(("name", "activation"), [("tanh", nn.Tanh()), ("relu", nn.ReLU())])
def test_B2_E7_elman_cell_equals_torch_RNN(name, activation):
    rnn, cell = nn.RNN(IN, D, nonlinearity=name, batch_first=True).double(), ElmanCell(IN, D, activation).double()
    with torch.no_grad():
        cell.from_input.weight.copy_(rnn.weight_ih_l0)
        cell.from_state.weight.copy_(rnn.weight_hh_l0)
        cell.from_input.bias.copy_(rnn.bias_ih_l0 + rnn.bias_hh_l0)  # torch keeps b in two halves
    x, hidden = normal(B, N, IN), torch.zeros(B, D, dtype=torch.float64)
    states = []
    for x_t in x.unbind(1):
        hidden = cell(x_t, hidden)
        states.append(hidden)
    ours, (theirs, _) = torch.stack(states, dim=1), rnn(x)
    torch.testing.assert_close(ours, theirs, **EXACT)
    direction = torch.randn_like(ours)
    mine = [x, cell.from_input.weight, cell.from_state.weight, cell.from_input.bias]
    torchs = [x, rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0]
    for a, b in zip(
        torch.autograd.grad(ours, mine, direction), torch.autograd.grad(theirs, torchs, direction), strict=True
    ):
        torch.testing.assert_close(a, b, **EXACT)


def test_B1_E6_sequential_model_answers_at_every_step_from_the_state_of_that_step():
    """f(x_1 … x_T)_t = φ(W_out h_t + b_out): with all states h_(1:T) there are T answers, each from its own state."""
    encoder, head = RecurrentEncoder(nn.RNN(5, 7, batch_first=True)), nn.Linear(7, 3)
    x = torch.randn(2, 11, 5)
    answers = head(encoder(x)[0]).softmax(-1)
    assert answers.shape == (2, 11, 3)
    for t in range(11):
        _, state = encoder(x[:, : t + 1])  # a state knows its beginning only
        torch.testing.assert_close(answers[:, t], (state[0] @ head.weight.T + head.bias).softmax(-1))


def test_B2_E7_one_matrix_for_both_terms_does_not_type_check():
    cell = ElmanCell(IN, D)
    assert cell.from_input.weight.shape == (D, IN) != cell.from_state.weight.shape == (D, D)


@KINDS
@pytest.mark.parametrize("bidirectional", [False, True])
def test_B2_encoder_equals_torch_and_padding_plays_no_part(kind, bidirectional):
    rnn = kind(IN, D, num_layers=2, batch_first=True, bidirectional=bidirectional).double()
    encoder, x = RecurrentEncoder(rnn), normal(B, N, IN)
    lengths = (4, N, 1)
    valid = torch.arange(N) < torch.tensor(lengths)[:, None]
    for ours, theirs in zip(flat(encoder(x)[1]), flat(rnn(x)[1]), strict=True):
        assert torch.equal(ours, theirs)
    out, state = encoder(x, valid)
    assert out.shape == (B, N, D * (1 + bidirectional))
    assert out[~valid].abs().max() == 0
    for row, length in enumerate(lengths):
        alone, alone_state = rnn(x[row : row + 1, :length])
        torch.testing.assert_close(out[row, :length], alone[0], **EXACT)
        for ours, theirs in zip(flat(state), flat(alone_state), strict=True):
            torch.testing.assert_close(ours[:, row], theirs[:, 0], **EXACT)
    (into_x,) = torch.autograd.grad(out.square().sum(), x)
    assert into_x[~valid].abs().max() == 0


def test_encoder_takes_empty_sequences_and_refuses_padding_in_front():
    encoder, x = RecurrentEncoder(nn.LSTM(IN, D, batch_first=True).double()), normal(B, N, IN)
    valid = torch.arange(N) < torch.tensor([0, N, 2])[:, None]
    out, (hidden, content) = encoder(x, valid)
    assert all(part.abs().max() == 0 for part in (out[0], hidden[:, 0], content[:, 0]))
    assert hidden[:, 1].abs().max() > 0
    with pytest.raises(MiradaError, match="pad at the end"):
        encoder(x, valid.flip(1))
    with pytest.raises(MiradaError, match="batch_first=True"):
        RecurrentEncoder(nn.GRU(IN, D))


def decoder_of(make, score: str = "additive", cell=nn.GRUCell):
    return make(IN, D, D, Attend(SCORES[score]()), cell).double()


def padding() -> torch.Tensor:
    return torch.arange(M) < torch.tensor([M, 5, 1])[:, None]


@DECODERS
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell, ElmanCell])
def test_B4_step_by_step_equals_all_at_once_and_padding_plays_no_part(make, score, cell):
    decoder, x, memory = decoder_of(make, score, cell), normal(B, N, IN), normal(B, M, D)
    hidden = (normal(B, D), normal(B, D)) if cell is nn.LSTMCell else normal(B, D)
    out, last = decoder(x, decoder.start(hidden), memory, padding())
    assert out.shape == (B, N, D)
    state, steps = decoder.start(hidden), []
    for x_t in x.unbind(1):
        step, state = decoder.step(x_t, state, memory, padding())
        steps.append(step)
    torch.testing.assert_close(torch.stack(steps, dim=1), out, **EXACT)
    for ours, theirs in zip(flat(state.hidden), flat(last.hidden), strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)
    (into_memory,) = torch.autograd.grad(out.square().sum(), memory)
    assert into_memory[~padding()].abs().max() == 0 and into_memory[padding()].abs().min() > 0


@DECODERS
@pytest.mark.parametrize("score", SCORES)
def test_B4_weights_sum_to_one_and_the_context_is_their_mean_of_the_memory(make, score):
    decoder, x, memory = decoder_of(make, score), normal(B, N, IN), normal(B, M, D)
    with record(decoder) as maps:
        decoder(x, decoder.start(normal(B, D)), memory, padding())
    weights_BNM = torch.cat(maps.every("attend"), dim=2)[:, 0]
    assert weights_BNM.shape == (B, N, M)
    torch.testing.assert_close(weights_BNM.sum(-1), torch.ones(B, N, dtype=torch.float64), **EXACT)
    assert weights_BNM.masked_select(~padding()[:, None]).abs().max() == 0
    with record(decoder) as maps:
        context = decoder.look(normal(B, D), memory, padding())
    torch.testing.assert_close(context, (maps[0][:, 0] @ memory)[:, 0], **EXACT)


@DECODERS
def test_B4_context_lies_in_the_convex_hull_of_the_memory(make):
    decoder, memory = decoder_of(make), normal(B, M, D)
    context = decoder.look(50 * normal(B, D), memory)
    assert (context >= memory.amin(1) - 1e-12).all() and (context <= memory.amax(1) + 1e-12).all()


def test_B5_E8_Bahdanau_asks_with_the_state_before_the_step_and_Luong_with_the_one_after():
    x, memory, hidden = normal(B, IN), normal(B, M, D), normal(B, D)
    for make, depends in ((BahdanauDecoder, False), (LuongDecoder, True)):
        decoder = decoder_of(make)
        with record(decoder, mode="differentiate") as maps:
            decoder.step(x, decoder.start(hidden), memory)
        (into_x,) = torch.autograd.grad(maps[0].square().sum(), x, allow_unused=True, materialize_grads=True)
        assert (into_x.abs().max() > 0) == depends


def test_formulas_of_the_two_decoders():
    x, memory, hidden = normal(B, IN), normal(B, M, D), normal(B, D)
    bahdanau, luong = decoder_of(BahdanauDecoder), decoder_of(LuongDecoder)
    out, state = bahdanau.step(x, bahdanau.start(hidden), memory)
    context = bahdanau.look(hidden, memory)
    new = bahdanau.cell(torch.cat([x, context], -1), hidden)
    torch.testing.assert_close(state.hidden, new, **EXACT)
    torch.testing.assert_close(out, torch.tanh(bahdanau.to_out(torch.cat([new, context, x], -1))), **EXACT)

    fed = torch.zeros(B, D, dtype=torch.float64)
    state = luong.start(hidden)
    for _ in range(2):
        out, state = luong.step(x, state, memory)
        hidden = luong.cell(torch.cat([x, fed], -1), hidden)
        fed = torch.tanh(luong.to_out(torch.cat([luong.look(hidden, memory), hidden], -1)))
        torch.testing.assert_close(out, fed, **EXACT)


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell])
def test_state_is_reordered_for_beams(cell):
    decoder, x, memory = decoder_of(LuongDecoder, cell=cell), normal(B, IN), normal(B, M, D)
    hidden = (normal(B, D), normal(B, D)) if cell is nn.LSTMCell else normal(B, D)
    _, state = decoder.step(x, decoder.start(hidden), memory)
    order = torch.tensor([2, 2, 0])
    out, _ = decoder.step(x[order], state.reorder(order), memory[order])
    torch.testing.assert_close(out, decoder.step(x, state, memory)[0][order], **EXACT)


class Reverser(nn.Module):
    """Reads tokens, writes them backwards."""

    num_tokens, dim = 11, 32

    def __init__(self, make) -> None:
        super().__init__()
        self.source = TokenEmbedding(self.num_tokens, self.dim)
        self.target = TokenEmbedding(self.num_tokens + 1, self.dim)  # the last one starts a sentence
        self.position = Sinusoidal(self.dim)
        self.encoder = RecurrentEncoder(nn.GRU(self.dim, self.dim // 2, batch_first=True, bidirectional=True))
        self.decoder = make(self.dim, self.dim, self.dim, Attend(Bilinear(self.dim, self.dim)))
        self.to_logits = nn.Linear(self.dim, self.num_tokens)

    def forward(self, token_BN: torch.Tensor, valid_BN: torch.Tensor | None = None) -> torch.Tensor:
        places = line(token_BN.shape[1])
        memory, state = self.encoder(self.position(self.source(token_BN), places))
        before = F.pad(token_BN.flip(1)[:, :-1], (1, 0), value=self.num_tokens)
        start = self.decoder.start(state.movedim(0, 1).flatten(1))
        out, _ = self.decoder(self.position(self.target(before), places), start, memory, valid_BN)
        return self.to_logits(out)


def trained_reverser(make, length: int, num_steps: int, blind: bool = False) -> tuple[Reverser, float]:
    """A model and its accuracy on new sequences; a blind one may look at no token of the memory."""
    model = Reverser(make)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    valid = torch.zeros(32, length, dtype=torch.bool) if blind else None
    for _ in range(num_steps):
        token = torch.randint(0, model.num_tokens, (32, length))
        loss = F.cross_entropy(model(token, valid).flatten(0, 1), token.flip(1).flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    token = torch.randint(0, model.num_tokens, (32, length))
    with torch.no_grad():
        return model, (model(token, valid).argmax(-1) == token.flip(1)).float().mean().item()


@DECODERS
def test_B3_B4_learns_to_reverse_and_its_alignment_is_the_antidiagonal(make):
    model, accuracy = trained_reverser(make, length=5, num_steps=120)
    assert accuracy > 0.9
    token = torch.randint(0, model.num_tokens, (32, 5))
    with torch.no_grad(), record(model) as maps:
        model(token)
    weights_BNM = torch.cat(maps.every("decoder.attend"), dim=2)[:, 0]
    antidiagonal = torch.arange(4, -1, -1)
    assert (weights_BNM.argmax(-1) == antidiagonal).float().mean() > 0.9
    assert weights_BNM.mean(0).flip(1).diag().mean() > 0.7


def test_B3_without_attention_the_same_training_gets_less_and_less_with_length():
    short, long = (trained_reverser(LuongDecoder, length, 70, blind=True)[1] for length in (3, 7))
    assert long < short - 0.2
