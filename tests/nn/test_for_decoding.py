"""A model prepared for decoding is the same model: to the last digits in float32, nearly in int8."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.core import Attend, Attention, Cache, Concatenated, causal, full, record
from mirada.errors import MiradaError
from mirada.nn import for_decoding
from mirada.nn.for_decoding import JoinedHeads, Packed, Rounded, Turned, TwoForms, prepare_for_decoding
from mirada.nn.lean import LeanAttention
from mirada.systems import create
from mirada.tasks.sampling import sample
from mirada.tasks.search import beam_search

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
TOKENS, START, END = 37, 1, 2
WRITERS = {
    "learned": {},
    "rotary": {"position": "rotary"},
    "sinusoidal": {"position": "sinusoidal"},
}
TRANSLATORS = {
    "transformer": ("transformer", {}),
    "post": ("transformer", {"norm": "post", "tie": "none", "output_bias": True}),
    "biased": ("transformer", {"output_bias": True}),
    "two vocabularies": ("transformer", {"num_target_tokens": 41, "position": "learned"}),
    "Shaw": ("transformer", {"position": "shaw", "neighbours": "window:3"}),
    "rotary": ("transformer", {"position": "rotary", "neighbours": "strided:4"}),
    "seq2seq": ("seq2seq", {}),
    "Luong": ("seq2seq", {"query": "current", "score": "bilinear", "cell": "lstm", "tie": "none"}),
}


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    monkeypatch.setattr(for_decoding, "MIN_WEIGHTS", 0)


@pytest.fixture(params=["packed", "turned"])
def stored(request, monkeypatch) -> str:
    """As large matrices are, or small ones and those of processors without packed products."""
    monkeypatch.setattr(for_decoding, "MIN_PACKED", 0)
    if request.param == "turned":
        monkeypatch.setattr(for_decoding, "PACKED_OPERATORS", ("_that_torch_took_away",))
    return request.param


def shaken(system: str, **arguments) -> nn.Module:
    shape = {"dim": 24} if system == "seq2seq" else {"dim": 24, "depth": 2, "num_heads": 2}
    model = create(system, num_tokens=TOKENS, dropout=0.1, **shape, **arguments).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def texts(length: int = 11) -> torch.Tensor:
    return torch.randint(3, TOKENS, (3, length), generator=torch.Generator().manual_seed(1))


def written(model: nn.Module) -> list[list[int]]:
    return sample(model, model.begin(), texts(5).tolist(), max_length=20, temperature=0.0)


def translated(model: nn.Module) -> list:
    return beam_search(model, texts(), start=START, end=END, beam=3, n_best=2, max_length=12)


@pytest.mark.parametrize("kind", WRITERS)
def test_in_float32_it_writes_the_same(kind, stored):
    model = shaken("gpt", max_length=32, **WRITERS[kind])
    prepared = prepare_for_decoding(model)
    with torch.no_grad():
        torch.testing.assert_close(prepared(texts()), model(texts()), **CLOSE)
    assert written(prepared) == written(model)


@pytest.mark.parametrize("kind", TRANSLATORS)
def test_in_float32_it_translates_the_same(kind, stored):
    system, arguments = TRANSLATORS[kind]
    model = shaken(system, **arguments)
    prepared = prepare_for_decoding(model)
    with torch.no_grad():
        torch.testing.assert_close(prepared(texts(), texts(7)), model(texts(), texts(7)), **CLOSE)
    for found, wanted in zip(translated(prepared), translated(model), strict=True):
        assert [each.tokens for each in found] == [each.tokens for each in wanted]
        assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)


@pytest.mark.parametrize("rows", [(), (1,), (7,), (3, 11)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_product_and_its_rows_are_what_they_were(stored, rows, has_bias):
    whole = nn.Linear(37, 53, has_bias)
    part = prepare_for_decoding(nn.Sequential(whole))[0]
    assert isinstance(part, {"packed": Packed, "turned": Turned}[stored])
    x = torch.randn(*rows, 37)
    with torch.inference_mode():
        torch.testing.assert_close(part(x), whole(x), **CLOSE)
        if rows and stored == "packed":  # bit by bit, whoever else is asked
            one = torch.stack([part(row[None])[0] for row in x.reshape(-1, 37)])
            assert torch.equal(one, part(x).reshape(-1, 53))


def test_small_and_double_matrices_are_not_packed():
    assert kinds_of(prepare_for_decoding(shaken("gpt")), Packed) == []
    large = nn.Sequential(nn.Linear(1024, 512))
    assert kinds_of(prepare_for_decoding(large), Packed) == ["0"]
    assert kinds_of(prepare_for_decoding(large.double()), Turned) == ["0"]


@pytest.mark.parametrize("precision", for_decoding.PRECISIONS)
def test_the_given_model_is_left_as_it_is(precision):
    model = shaken("transformer").train()
    before, parts = copy.deepcopy(model.state_dict()), [type(part) for part in model.modules()]
    prepared = prepare_for_decoding(model, precision)
    assert not prepared.training and model.training
    assert [type(part) for part in model.modules()] == parts
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    F.cross_entropy(model(texts(), texts()).mT, texts()).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert prepared.tokens.source.weight is model.tokens.source.weight  # rows are looked up in one place


def kinds_of(model: nn.Module, kind) -> list[str]:
    return [name for name, part in model.named_modules() if isinstance(part, kind)]


def test_all_products_of_a_gpt_are_in_8_bits():
    prepared = prepare_for_decoding(shaken("gpt"), "int8")
    assert not kinds_of(prepared, nn.Linear | Turned)
    assert len(kinds_of(prepared, Rounded)) == 2 * 4 + 1 and "embedding.output" in kinds_of(prepared, Rounded)
    assert len(kinds_of(prepared, JoinedHeads)) == 2


def test_only_what_gives_scores_is_stored_a_second_time():
    assert kinds_of(prepare_for_decoding(shaken("transformer")), TwoForms) == ["tokens.source"]
    assert not kinds_of(prepare_for_decoding(shaken("transformer", tie="none")), TwoForms)
    both = shaken("transformer", num_target_tokens=41)
    assert kinds_of(prepare_for_decoding(both), TwoForms) == ["tokens.own_target"]


def test_small_matrices_stay_in_float32(monkeypatch):
    monkeypatch.setattr(for_decoding, "MIN_WEIGHTS", 24 * 96)
    prepared = prepare_for_decoding(shaken("gpt"), "int8")
    assert all("mlp" in name for name in kinds_of(prepared, Rounded)) and len(kinds_of(prepared, Rounded)) == 4


def learned() -> tuple[nn.Module, torch.Tensor]:
    """Texts that count up, and a model that has learned to."""
    token_BN = (torch.arange(TOKENS)[:, None] + torch.arange(10)) % TOKENS
    model = create("gpt", num_tokens=TOKENS, dim=32, depth=2, num_heads=2, max_length=16)
    weights = list(model.parameters())
    for step in range(60):
        loss = F.cross_entropy(model(token_BN[:, :-1]).mT, token_BN[:, 1:])
        with torch.no_grad():
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights, allow_unused=True), strict=True):
                if slope is not None:
                    weight -= 0.01 * (1 - step / 60) * slope.sign()
    return model.eval(), token_BN


def test_in_int8_a_trained_model_says_nearly_the_same():
    model, token_BN = learned()
    prepared = prepare_for_decoding(model, "int8")
    with torch.no_grad():
        logits, rounded = model(token_BN[:, :-1]), prepared(token_BN[:, :-1])
    assert (rounded - logits).std() < 0.05 * logits.std()
    losses = [F.cross_entropy(each.mT, token_BN[:, 1:]).item() for each in (logits, rounded)]
    assert losses[0] < 0.5 and losses[1] - losses[0] < 0.02
    prompts = token_BN[:, :3].tolist()
    texts = [sample(each, each.begin(), prompts, max_length=6, temperature=0.0) for each in (model, prepared)]
    assert sum(a == b for a, b in zip(*texts, strict=True)) >= 0.95 * len(prompts)


def test_a_step_equals_no_cache_in_int8_too():
    """One row at a time, as rounding looks at all rows of a call."""
    prepared = prepare_for_decoding(shaken("gpt"), "int8")
    with torch.no_grad():
        state, token_BN = prepared.begin(), texts()[:1]
        steps = torch.cat([prepared.next_logits(token_BN[:, n : n + 1], state) for n in range(11)], dim=1)
        whole = prepared(token_BN)
    assert (steps - whole).std() < 0.05 * whole.std()


def test_the_cache_is_written_in_place(monkeypatch):
    """Keys and values of a step go where there is room; a new place is made a logarithmic number of times."""
    places, append = {}, Cache.append_together

    def watched(self, layer, k, v):
        found = append(self, layer, k, v)
        places.setdefault(layer, []).append(found[0].untyped_storage())
        return found

    monkeypatch.setattr(Cache, "append_together", watched)
    model = prepare_for_decoding(shaken("gpt", max_length=128))
    sample(model, model.begin(), texts(4).tolist(), max_length=100, temperature=0.0)
    assert len(places) == 2
    for storages in places.values():
        assert len(storages) == 100 and len({storage.data_ptr() for storage in storages}) <= 8
        assert max(storage.nbytes() for storage in storages) <= 4 * 3 * 24 * 4 * 103


def test_what_cannot_be_is_refused(monkeypatch):
    model = shaken("gpt")
    with pytest.raises(MiradaError, match="precision='int4': must be one of float32, int8"):
        prepare_for_decoding(model, "int4")
    with pytest.raises(MiradaError, match="int8 runs on the CPU, and the model is on meta"):
        prepare_for_decoding(copy.deepcopy(model).to("meta"), "int8")
    monkeypatch.setattr(torch.backends, "quantized", SimpleNamespace(supported_engines=[]))
    with pytest.raises(MiradaError, match="no 8-bit products for this processor; use precision=float32"):
        prepare_for_decoding(model, "int8")


def test_a_step_after_others_needs_no_places_and_can_be_recorded(monkeypatch):
    """One token sees all in the cache; several at once, and those that are watched, are told where they stand."""
    model = shaken("gpt", position="sinusoidal", max_length=32)
    prepared = prepare_for_decoding(model)
    steps, quick = [], Attend.to_all
    monkeypatch.setattr(Attend, "to_all", lambda *args: steps.append(args[2].shape[-2]) or quick(*args))
    with torch.inference_mode():
        wanted, state, token_BN = model(texts()), prepared.begin(), texts()
        found = [prepared.next_logits(token_BN[:, n : n + 1], state) for n in range(3)]
        found.append(prepared.next_logits(token_BN[:, 3:6], state))
        with record(prepared) as maps:
            found += [prepared.next_logits(token_BN[:, 6:7], state)]
        found += [prepared.next_logits(token_BN[:, n : n + 1], state) for n in range(7, 9)]
        found.append(prepared.next_logits(token_BN[:, 9:], state))
    torch.testing.assert_close(torch.cat(found, dim=1), wanted, **CLOSE)
    assert steps == [1, 1, 2, 2, 3, 3, 8, 8, 9, 9]  # of both layers
    assert [(each.queries.index_N.tolist(), len(each.keys)) for each in maps.in_order] == [([6], 7)] * 2


def test_positions_within_attention_keep_the_whole_layer():
    for arguments in ({"position": "rotary"}, {"position": "shaw"}, {"neighbours": "window:3"}):
        names = kinds_of(prepare_for_decoding(shaken("transformer", **arguments)), LeanAttention)
        assert len(names) == 2 and all(".cross." in name for name in names)


def test_a_memory_with_padding_is_seen_as_ever():
    model, source_BM = shaken("transformer"), texts()
    source_BM[1, 7:] = model.pad
    prepared = prepare_for_decoding(model)
    for one, other in zip(
        *(beam_search(each, source_BM, start=START, end=END) for each in (prepared, model)), strict=True
    ):
        assert [each.tokens for each in one] == [each.tokens for each in other]


class Forgetful:
    """Reads all that it has written anew at every step."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.pad = model, model.pad

    def begin(self, source_BM: torch.Tensor) -> SimpleNamespace:
        state = SimpleNamespace(source_BM=source_BM, read_BN=source_BM[:, :0])

        def reorder(index_B: torch.Tensor) -> None:
            state.source_BM, state.read_BN = state.source_BM[index_B], state.read_BN[index_B]

        state.reorder = reorder
        return state

    def next_logits(self, read_BN: torch.Tensor, state: SimpleNamespace) -> torch.Tensor:
        state.read_BN = torch.cat([state.read_BN, read_BN], dim=1)
        return self.model(state.source_BM, state.read_BN)[:, -1:]


