"""The guard picks by what a trial says; the trials here are given, not timed."""

import pytest
import torch

from mirada.config.load import resolve
from mirada.machine.precision import Trial, try_out
from mirada.verbs.prepare import prepare_data
from mirada.verbs.stages import Watcher, with_precision


class Heard(Watcher):
    def __init__(self) -> None:
        self.sentences: list[str] = []

    def says(self, sentence: str) -> None:
        self.sentences.append(sentence)


@pytest.fixture(scope="module")
def digits():
    config = resolve({"data": {"source": "digits"}})
    return prepare_data(config.data, config.system)


def chosen(digits, precision: str, trial: Trial):
    heard = Heard()
    settings = {"data": {"source": "digits"}, "train": {"precision": precision, "device": "cpu"}}
    given: list = []

    def try_them(shapes):
        given.extend(shapes)
        return trial

    config = with_precision(resolve(settings), digits, heard, try_them)
    return config.train, heard.sentences, given


SLOW = Trial(float32=1e-3, bfloat16=14e-3, fused=2e-3, foreach=8e-3)
FAST = Trial(float32=1e-3, bfloat16=0.4e-3, fused=8e-3, foreach=2e-3)
NOISE = Trial(float32=1e-3, bfloat16=0.97e-3, fused=2e-3, foreach=1.95e-3)


@pytest.mark.parametrize(
    ("trial", "precision", "fused"), [(SLOW, "float32", True), (FAST, "bfloat16", False), (NOISE, "float32", True)]
)
def test_auto_takes_what_is_clearly_faster(digits, trial, precision, fused):
    train, said, shapes = chosen(digits, "auto", trial)
    assert (train.precision, train.fused) == (precision, fused)
    assert len(said) == 1
    assert max(len(shape) for shape in shapes) >= 2


def test_who_asks_for_slow_bfloat16_is_told_the_ratio(digits):
    train, said, _ = chosen(digits, "bfloat16", SLOW)
    assert train.precision == "bfloat16"
    assert said == [said[0]]
    assert "14.0 times slower" in said[0]


def test_who_asks_for_fast_bfloat16_hears_nothing(digits):
    train, said, _ = chosen(digits, "bfloat16", FAST)
    assert train.precision == "bfloat16"
    assert not said


def test_float32_is_not_tried(digits):
    train, said, shapes = chosen(digits, "float32", FAST)
    assert train.precision == "float32"
    assert not said
    assert not shapes


def test_a_real_trial_measures_all_four():
    found = try_out([torch.Size((31, 17)), torch.Size((31,)), torch.Size((5, 3, 7, 7))])
    assert all(seconds > 0 for seconds in found.to_dict().values())
