"""Recurrent encoders, and decoders that look at a memory while they write.

    c_t = Σ_m α_tm h_m,  α_t = softmax over m of score(query_t, h_m)

The decoders differ in the query: Bahdanau 2015 asks with the state before the step, Luong 2015 with the state after it.
The score is a part of the `Attend` that is passed in: Attend(Additive(dim, memory_dim, hidden_dim)), Attend(Dot()),
Attend(Bilinear(dim, memory_dim)). Keys k_m that a score compares instead of h_m are given beside the memory, so that a
sentence's keys are computed once. Without an `Attend` the memory is one vector, which every step sees (Cho 2014):
c_t = h_1.

Shape letters: B batch, N steps, M tokens of the memory, D width of a token or state, L layers × directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from mirada.core import Attend
from mirada.errors import MiradaError

Hidden = Tensor | tuple[Tensor, Tensor]  # (B, D), or the LSTM's pair (state, cell)
Look = Callable[[Tensor], Tensor]  # queries (B, N, D) → contexts (B, N, D)
MakeCell = Callable[[int, int], nn.Module]  # in_dim, dim → a cell (x_BD, hidden) → hidden: nn.GRUCell, nn.LSTMCell, …


class ElmanCell(nn.Module):
    """h_t = g(W_hh h_{t−1} + W_xh x_t + b) (Elman 1990). Uniform in ±1/√D, as torch's cells are."""

    def __init__(self, in_dim: int, dim: int, activation: nn.Module | None = None) -> None:
        super().__init__()
        self.from_input = nn.Linear(in_dim, dim)
        self.from_state = nn.Linear(dim, dim, bias=False)
        self.activation = nn.Tanh() if activation is None else activation
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(dim**-0.5), dim**-0.5)

    def forward(self, x_BD: Tensor, hidden_BD: Tensor) -> Tensor:
        return self.activation(self.from_state(hidden_BD) + self.from_input(x_BD))


