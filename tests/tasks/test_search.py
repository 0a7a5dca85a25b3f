"""Beam search against exhaustive enumeration, a plain one for one sentence, Hugging Face's, and hand-made cases."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mirada.errors import MiradaError
from mirada.systems import card, create
from mirada.tasks.candidates import Forbidden, highest_of, likeliest
from mirada.tasks.length_penalty import LengthPenalty
from mirada.tasks.search import LONGER_THAN_SOURCE, Hypothesis, beam_search, greedy
from tests.tasks.tabled import END, PAD, START, Tabled, all_texts, log_probability, padded, scattered

MARKS = {"start": START, "end": END}
SOURCES = [(7, 5, 6, END), (5, END), (6, 6, 5, 7, 5, END)]
PENALTIES = [
    LengthPenalty("none"),
    LengthPenalty("length", 1.0),
    LengthPenalty("length", -0.5),
    LengthPenalty("gnmt", 0.6),
    LengthPenalty("gnmt", 2.0),
]


def one_sentence(logits, source, *, num_tokens, beam, limit, penalty, n_best):
    """Beam search as it is told: lists, one sentence, no early stop."""
    going_on, ended = [(0.0, ())], []
    for length in range(1, limit + 1):
        candidates = []
        for total, text in going_on:
            log_p = torch.tensor(logits(source, text), dtype=torch.float64).log_softmax(0).tolist()
            candidates += [(total + log_p[token], (*text, token)) for token in range(2, num_tokens)]
        candidates.sort(key=lambda candidate: -candidate[0])
        ended += [(penalty.score(p, length), text[:-1]) for p, text in candidates[:beam] if text[-1] == END]
        going_on = [(p, text) for p, text in candidates if text[-1] != END][:beam]
    ended.sort(key=lambda candidate: -candidate[0])
    return ended[:n_best] or [(penalty.score(p, limit), text) for p, text in going_on[:n_best]]


def said(hypotheses):
    return [(tuple(each.tokens), each.is_finished) for each in hypotheses]


def test_hand_made_lattice():
    """a is likelier than b, but b ends well: p(a a) = 0.6·0.5·1 = 0.3, p(b) = 0.4·0.9 = 0.36."""
    a, b = 3, 4
    after = {
        (): {a: 0.6, b: 0.4},
        (a,): {a: 0.5, b: 0.3, END: 0.2},
        (b,): {END: 0.9, a: 0.1},
        (a, a): {END: 1.0},
        (a, b): {END: 1.0},
        (b, a): {END: 1.0},
    }

    def logits(source, text):
        return [math.log(p) if (p := after.get(text, {END: 1.0}).get(token, 0)) else -math.inf for token in range(5)]

    model, source = Tabled(logits), padded([(5, END)])
    (found,) = greedy(model, source, **MARKS)
    assert found.tokens == [a, a] and found.is_finished
    assert found.score == found.log_probability == pytest.approx(math.log(0.3))
    (two,) = beam_search(model, source, beam=2, n_best=2, penalty="none", **MARKS)
    assert said(two) == [((b,), True), ((a, a), True)]
    assert [math.exp(each.score) for each in two] == pytest.approx([0.36, 0.3])
    (means,) = beam_search(model, source, beam=2, n_best=2, penalty=LengthPenalty("length", 1.0), **MARKS)
    assert said(means) == [((a, a), True), ((b,), True)]
    assert [each.score for each in means] == pytest.approx([math.log(0.3) / 3, math.log(0.36) / 2])
    (every,) = beam_search(model, source, beam=9, n_best=9, penalty="none", **MARKS)
    assert [math.exp(each.log_probability) for each in every] == pytest.approx([0.36, 0.3, 0.18, 0.12, 0.04])


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_a_wide_beam_finds_what_enumeration_finds(penalty):
    logits, words, limit = scattered(6), (3, 4, 5), 5
    found = beam_search(
        Tabled(logits), padded(SOURCES), beam=4 * 3**4, n_best=11, max_length=limit, penalty=penalty, **MARKS
    )
    for source, hypotheses in zip(SOURCES, found, strict=True):
        every = []
        for text in all_texts(words, limit):
            total = log_probability(logits, source, (*text, END))
            every.append((penalty.score(total, len(text) + 1), total, text))
        every.sort(reverse=True)
        assert said(hypotheses) == [(text, True) for _, _, text in every[:11]]
        assert [each.score for each in hypotheses] == pytest.approx([score for score, _, _ in every[:11]])
        assert [each.log_probability for each in hypotheses] == pytest.approx([total for _, total, _ in every[:11]])


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(2, 5),
    penalty=st.sampled_from(PENALTIES),
    sharpness=st.sampled_from([0.3, 1.0, 3.0]),
)
def test_stopping_early_changes_nothing(seed, beam, penalty, sharpness):
    logits, how = scattered(7, sharpness, seed), {"beam": beam, "penalty": penalty, "n_best": beam - 1}
    found = beam_search(Tabled(logits), padded(SOURCES), max_length=9, **how, **MARKS)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        expected = one_sentence(logits, source, num_tokens=7, limit=9, **how)
        assert [tuple(each.tokens) for each in hypotheses] == [text for _, text in expected]
        assert [each.score for each in hypotheses] == pytest.approx([score for score, _ in expected])


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), penalty=st.sampled_from(PENALTIES), sharpness=st.sampled_from([0.3, 1.0, 3.0]))
def test_one_beam_is_greedy(seed, penalty, sharpness):
    logits = scattered(7, sharpness, seed)
    model, source_BM = Tabled(logits, torch.float32), padded(SOURCES)
    found = greedy(model, source_BM, max_length=8, **MARKS)
    for source, hypothesis in zip(SOURCES, found, strict=True):
        text = []
        while len(text) < 8 and END not in text:
            values = logits(source, tuple(text))
            text.append(max(range(2, 7), key=lambda token, values=values: values[token]))
        assert (hypothesis.tokens, hypothesis.is_finished) == ([t for t in text if t != END], END in text)
        assert hypothesis.log_probability == pytest.approx(log_probability(logits, source, text), abs=1e-5)
    single = beam_search(model, source_BM, beam=1, penalty=penalty, max_length=8, **MARKS)
    assert [said(each) for each in single] == [said([each]) for each in found]
    assert [each.log_probability for (each,) in single] == [each.log_probability for each in found]


@settings(max_examples=25)
@given(data=st.data(), beam=st.integers(1, 4), penalty=st.sampled_from(PENALTIES))
def test_a_sentence_depends_on_nothing_else_in_its_batch(data, beam, penalty):
    words = st.lists(st.integers(3, 7), max_size=6).map(lambda each: (*each, END))
    sources = data.draw(st.lists(words, min_size=1, max_size=6))
    widths = st.integers(max(map(len, sources)), 12)
    logits = scattered(6, 1.5, data.draw(st.integers(0, 10**6)))

    def search(batch, width=None):
        return beam_search(Tabled(logits), padded(batch, width), beam=beam, n_best=beam, penalty=penalty, **MARKS)

    alone = [search([source])[0] for source in sources]
    order = data.draw(st.permutations(range(len(sources))))
    together = search([sources[row] for row in order], data.draw(widths))
    assert together == [alone[row] for row in order]


@pytest.mark.parametrize("beam", [1, 3])
def test_each_sentence_has_its_own_greatest_length(beam):
    """A model that never wants to end."""

    def logits(source, text):
        return [0, 0, -math.inf, 3, 1]

    found = beam_search(Tabled(logits), padded(SOURCES, 11), beam=beam, n_best=beam, **MARKS)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        limit = len(source) + LONGER_THAN_SOURCE
        assert len(hypotheses) == beam
        assert all(len(each.tokens) == limit and not each.is_finished for each in hypotheses)
        assert hypotheses[0].log_probability == pytest.approx(log_probability(logits, source, [3] * limit))
        assert hypotheses[0].score == pytest.approx(hypotheses[0].log_probability / ((5 + limit) / 6) ** 0.6)


def test_finished_sentences_leave_the_batch():
    """Sentence n wants to end after its n-th word."""

    def logits(source, text):
        return [0, 0, 20 if len(text) + 1 >= len(source) else 0, 10, 9]

    model = Tabled(logits)
    found = beam_search(model, padded([(5, END), (5, 5, 5, 5, END), (5, 5, END)]), beam=2, **MARKS)
    assert [best.tokens for (best,) in found] == [[3], [3] * 4, [3] * 2]
    assert model.rows_per_step == [3, 6, 4, 2, 2]


def test_unfinished_texts_are_not_mixed_with_finished_ones():
    def logits(source, text):
        return [0, 0, 9 if text == (4,) else -math.inf, 5, 3]

    (found,) = beam_search(Tabled(logits), padded([(5, END)]), beam=3, n_best=3, max_length=4, **MARKS)
    assert said(found) == [((4,), True)]


def test_equals_are_ordered_by_beam_and_number():
    """All tokens are always equally likely, in a vocabulary large enough for topk to take any of them."""
    model = Tabled(lambda source, text: [0.0] * 300)
    (first,) = greedy(model, padded([(5, END)]), max_length=4, forbidden=[END + 1], min_length=3, **MARKS)
    assert first.tokens == [4, 4]
    (found,) = beam_search(model, padded([(5, END)]), beam=3, n_best=3, max_length=3, min_length=2, **MARKS)
    assert said(found) == [((3,), True), ((3, 3), True)]


def test_padding_and_start_are_never_written():
    def logits(source, text):
        return [9, 8, 1 if len(text) > 2 else 0, 2, 3]

    (best,) = greedy(Tabled(logits), padded([(5, END)]), max_length=6, **MARKS)
    assert best.tokens == [4] * 6
    assert best.log_probability == pytest.approx(log_probability(logits, (5, END), [4] * 6))  # not shared out anew
    (best,) = greedy(Tabled(logits), padded([(5, END)]), max_length=3, forbidden=[4], **MARKS)
    assert best.tokens == [3] * 3
    (best,) = beam_search(Tabled(logits), padded([(5, END)]), beam=1, max_length=3, pad=4, **MARKS)[0]
    assert best.tokens == [PAD] * 3


def test_start_that_is_also_the_end_is_written():
    model = Tabled(lambda source, text: [0, 0, 9 if len(text) == 2 else 0, 4])
    (best,) = greedy(model, padded([(5, END)]), start=END, end=END)
    assert best == Hypothesis([3, 3], best.score, best.log_probability, True)


def test_no_text_is_too_short():
    logits = scattered(6)
    short, long = (
        beam_search(Tabled(logits), padded(SOURCES), beam=324, min_length=n, max_length=5, penalty="none", **MARKS)
        for n in (0, 4)
    )
    for source, (before,), (after,) in zip(SOURCES, short, long, strict=True):
        texts = [text for text in all_texts((3, 4, 5), 5) if len(text) + 1 >= 4]
        best = max(texts, key=lambda text, source=source: log_probability(logits, source, (*text, END)))
        assert tuple(after.tokens) == best and len(before.tokens) < 3


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_ngram_is_written_twice(n):
    logits, limit = scattered(6), 5
    found = beam_search(
        Tabled(logits),
        padded(SOURCES),
        beam=324,
        n_best=9,
        no_repeat_ngram=n,
        max_length=limit,
        penalty="none",
        **MARKS,
    )

    def repeats(text):
        ngrams = [text[i : i + n] for i in range(len(text) - n + 1)]
        return len(set(ngrams)) < len(ngrams)

    texts = [text for text in all_texts((3, 4, 5), limit) if not repeats(text)]
    for source, hypotheses in zip(SOURCES, found, strict=True):
        texts.sort(key=lambda text, source=source: -log_probability(logits, source, (*text, END)))
        assert said(hypotheses) == [(text, True) for text in texts[:9]]


def test_a_text_that_may_not_go_on_ends():
    """Three words, none twice, and yet six tokens are wanted."""
    found = beam_search(
        Tabled(scattered(6)), padded(SOURCES), beam=2, no_repeat_ngram=1, min_length=6, max_length=8, **MARKS
    )
    assert all(best.is_finished and sorted(best.tokens) == [3, 4, 5] for (best,) in found)


@pytest.mark.parametrize("system", ["transformer", "seq2seq"])
def test_trained_systems_are_searched(system):
    """Texts depend neither on the batch nor on the padding, and score what teacher forcing gives them."""
    model = create(system, **{**card(system).tiny, "num_tokens": 13}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    sources = [(7, 5, 6, END), (5, END), (6, 12, 5, 7, 5, 9, END)]
    how = {"beam": 3, "n_best": 3, "max_length": 9, **MARKS}
    together = beam_search(model, padded(sources, 11), **how)
    for source, hypotheses in zip(sources, together, strict=True):
        (alone,) = beam_search(model, padded([source]), **how)
        assert said(alone) == said(hypotheses)
        for each in hypotheses:
            text = [START, *each.tokens, *[END] * each.is_finished]
            with torch.no_grad():
                log_p_NT = model(padded([source]), torch.tensor([text[:-1]]))[0].double().log_softmax(-1)
            total = log_p_NT.gather(1, torch.tensor(text[1:])[:, None]).sum().item()
            assert each.log_probability == pytest.approx(total, rel=1e-4)


def test_equals_hugging_face():
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=17, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=40,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=START, forced_eos_token_id=None, init_std=0.6,
    )  # fmt: skip
    torch.manual_seed(3)
    theirs = MarianMTModel(config).eval()
    theirs.final_logits_bias[0, END] = 4.0  # so that texts end, some after few and some after many tokens

    def logits(source, text):
        with torch.no_grad():
            read = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([[START, *text]])}
            return theirs(**read).logits[0, -1].tolist()

    sources = [(7, 5, 6, END), (16, END)]
    for alpha in (0.6, 1.0):
        found = beam_search(
            Tabled(logits),
            padded(sources),
            beam=3,
            n_best=3,
            max_length=24,
            penalty=LengthPenalty("length", alpha),
            **MARKS,
        )
        for source, hypotheses in zip(sources, found, strict=True):
            expected = theirs.generate(
                torch.tensor([source]), num_beams=3, num_return_sequences=3, max_new_tokens=24, length_penalty=alpha,
                early_stopping="never", bad_words_ids=[[PAD], [START]], return_dict_in_generate=True,
                output_scores=True, do_sample=False,
            )  # fmt: skip
            texts = [[token for token in text if token > END] for text in expected.sequences.tolist()]
            assert [each.tokens for each in hypotheses] == texts
            assert all(each.is_finished for each in hypotheses)
            assert [each.score for each in hypotheses] == pytest.approx(expected.sequences_scores.tolist(), abs=1e-4)


def test_an_empty_batch_has_no_results():
    assert beam_search(Tabled(scattered(6)), torch.zeros(0, 3, dtype=torch.long), **MARKS) == []


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"beam": 2, "n_best": 3}, "n_best=3 with beam=2"),
        ({"beam": 0, "n_best": 0}, "n_best=0 with beam=0"),
        ({"max_length": 0}, "max_length=0"),
        ({"max_length": 3, "min_length": 4}, "max_length=3.*min_length=4"),
        ({"forbidden": [END]}, "token 2 is forbidden and is also the end"),
        ({"no_repeat_ngram": 0}, "no_repeat_ngram=0"),
        ({"penalty": "gmnt"}, "'gmnt' is unknown.*did you mean 'gnmt'.*none, length, gnmt"),
    ],
)
def test_misuse_is_refused(how, message):
    with pytest.raises(MiradaError, match=message):
        beam_search(Tabled(scattered(6)), padded(SOURCES), **how, **MARKS)


def test_broken_weights_are_refused():
    with pytest.raises(MiradaError, match="not numbers"):
        greedy(Tabled(lambda source, text: [0, 0, 0, math.nan]), padded(SOURCES), **MARKS)


def test_length_penalties_by_hand():
    assert LengthPenalty("none").score(-6.0, 7) == -6.0
    assert LengthPenalty("length", 1.0).score(-6.0, 3) == -2.0
    assert LengthPenalty("length", 0.5).score(-6.0, 4) == -3.0
    assert LengthPenalty("gnmt", 1.0).score(-6.0, 7) == -3.0
    assert LengthPenalty("gnmt", 0.6).score(-6.0, 1) == -6.0
    assert LengthPenalty("length", -1.0).best_score(-6.0, 2, 5) == -12.0
    with pytest.raises(MiradaError, match="alpha=nan"):
        LengthPenalty("gnmt", math.nan)


@pytest.mark.parametrize("num_tokens", [8, 255, 1280, 1301, 3000])
@pytest.mark.parametrize("count", [1, 4])
def test_the_highest_of_many_are_those_of_a_whole_search(num_tokens, count):
    value_RT = torch.randn(5, num_tokens, generator=torch.Generator().manual_seed(0))
    value_RT[1, :-7] = -torch.inf
    value_RT[2] = value_RT[2].sort().values  # all within one block, or in the rest
    found, wanted = highest_of(value_RT, count), value_RT.topk(count)
    assert torch.equal(found[0], wanted.values) and torch.equal(found[1], wanted.indices)


@pytest.mark.parametrize("num_tokens", [11, 907])
def test_logits_decide_where_log_probabilities_no_longer_differ(num_tokens):
    logits_RT = torch.zeros(2, num_tokens)
    logits_RT[:, 0] = 1000.0
    logits_RT[:, 5] = 1.0
    logits_RT[1, 7] = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    logits_RT[0, 7] = 1.0
    before = logits_RT.clone()
    log_RC, token_RC = likeliest(logits_RT, torch.empty(2, 0, dtype=torch.long), Forbidden(end=1, tokens=(3,)), count=2)
    assert token_RC.tolist() == [[0, 5], [0, 7]]
    assert log_RC.tolist() == [[0.0, -999.0], [0.0, -999.0]]
    assert torch.equal(logits_RT, before)  # which may be what the model keeps