@pytest.mark.parametrize("kind", ["transformer", "post", "Shaw", "rotary"])
@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "as it is"])
def test_beams_that_share_what_they_wrote_search_as_those_that_read_all_anew(kind, is_prepared):
    """Sentences of other lengths drop out at other times, and tokens that no beam has any more are forgotten."""
    model = shaken(*TRANSLATORS[kind][:1], **TRANSLATORS[kind][1]).double()
    source_BM = texts()
    source_BM[1, 6:] = model.pad
    how = {"start": START, "end": END, "beam": 4, "n_best": 3, "max_length": 25}
    wanted = beam_search(Forgetful(model), source_BM, **how)
    found = beam_search(prepare_for_decoding(model) if is_prepared else model, source_BM, **how)
    for one, other in zip(found, wanted, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]


def prepared_layer(**shape) -> tuple[Attention, nn.Module]:
    rule = full() if "memory_dim" in shape else causal()
    layer = Attention(Concatenated(12, 4, **shape), neighbours=rule).eval()
    return layer, prepare_for_decoding(nn.ModuleDict({"layer": layer}))["layer"]


@pytest.mark.parametrize("shape", [{"out_dim": 5}, {"num_key_heads": 2}, {"head_dim": 7}], ids=str)
def test_heads_of_all_shapes_share_their_beams(shape):
    layer, prepared = prepared_layer(**shape)
    assert isinstance(prepared, LeanAttention)
    x, rows, caches = torch.randn(6, 5, 12), 2, (Cache(), Cache())
    moves = ([0, 0, 0, 1, 1, 1], [1, 1, 0, 3, 5, 4], [0, 1, 2, 3, 3, 3], [3, 4, 5], [0, 1, 2])
    with torch.inference_mode():
        for n, index in enumerate(moves):
            wanted, found = (
                each(x[:rows, n : n + 1], cache=cache) for each, cache in zip((layer, prepared), caches, strict=True)
            )
            torch.testing.assert_close(found, wanted, **CLOSE)
            rows = len(index)
            for cache in caches:
                cache.reorder(torch.tensor(index))