class RecurrentEncoder(nn.Module):
    """h_1 … h_N of a torch nn.RNN, nn.GRU or nn.LSTM with batch_first=True, in which padding plays no part.

    Gives the outputs (B, N, D·directions), zero at padding, and the state after the last real token in torch's shape.
    """

    def __init__(self, rnn: nn.RNNBase) -> None:
        super().__init__()
        if not rnn.batch_first:
            raise MiradaError(f"{type(rnn).__name__} was made with batch_first=False: make it with batch_first=True")
        self.rnn = rnn

    def forward(self, x_BND: Tensor, valid_BN: Tensor | None = None) -> tuple[Tensor, Hidden]:
        if valid_BN is None:
            return self.rnn(x_BND)
        length_B = valid_BN.sum(1)
        if not torch.equal(valid_BN, torch.arange(valid_BN.shape[1], device=valid_BN.device) < length_B[:, None]):
            raise MiradaError("a recurrent encoder was given padding in front of or between tokens: pad at the end")
        # torch refuses empty sequences: they run as one token and are put to zero afterwards.
        packed = pack_padded_sequence(x_BND, length_B.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
        packed_out, state = self.rnn(packed)
        out_BND, _ = pad_packed_sequence(packed_out, batch_first=True, total_length=x_BND.shape[1])
        empty_B1 = (length_B == 0)[:, None]

        def without_empty(state_LBD: Tensor) -> Tensor:
            return state_LBD.masked_fill(empty_B1, 0.0)

        state = tuple(map(without_empty, state)) if isinstance(state, tuple) else without_empty(state)
        return out_BND.masked_fill(~valid_BN[..., None], 0.0), state


class DecoderState(NamedTuple):
    """Between two steps: the cell's state, and the output that is fed back."""

    hidden: Hidden
    fed_BD: Tensor

    def reorder(self, batch_index_B: Tensor) -> DecoderState:
        """Row b becomes the former row batch_index[b], for beam search."""
        hidden = self.hidden
        if isinstance(hidden, tuple):
            moved: Hidden = (hidden[0][batch_index_B], hidden[1][batch_index_B])
        else:
            moved = hidden[batch_index_B]
        return DecoderState(moved, self.fed_BD[batch_index_B])


class RecurrentDecoder(nn.Module):
    """What the two decoders share: a cell, a look at the memory, an output, and the loop over the steps.

    Linear layers are initialised as torch does; the cell initialises itself.
    """

    def __init__(self, cell: nn.Module, attend: Attend | None, read_dim: int, dim: int) -> None:
        super().__init__()
        self.cell = cell
        self.attend = attend
        self.to_out = nn.Linear(read_dim, dim)
        self.dim = dim

    def start(self, hidden: Hidden) -> DecoderState:
        """The state before the first step, from what the encoder hands over."""
        return DecoderState(hidden, torch.zeros_like(state_of(hidden)))

    def look(
        self,
        query_BD: Tensor,
        memory_BMD: Tensor,
        valid_BM: Tensor | None = None,
        keys_BMK: Tensor | None = None,
    ) -> Tensor:
        """c = Σ_m α_m h_m."""
        return self.look_all(query_BD[:, None], memory_BMD, valid_BM, keys_BMK)[:, 0]

    def look_all(
        self,
        query_BND: Tensor,
        memory_BMD: Tensor,
        valid_BM: Tensor | None = None,
        keys_BMK: Tensor | None = None,
    ) -> Tensor:
        """c_n = Σ_m α_nm h_m for several queries at once."""
        if self.attend is None:
            return memory_BMD[:, :1].expand(-1, query_BND.shape[1], -1)
        memory_B1MD = memory_BMD[:, None]
        keys_B1MK = memory_B1MD if keys_BMK is None else keys_BMK[:, None]
        return self.attend(query_BND[:, None], keys_B1MK, memory_B1MD, valid_BM=valid_BM)[:, 0]

    def forward(
        self,
        x_BND: Tensor,
        state: DecoderState,
        memory_BMD: Tensor,
        valid_BM: Tensor | None = None,
        keys_BMK: Tensor | None = None,
    ) -> tuple[Tensor, DecoderState]:
        """All steps with given inputs (teacher forcing); `valid_BM` is True for real tokens of the memory."""
        return self.steps(x_BND, state, lambda query_BND: self.look_all(query_BND, memory_BMD, valid_BM, keys_BMK))

    def step(self, x_BD: Tensor, state: DecoderState, *memory: Tensor | None) -> tuple[Tensor, DecoderState]:
        """One token in, one output and the next state out; `memory` as in `forward`."""
        out_B1D, state = self(x_BD[:, None], state, *memory)
        return out_B1D[:, 0], state

    def steps(self, x_BND: Tensor, state: DecoderState, look: Look) -> tuple[Tensor, DecoderState]:
        raise NotImplementedError


class BahdanauDecoder(RecurrentDecoder):
    """c_t = look(s_{t−1}),  s_t = cell([x_t; c_t], s_{t−1}),  o_t = tanh(W_o [s_t; c_t; x_t]) (Bahdanau 2015, A.2.2).

    The paper's output layer is a maxout of the same three.
    """

    def __init__(
        self, in_dim: int, dim: int, memory_dim: int, attend: Attend | None, cell: MakeCell = nn.GRUCell
    ) -> None:
        super().__init__(cell(in_dim + memory_dim, dim), attend, dim + memory_dim + in_dim, dim)

    def steps(self, x_BND: Tensor, state: DecoderState, look: Look) -> tuple[Tensor, DecoderState]:
        hidden, reads = state.hidden, []
        for x_BD in x_BND.unbind(1):
            context_BD = look(state_of(hidden)[:, None])[:, 0]
            hidden = self.cell(torch.cat([x_BD, context_BD], dim=-1), hidden)
            reads.append(torch.cat([state_of(hidden), context_BD, x_BD], dim=-1))
        # No step depends on an earlier output: all are computed at once.
        out_BND = torch.tanh(self.to_out(torch.stack(reads, dim=1)))
        return out_BND, DecoderState(hidden, out_BND[:, -1])


class LuongDecoder(RecurrentDecoder):
    """h_t = cell([x_t; o_{t−1}], h_{t−1}),  c_t = look(h_t),  o_t = tanh(W_c [c_t; h_t]) (Luong 2015, eq. 5).

    The output is fed into the next step (section 3.3), so that a step knows where the earlier ones looked. Without
    `input_feeding`, h_t = cell(x_t, h_{t−1}): no state depends on a look, and all looks are taken at once.
    """

    def __init__(
        self,
        in_dim: int,
        dim: int,
        memory_dim: int,
        attend: Attend | None,
        cell: MakeCell = nn.GRUCell,
        input_feeding: bool = True,
    ) -> None:
        super().__init__(cell(in_dim + dim if input_feeding else in_dim, dim), attend, memory_dim + dim, dim)
        self.input_feeding = input_feeding

    def steps(self, x_BND: Tensor, state: DecoderState, look: Look) -> tuple[Tensor, DecoderState]:
        if not self.input_feeding:
            hidden, states = state.hidden, []
            for x_BD in x_BND.unbind(1):
                hidden = self.cell(x_BD, hidden)
                states.append(state_of(hidden))
            out_BND = self._output(torch.stack(states, dim=1), look)
            return out_BND, DecoderState(hidden, out_BND[:, -1])
        outputs = []
        for x_BD in x_BND.unbind(1):
            hidden = self.cell(torch.cat([x_BD, state.fed_BD], dim=-1), state.hidden)
            state = DecoderState(hidden, self._output(state_of(hidden)[:, None], look)[:, 0])
            outputs.append(state.fed_BD)
        return torch.stack(outputs, dim=1), state

    def _output(self, state_BND: Tensor, look: Look) -> Tensor:
        return torch.tanh(self.to_out(torch.cat([look(state_BND), state_BND], dim=-1)))


def state_of(hidden: Hidden) -> Tensor:
    """What is seen of a cell: the LSTM keeps its cell content to itself."""
    return hidden[0] if isinstance(hidden, tuple) else hidden
