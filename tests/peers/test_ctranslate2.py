"""Exported translators against CTranslate2 itself: the same tokens and scores, greedy and with beams."""

import random

import ctranslate2
import pytest
import torch
from tests.verbs.text.texts import sentence
from tests.verbs.text.tiny_translator import tiny_run

import mirada
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.tasks.length_penalty import LengthPenalty
from mirada.tasks.search import beam_search
from mirada.verbs import export_ctranslate2 as exporting

pytestmark = pytest.mark.peers

KINDS = {
    "pre": {},
    "post": {"norm": "post", "final_norm": False},
    "half": {"position": "sinusoidal_half", "activation": "gelu"},
    "learned": {"position": "learned", "activation": "silu", "tie": "none"},
    "unscaled": {"embedding_scale": 1.0, "tie": "output"},
    "separate": {"shared": False},
    "separate untied": {"shared": False, "tie": "none", "norm": "post", "final_norm": False},
}
LONGEST = 30


def sentences(count=12):
    generator = random.Random(1)
    return [" ".join(sentence(generator)) for _ in range(count)]


def exported(run, out):
    files = mirada.export(run, to="ctranslate2", out=out)
    assert all(file.exists() for file in files)
    return ctranslate2.Translator(str(out), device="cpu", compute_type="float32")


def both(trained, theirs, texts, beam, alpha):
    """(tokens, score) of every sentence, by our search and by CTranslate2's."""
    source, target = trained.tokeniser, trained.target_tokeniser
    asked = source.encode_many(texts)
    ours = beam_search(
        trained.model,
        trained.translator.read(asked),
        start=target.start,
        end=target.end,
        forbidden=set(target.special.values()) - {target.end},
        beam=beam,
        max_length=LONGEST,
        penalty=LengthPenalty("length", alpha),
    )
    results = theirs.translate_batch(
        [[source.vocabulary[token] for token in tokens] for tokens in asked],
        beam_size=beam,
        length_penalty=alpha,
        patience=LONGEST,  # until nothing better can come, as our search does
        max_decoding_length=LONGEST,
        min_decoding_length=0,
        return_scores=True,
    )
    return (
        [([target.vocabulary[token] for token in best.tokens], best.score) for (best,) in ours],
        [(result.hypotheses[0], result.scores[0]) for result in results],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_translations_and_scores_are_the_same(kind, tmp_path):
    # Special tokens are forbidden in both, but only here they keep their share of the probability: it starts at none.
    run = tiny_run(tmp_path / "run", num_steps=60, output_bias=True, **KINDS[kind])
    trained, theirs = mirada.load(run), exported(run, tmp_path / "theirs")
    for beam, alpha in ((1, 0.0), (4, 0.0), (4, 1.0)):
        wanted, found = both(trained, theirs, sentences(), beam, alpha)
        assert [tokens for tokens, _ in found] == [tokens for tokens, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-3)


def test_special_tokens_are_not_written_though_the_model_likes_them(tmp_path):
    run = tiny_run(tmp_path / "run", num_steps=0)
    trained, theirs = mirada.load(run), exported(run, tmp_path / "theirs")
    asked = trained.translator.read(trained.tokeniser.encode_many(sentences()))
    begun = torch.full((len(asked), 1), trained.tokeniser.start)
    liked = trained.model(asked, begun).argmax(-1).flatten().tolist()
    assert set(liked) & exporting.never_written(trained.tokeniser)
    wanted, found = both(trained, theirs, sentences(), beam=1, alpha=0.0)
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in wanted]


@pytest.mark.parametrize("shared", [True, False])
def test_the_folder_is_enough_to_translate(shared, tmp_path):
    run = tiny_run(tmp_path / "run", num_steps=60, shared=shared)
    theirs = exported(run, tmp_path / "theirs")
    vocabularies = {"shared_vocabulary.json"} if shared else {"source_vocabulary.json", "target_vocabulary.json"}
    tokenisers = {"tokeniser.json"} if shared else {"tokeniser.json", "target_tokeniser.json"}
    names = {file.name for file in (tmp_path / "theirs").iterdir()}
    assert names == {"model.bin", "config.json", "data.json"} | vocabularies | tokenisers
    source = Tokeniser.load(tmp_path / "theirs" / "tokeniser.json")
    target = source if shared else Tokeniser.load(tmp_path / "theirs" / "target_tokeniser.json")
    asked = [source.vocabulary[token] for token in source.encode("three one two")]
    (result,) = theirs.translate_batch([asked], beam_size=1)
    text = target.decode([target.vocabulary.index(name) for name in result.hypotheses[0]])
    assert text == mirada.translate(run, "three one two", beam=1)[0][0].text != ""


def test_a_model_that_translates_otherwise_is_not_left_there(tmp_path, monkeypatch):
    run = tiny_run(tmp_path / "run", num_steps=60)
    monkeypatch.setitem(exporting.ACTIVATIONS, "relu", "Tanh")
    with pytest.raises(MiradaError, match="sentences otherwise than the model itself, so it was not written"):
        mirada.export(run, to="ctranslate2", out=tmp_path / "theirs")
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_files_is_left_alone(tmp_path):
    run = tiny_run(tmp_path / "run")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "letter.txt").write_text("mine")
    with pytest.raises(MiradaError, match="is not empty"):
        mirada.export(run, to="ctranslate2", out=tmp_path / "theirs")
    assert [file.name for file in (tmp_path / "theirs").iterdir()] == ["letter.txt"]