def test_fewer_rows_of_memory_than_queries_are_shared():
    layer, prepared = prepared_layer(memory_dim=17)
    x, memory, valid = torch.randn(6, 1, 12), torch.randn(2, 7, 17), torch.ones(6, 7, dtype=torch.bool)
    valid[3:, 4:] = False
    with torch.inference_mode():
        wanted = layer(x, memory.repeat_interleave(3, 0), valid_BM=valid)
        torch.testing.assert_close(prepared(x, memory, valid_BM=valid, cache=Cache()), wanted, **CLOSE)


def test_beams_that_share_can_be_recorded_and_trained():
    """What needs the tokens of every row gets them, also in the middle of a search."""
    model = shaken("transformer")
    prepared, index = prepare_for_decoding(model), torch.tensor([0, 0, 1, 1, 2, 2])
    states = [each.begin(texts()) for each in (model, prepared)]
    with torch.no_grad():
        for token in (3, 4, 5):
            rows = 3 if token == 3 else 6
            for each, state in zip((model, prepared), states, strict=True):
                each.next_logits(torch.full((rows, 1), token), state)
                state.reorder(index if token == 3 else torch.tensor([1, 0, 2, 2, 5, 4]))
        read = torch.arange(6, 12)[:, None]
        with record(prepared) as maps:
            found = prepared.next_logits(read, states[1])
        torch.testing.assert_close(found, model.next_logits(read, states[0]), **CLOSE)
        assert {len(each.keys) for each in maps.in_order} >= {4}
    torch.testing.assert_close(
        *(m.next_logits(read, s) for m, s in zip((model, prepared), states, strict=True)), **CLOSE
    )


def test_a_bias_that_nobody_takes_stays():
    model = shaken("transformer", tie="none", output_bias=True)
    torch.nn.utils.parametrizations.weight_norm(model.tokens.own_output)
    with torch.no_grad():
        torch.testing.assert_close(prepare_for_decoding(model)(texts(), texts(7)), model(texts(), texts(7)), **CLOSE)
