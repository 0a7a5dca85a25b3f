"""Recurrent translation with attention (Bahdanau 2015, Luong 2015), and without it (Cho 2014).

    h_1 … h_M = encoder(x),   s_0 = tanh(W [h⃗_M; h⃖_1]),   o_t = decoder(y_t, s_{t−1}, Σ_m α_tm h_m),
    p(y_{t+1} | y_1 … y_t, x) from E o_t

Shape letters: B batch, M tokens of the source, N tokens of the target, D dim, K key dim, L layers × directions,
T tokens of the target's vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.core import Additive, Attend, Bilinear, Dot
from mirada.errors import MiradaError
from mirada.nn import BahdanauDecoder, DecoderState, LuongDecoder, RecurrentEncoder, TokenMatrices
from mirada.nn.dropout import Dropout
from mirada.nn.recurrent import Hidden, MakeCell
from mirada.systems.registry import Card, one_of, register

MakeRNN = Callable[..., nn.RNNBase]
CELLS: dict[str, tuple[MakeRNN, MakeCell]] = {"gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell)}


@dataclass
class Seq2SeqState:
    """What was read, with its keys where the score has some, and where the decoder stands."""

    memory_BMD: Tensor
    valid_BM: Tensor | None
    keys_BMK: Tensor | None
    decoder: DecoderState

    def reorder(self, index_B: Tensor) -> None:
        self.memory_BMD = self.memory_BMD.index_select(0, index_B)
        self.valid_BM = None if self.valid_BM is None else self.valid_BM.index_select(0, index_B)
        self.keys_BMK = None if self.keys_BMK is None else self.keys_BMK.index_select(0, index_B)
        self.decoder = self.decoder.reorder(index_B)


@register(
    Card(
        name="seq2seq",
        title="Recurrent encoder and decoder",
        summary="Reads a sentence word by word and writes another, aligning every word it writes with those it read.",
        paper="Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate, 2015",
        inputs="pairs",
        parts={
            "score": "additive, dot or bilinear; none: the decoder sees a summary of the source",
            "neighbours": "full, from target to source",
            "position": "none: recurrence has order",
            "heads": "one",
        },
        sizes={
            "tiny": {"dim": 128},
            "small": {"dim": 256},
            "base": {"dim": 512},
            "big": {"dim": 1024},
        },
        default_size="small",
        when_to_use="Short sentences and little data, to see alignments, and to learn what attention adds.",
        tiny={"dim": 24, "dropout": 0.0},
        learning_rate=4e-3,
    )
)
class Seq2Seq(nn.Module):
    """Logits (B, N, num_target_tokens) of the token after each of `read` (B, N), given a source (B, M).

    num_tokens     of the vocabulary, that of the source if `num_target_tokens` says that the target has its own
    pad            the token that fills up sources: it is not read
    dim            of tokens and states; the two directions of the encoder share it
    depth          layers of the encoder; the decoder has one
    cell           "gru" or "lstm"
    score          how a state is compared with the memory: "additive", "dot" or "bilinear"; "none": no attention, every
                   step is given the encoder's last state instead (Cho 2014)
    query          who asks: the state "previous" to the step (Bahdanau) or the "current" one after it (Luong)
    input_feeding  with query "current": the output is fed into the next step (Luong 2015, section 3.3)
    tie            which matrices are one: "all", "output" or "none"; None: as far as the vocabularies allow
    dropout        of the embedded tokens, between the encoder's layers, and of the decoder's output
    """

    def __init__(
        self,
        *,
        num_tokens: int,
        num_target_tokens: int | None = None,
        pad: int = 0,
        dim: int = 256,
        depth: int = 1,
        cell: str = "gru",
        bidirectional: bool = True,
        score: str = "additive",
        query: str = "previous",
        input_feeding: bool = False,
        tie: str | None = None,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        num_directions = 2 if bidirectional else 1
        if dim % num_directions:
            raise MiradaError(f"dim={dim} cannot be shared by two directions: use an even one or bidirectional=False")
        if input_feeding and query != "current":
            raise MiradaError(f"input_feeding with query={query!r}: it belongs to query='current'")
        rnn, make_cell = one_of("cell", cell, CELLS)
        self.pad, self.num_directions = pad, num_directions
        self.tokens = TokenMatrices(num_tokens, dim, num_target_tokens=num_target_tokens, tie=tie)
        self.dropout = Dropout(dropout)
        self.encoder = RecurrentEncoder(
            rnn(
                dim,
                dim // num_directions,
                depth,
                batch_first=True,
                bidirectional=bidirectional,
                dropout=dropout if depth > 1 else 0.0,
            )
        )
        self.to_start = nn.Linear(dim, dim)
        self.to_content = nn.Linear(dim, dim) if cell == "lstm" else None
        # The additive score compares W_k h_m: computed once for a sentence, and not at every step.
        self.to_keys = nn.Linear(dim, dim, bias=False) if score == "additive" else None
        scores = {
            "additive": lambda: Attend(Additive(dim, None, dim, bias=True)),
            "dot": lambda: Attend(Dot()),
            "bilinear": lambda: Attend(Bilinear(dim, dim)),
            "none": lambda: None,
        }
        attend = one_of("score", score, scores)()
        decoders: dict[str, Callable[[], BahdanauDecoder | LuongDecoder]] = {
            "previous": lambda: BahdanauDecoder(dim, dim, dim, attend, make_cell),
            "current": lambda: LuongDecoder(dim, dim, dim, attend, make_cell, input_feeding),
        }
        self.decoder = one_of("query", query, decoders)()

    def forward(self, source_BM: Tensor, read_BN: Tensor, asked_BN: Tensor | None = None) -> Tensor:
        """With `asked_BN`, logits (A, T) after the tokens where it is True, in their order."""
        out_BND = self._written(read_BN, self.begin(source_BM))
        return self.tokens.scores(out_BND if asked_BN is None else out_BND[asked_BN])

    def begin(self, source_BM: Tensor) -> Seq2SeqState:
        valid_BM = source_BM != self.pad
        memory_BMD, last = self.encoder(self.dropout(self.tokens.source(source_BM)), valid_BM)
        keys_BMK = None if self.to_keys is None else self.to_keys(memory_BMD)
        start = self.decoder.start(self._start(last))
        if self.decoder.attend is None:
            state_LBD = last[0] if isinstance(last, tuple) else last
            return Seq2SeqState(self._of_last_layer(state_LBD)[:, None], None, None, start)
        return Seq2SeqState(memory_BMD, valid_BM, keys_BMK, start)

    def next_logits(self, read_BN: Tensor, state: Seq2SeqState, num_last: int | None = None) -> Tensor:
        """(B, N, T) after each of the tokens that the state has not seen; the state has seen them then.

        `num_last` computes the logits of so many at the end only.
        """
        out_BND = self._written(read_BN, state)
        return self.tokens.scores(out_BND if num_last is None else out_BND[:, -num_last:])

    def _written(self, read_BN: Tensor, state: Seq2SeqState) -> Tensor:
        y_BND = self.dropout(self.tokens.target(read_BN))
        out_BND, state.decoder = self.decoder(y_BND, state.decoder, state.memory_BMD, state.valid_BM, state.keys_BMK)
        return self.dropout(out_BND)

    def _start(self, last: Hidden) -> Hidden:
        """The decoder's first state from the encoder's last ones; an LSTM hands over what its cells hold, too."""
        if not isinstance(last, tuple):
            return torch.tanh(self.to_start(self._of_last_layer(last)))
        assert self.to_content is not None
        state_LBD, content_LBD = last
        state_BD = torch.tanh(self.to_start(self._of_last_layer(state_LBD)))
        return state_BD, self.to_content(self._of_last_layer(content_LBD))

    def _of_last_layer(self, state_LBD: Tensor) -> Tensor:
        """(B, D): both directions side by side."""
        return state_LBD[-self.num_directions :].transpose(0, 1).flatten(1)
