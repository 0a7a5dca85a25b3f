"""Draws have the probabilities they promise, and a row's text is its own."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mirada.errors import MiradaError
from mirada.systems import card, create
from mirada.tasks.sampling import drawn, nucleus, row_generator, sample, stream
from mirada.tasks.search import greedy
from tests.tasks.tabled import END, START, Tabled, padded, scattered

SHARES = torch.tensor([0.15, 0.5, 0.1, 0.25], dtype=torch.float64)


def shares_of(count=20_000, logits_T=None, **how):
    logits_T = SHARES.log() if logits_T is None else logits_T
    tokens = drawn(logits_T.expand(count, -1), generator=torch.Generator().manual_seed(1), **how)
    return torch.bincount(tokens, minlength=len(logits_T)) / count


def texts_of(model, prompts, **how):
    """A language model: nothing but the prompt is known."""
    return sample(model, model.begin(torch.full((len(prompts), 1), END)), prompts, **how)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [0.15, 0.5, 0.1, 0.25]),
        ({"temperature": 0.5}, [0.0225 / 0.345, 0.25 / 0.345, 0.01 / 0.345, 0.0625 / 0.345]),
        ({"top_k": 2}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_k": 9}, [0.15, 0.5, 0.1, 0.25]),
        ({"top_p": 0.75}, [0, 2 / 3, 0, 1 / 3]),
        ({"top_p": 0.76}, [1 / 6, 5 / 9, 0, 5 / 18]),
        ({"top_p": 0.6, "top_k": 3}, [0, 2 / 3, 0, 1 / 3]),  # 0.5 / 0.9 does not reach 0.6
        ({"top_p": 0.5, "top_k": 3}, [0, 1, 0, 0]),
        ({"top_p": 0.7, "temperature": 0.5}, [0, 1, 0, 0]),  # 0.25 / 0.345 does
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"temperature": 1e-320}, [0, 1, 0, 0]),
    ],
    ids=str,
)
def test_draws_have_their_probabilities(how, expected):
    assert shares_of(**how).tolist() == pytest.approx(expected, abs=4 * (0.25 / 20_000) ** 0.5)
    assert [share > 0 for share in shares_of(**how).tolist()] == [share > 0 for share in expected]


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [
        (0.3, [False, True, False, False]),
        (0.5, [False, True, False, False]),
        (0.51, [False, True, False, True]),
        (0.75, [False, True, False, True]),
        (0.9, [True, True, False, True]),
        (0.91, [True, True, True, True]),
        (1e-9, [False, True, False, False]),
    ],
)
def test_nucleus_by_hand(top_p, kept):
    assert nucleus(SHARES.log()[None], top_p)[0].tolist() == kept


def test_nucleus_takes_the_first_of_equals():
    assert nucleus(torch.zeros(1, 5, dtype=torch.float64), 0.4)[0].tolist() == [True, True, False, False, False]


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    prompts=st.lists(st.lists(st.integers(3, 6), min_size=1, max_size=5), min_size=1, max_size=5),
    how=st.sampled_from([{}, {"temperature": 0.7, "top_k": 3}, {"top_p": 0.8}, {"temperature": 0.0}]),
)
def test_a_row_depends_on_no_other(seed, prompts, how):
    """Whatever the lengths of the other prompts, and whenever they end."""
    model, how = Tabled(scattered(7)), {"end": END, "max_length": 6, "seed": seed, **how}
    together = texts_of(model, prompts, **how)
    alone = [texts_of(model, [prompt], numbers=[row], **how)[0] for row, prompt in enumerate(prompts)]
    assert together == alone
    assert all(len(text) <= 6 and END not in text for text in together)


def test_rows_differ_and_seeds_repeat():
    model, prompts = Tabled(scattered(40)), [[START, 4]] * 3
    first, again, other = (texts_of(model, prompts, max_length=12, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert len({tuple(text) for text in first + other}) == 6
    assert all(len(text) == 12 for text in first)


def test_the_likeliest_token_is_what_greedy_search_takes():
    model, sources = Tabled(scattered(7)), padded([(7, 5, END), (5, END), (6, 3, 3, 4, END)])
    got = sample(
        model, model.begin(sources), [[START]] * 3, end=END, max_length=9, temperature=0.0, forbidden=[0, START]
    )
    assert got == [best.tokens for best in greedy(model, sources, start=START, end=END, max_length=9)]


def test_tokens_come_as_they_are_written():
    """The long prompt is still being read when the short one writes, and rows that ended leave the batch."""

    def logits(source, text):
        return [-math.inf] * 2 + ([0, -math.inf] if len(text) >= 4 else [-math.inf, 0])

    model = Tabled(logits)
    state = model.begin(padded([(5, END)] * 2))
    steps = stream(model, state, [[START, 3], [START, 3, 3, 3]], end=END, max_length=3)
    assert next(steps) == [(0, 3)]
    assert model.rows_per_step == [2]
    assert list(steps) == [[(0, 3)], [(0, 3), (1, 3)], [(1, END)]]
    assert model.rows_per_step == [2, 2, 2, 1]


def test_forbidden_tokens_are_not_drawn():
    text = texts_of(Tabled(scattered(6)), [[START]], max_length=60, forbidden=[0, START, END, -1])[0]
    assert set(text) == {3, 4, 5}


def test_row_generators_are_unrelated():
    """Of numbers beyond 32 bits, too."""
    firsts = {
        torch.rand((), generator=row_generator(*key)).item()
        for key in [*itertools.product((0, 1), repeat=2), (10, 0), (0, 1 << 32)]
    }
    assert len(firsts) == 6


def test_gpt_goes_on_as_without_its_cache():
    model = create("gpt", **{**card("gpt").tiny, "num_tokens": 13}).eval()
    prompts = [[5, 6, 7], [8], [9, 10]]
    got = sample(model, model.begin(), prompts, max_length=5, temperature=0.0)
    for prompt, text in zip(prompts, got, strict=True):
        tokens = list(prompt)
        with torch.no_grad():
            for _ in range(5):
                tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
        assert text == tokens[len(prompt) :]


@pytest.mark.parametrize("name", ["gpt", "transformer", "seq2seq"])
def test_of_a_prompt_only_the_last_logits_are_computed(name, monkeypatch):
    model = create(name, **{**card(name).tiny, "num_tokens": 13}).eval()
    state = model.begin() if name == "gpt" else model.begin(torch.tensor([[5, 6, END]]))
    unembedded, plain = [], model.next_logits

    def next_logits(*given, **how):
        unembedded.append(plain(*given, **how))
        return unembedded[-1]

    monkeypatch.setattr(model, "next_logits", next_logits)
    assert len(sample(model, state, [[START, 5, 6, 7]], max_length=3)[0]) == 3
    assert [logits.shape for logits in unembedded] == [(1, 1, 13)] * 3


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"temperature": -0.5}, "temperature=-0.5"),
        ({"temperature": math.nan}, "temperature=nan"),
        ({"top_k": 0}, "top_k=0"),
        ({"top_p": 0.0}, "top_p=0.0"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"seed": -1}, "seed=-1"),
        ({"max_length": 0}, "max_length=0"),
        ({"numbers": [1, 2]}, "2 numbers for 1 prompts"),
        ({"end": END, "forbidden": [END]}, "token 2 is forbidden"),
        ({"prompts": [[START], []]}, "prompt 2 of 2 has no token"),
    ],
    ids=str,
)
def test_misuse_is_refused_before_anything_is_written(how, message):
    model, how = Tabled(scattered(6)), {"prompts": [[START]], "max_length": 3, **how}
    with pytest.raises(MiradaError, match=message):
        stream(model, model.begin(padded([(5, END)])), **how)


def test_broken_weights_are_refused():
    for temperature in (0.0, 1.0):
        with pytest.raises(MiradaError, match="not numbers"):
            drawn(torch.tensor([[0.0, math.nan, 1.0]]), temperature=temperature)


def test_no_prompts_no_texts():
    assert texts_of(Tabled(scattered(6)), [], max_length=3) == []
