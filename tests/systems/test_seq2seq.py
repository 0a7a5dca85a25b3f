"""Recurrent translators: equality with loops over torch's cells, every score and query, and none."""

import itertools

import pytest
import torch

from mirada.core import attention_layers, record
from mirada.errors import MiradaError
from mirada.systems import card
from tests.systems.common_text_checks import CLOSE, PAD, PAIR_CHECKS, TOKENS, pair, pair_maker, shaken

QUERIES = ({"query": "previous"}, {"query": "current"}, {"query": "current", "input_feeding": True})
SCORES = ("additive", "dot", "bilinear", "none")
CELLS = ("gru", "lstm")
DIM = 24


def named(variant: dict[str, object]) -> str:
    return "-".join(key if value is True else str(value) for key, value in variant.items())


VARIANTS = pytest.mark.parametrize(
    "variant",
    [
        {"cell": cell, "score": score, **query} for cell, score, query in itertools.product(CELLS, SCORES, QUERIES)
    ],
    ids=named,
)  # fmt: skip


def logits_of_score(model, query_BD, memory_BMD):
    """The score's formula, written out."""
    score = getattr(model.decoder.attend, "score", None)
    if model.to_keys is not None:
        hidden = query_BD[:, None] @ score.query_weight[0] + model.to_keys(memory_BMD) + score.bias[0]
        return torch.tanh(hidden) @ score.v[0, :, 0]
    if hasattr(score, "weight"):
        query_BD = query_BD @ score.weight[0]
    return (query_BD[:, None] * memory_BMD).sum(-1)


def loop_of_one_sentence(model, source_1M, read_1N, query, input_feeding=False):
    """The formulas of the papers, token by token, for a sentence without padding."""
    memory, last = model.encoder.rnn(model.tokens.source(source_1M))
    is_lstm = isinstance(last, tuple)
    ends = [torch.cat([part[-2], part[-1]], dim=-1) for part in (last if is_lstm else (last,))]
    hidden = torch.tanh(model.to_start(ends[0]))
    hidden = (hidden, model.to_content(ends[1])) if is_lstm else hidden
    fed, logits = torch.zeros(1, DIM), []

    def seen():
        return hidden[0] if is_lstm else hidden

    def context():
        if model.decoder.attend is None:
            return ends[0]
        return (logits_of_score(model, seen(), memory).softmax(-1)[..., None] * memory).sum(1)

    for x in model.tokens.target(read_1N).unbind(1):
        if query == "previous":
            c = context()
            hidden = model.decoder.cell(torch.cat([x, c], dim=-1), hidden)
            out = torch.tanh(model.decoder.to_out(torch.cat([seen(), c, x], dim=-1)))
        else:
            hidden = model.decoder.cell(torch.cat([x, fed], dim=-1) if input_feeding else x, hidden)
            out = fed = torch.tanh(model.decoder.to_out(torch.cat([context(), seen()], dim=-1)))
        logits.append(out @ model.tokens.target.weight.T)
    return torch.stack(logits, dim=1)


@VARIANTS
def test_equals_a_loop_over_the_cells_of_torch(variant):
    model, (source, read) = shaken(pair_maker(card("seq2seq"), **variant)()), pair()
    steps = {key: variant[key] for key in ("query", "input_feeding") if key in variant}
    logits = model(source, read)
    for row in range(len(source)):
        own = source[row : row + 1, : int((source[row] != PAD).sum())]
        expected = loop_of_one_sentence(model, own, read[row : row + 1], **steps)
        torch.testing.assert_close(logits[row : row + 1], expected, **CLOSE)


CHECKED = ("reads_in_steps_as_at_once", "reorders_its_state", "learns_with_every_parameter")


@VARIANTS
@pytest.mark.parametrize("check", [f"pair_{check}" for check in CHECKED])
def test_every_part_passes_the_common_checks(variant, check):
    PAIR_CHECKS[check](pair_maker(card("seq2seq"), **variant))


@pytest.mark.parametrize("score", SCORES[:-1])
@pytest.mark.parametrize("query", QUERIES, ids=named)
def test_alignment_can_be_recorded(score, query):
    PAIR_CHECKS["pair_recording"](pair_maker(card("seq2seq"), score=score, **query))


def test_without_attention_there_is_nothing_to_record_and_every_step_sees_the_summary():
    model, (source, read) = shaken(pair_maker(card("seq2seq"), score="none")()), pair()
    assert not attention_layers(model)
    state = model.begin(source)
    assert state.memory_BMD.shape == (len(source), 1, DIM)
    before = model.next_logits(read, state)
    state = model.begin(source)
    state.memory_BMD = torch.zeros_like(state.memory_BMD)  # the first state is as before
    assert (before - model.next_logits(read, state)).abs().amax((0, 2)).min() > 1e-3


@pytest.mark.parametrize("variant", [{"bidirectional": False}, {"depth": 2}, {"depth": 2, "cell": "lstm"}], ids=named)
@pytest.mark.parametrize("check", ["pair_is_independent_of_padding_and_batch", "pair_reads_in_steps_as_at_once"])
def test_other_encoders_pass_the_common_checks(variant, check):
    PAIR_CHECKS[check](pair_maker(card("seq2seq"), **variant))


def test_number_of_parameters():
    """Tokens VD; encoder 6(D/2 (D + D/2) + D); start D² + D; keys D²; score D² + 2D; cell 9D² + 6D; output 3D² + D."""
    model, d = pair_maker(card("seq2seq"))(), DIM
    encoder = 2 * 3 * (d // 2 * (d + d // 2) + d)
    attention = d * d + (d * d + 2 * d)
    cell, output = 3 * (2 * d * d + d * d + 2 * d), 3 * d * d + d
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == TOKENS * d + encoder + (d * d + d) + attention + cell + output


def test_keys_are_projected_once_for_a_sentence():
    model, (source, read) = pair_maker(card("seq2seq"))(), pair()
    calls = []
    model.to_keys.register_forward_hook(lambda *_: calls.append(1))
    with record(model) as maps:
        model(source, read)
    assert len(calls) == 1 and len(maps.every("decoder.attend")) == read.shape[1]


def test_without_input_feeding_all_looks_are_taken_at_once():
    model, (source, read) = pair_maker(card("seq2seq"), query="current")(), pair()
    with record(model) as maps:
        model(source, read)
    assert maps["decoder.attend"].shape == (len(source), 1, read.shape[1], source.shape[1])


def test_E46_the_encoder_is_trained_through_the_decoder():
    for score in SCORES:
        model, (source, read) = pair_maker(card("seq2seq"), score=score)(), pair()
        model(source, read).square().sum().backward()
        assert all(parameter.grad.any() for parameter in model.encoder.parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell": "rnn"}, "cell='rnn': must be one of gru, lstm"),
        ({"score": "bilinar"}, r"score='bilinar' \(did you mean 'bilinear'\?\)"),
        ({"query": "next"}, "query='next': must be one of previous, current"),
        ({"input_feeding": True}, "input_feeding with query='previous': it belongs to query='current'"),
        ({"dim": 23}, "dim=23 cannot be shared by two directions"),
    ],
)
def test_misuse_is_refused(arguments, message):
    with pytest.raises(MiradaError, match=message):
        pair_maker(card("seq2seq"))(**arguments)
