"""Means of weights: by hand, tried at the end of a training, and the same after a stop in the middle."""

import math
import signal
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from mirada.data.batches import Batch
from mirada.errors import MiradaError
from mirada.train.average import LastMean
from mirada.train.checkpoint import load_header, load_tensors, save_tensors
from mirada.train.folder import RunFolder
from mirada.train.loop import Recipe, fit
from mirada.train.stopping import Stopped, StopRequest

TASK = SimpleNamespace(metric="score")


class Numbers:
    """Batches of one number, 1, 2, …, in turn."""

    def __init__(self) -> None:
        self.epoch = self.step = 0

    def __len__(self):
        return 4

    def __iter__(self):
        while self.step < len(self):
            self.step += 1
            yield Batch(torch.tensor([float(self.step)]), torch.zeros(1), torch.tensor([self.step - 1]))
        self.epoch, self.step = self.epoch + 1, 0


class Weight(nn.Module):
    """One weight, and a counter, which is no float."""

    def __init__(self, value: float = 0.0, count: int = 0) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor([value]))
        self.register_buffer("count", torch.tensor(count))


def objective(model, inputs, targets):
    return (model.value * inputs).sum()


def near(target: float):
    def evaluate(model):
        return {"score": -abs(model.value.item() - target), "loss": abs(model.value.item() - target)}

    return evaluate


def trained(folder, evaluate, stop_at=None, **settings):
    """Steps of 0.1 · 1, 2, 3, 4 in turn, without momentum: at steps 2, 4, 6, 8 the weight is −0.3, −1.0, −1.3, −2.0."""
    plain = {"optimiser": "sgd", "learning_rate": 0.1, "betas": (1e-9, 0.0), "schedule": "constant"}
    recipe = Recipe(steps=8, evaluate_every=2, average_last=3, weight_decay=0.0, **plain, **settings)
    stop = StopRequest()

    def watch(progress):
        if progress.step == stop_at:
            stop.request(signal.SIGTERM)

    return fit(Weight(), TASK, Numbers(), evaluate, recipe, folder, objective=objective, stop=stop, watch=watch)


def kept(folder):
    return load_tensors(folder.best / "model.safetensors")["value"].item()


def folder_in(path):
    folder = RunFolder(path)
    folder.best.mkdir(parents=True)
    folder.state.parent.mkdir(parents=True, exist_ok=True)
    return folder


def test_the_mean_of_the_last_weights_by_hand():
    last = LastMean(3)
    for number, value in enumerate([100.0, 1.0, 2.0, 6.0]):
        model = Weight(value, count=number)
        last.add(model)
        model.value.data += 50  # what was added does not follow
    mean = last.mean(model)
    assert (mean.value.item(), mean.count.item(), model.value.item()) == (3.0, 3, 56.0)


def test_last_weights_are_saved_and_loaded_in_their_order():
    last, other = LastMean(12), LastMean(12)
    for number in range(12):  # 10 comes after 9, not after 1
        last.add(Weight(float(number), count=number))
    other.load(last.tensors())
    assert [each["value"].item() for each in other.kept] == list(range(12))
    other.add(Weight(12.0))
    assert [each["value"].item() for each in other.kept] == list(range(1, 13))


@pytest.mark.parametrize(("target", "value", "is_mean"), [(-1.4, (-1.0 - 1.3 - 2.0) / 3, True), (-2.0, -2.0, False)])
def test_the_mean_is_kept_where_it_is_the_best(tmp_path, target, value, is_mean):
    folder = folder_in(tmp_path)
    state = trained(folder, near(target))
    assert (state.best_is_mean, state.best_step) == (is_mean, 8)
    assert state.best == pytest.approx(-abs(value - target), abs=1e-6)
    assert kept(folder) == pytest.approx(value)
    assert load_header(folder.state)["best_is_mean"] == is_mean
    assert [row["step"] for row in folder.read_metrics()] == ["2", "4", "6", "8"]


@pytest.mark.parametrize("step", [3, 4, 7])
def test_a_mean_after_a_stop_is_that_of_a_training_without(tmp_path, step):
    whole, stopped = folder_in(tmp_path / "whole"), folder_in(tmp_path / "stopped")
    expected = trained(whole, near(-1.4))
    with pytest.raises(Stopped):
        trained(stopped, near(-1.4), stop_at=step)
    state = trained(stopped, near(-1.4))
    assert state.best_is_mean and (state.best, state.best_step) == (expected.best, expected.best_step)
    for path in ("best/model.safetensors", "last/state.safetensors"):
        ours, theirs = (load_tensors(folder.path / path) for folder in (stopped, whole))
        assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_state_saved_before_means_were_told_is_loaded(tmp_path):
    folder = folder_in(tmp_path)
    trained(folder, near(-2.0))
    header = load_header(folder.state)
    del header["best_is_mean"]
    save_tensors(folder.state, load_tensors(folder.state), header)
    assert not trained(folder, near(-2.0)).best_is_mean


def test_an_average_moves_from_one_evaluation_to_the_next(tmp_path):
    """After its first steps it follows once in four, but never less often than it is looked at."""
    found = []

    def evaluate(model):
        found.append(model.value.item())
        return {"score": 0.0, "loss": 1.0}

    plain = {"optimiser": "sgd", "learning_rate": 0.1, "betas": (0.0, 0.0), "schedule": "constant"}
    recipe = Recipe(steps=111, evaluate_every=3, average=0.9, weight_decay=0.0, **plain)
    fit(Weight(), TASK, Numbers(), evaluate, recipe, folder_in(tmp_path), objective=objective, stop=StopRequest())
    assert len(found) == len(set(found)) == 37


@pytest.mark.parametrize("choose_by", ["metric", "loss"])
def test_what_is_not_a_number_is_never_the_best(tmp_path, choose_by):
    folder, values = folder_in(tmp_path), iter([math.nan, 0.5, math.nan, 0.4, math.nan])

    def evaluate(model):
        value = next(values)
        return {"score": value, "loss": -value}

    state = trained(folder, evaluate, choose_by=choose_by)
    assert (state.best, state.best_step, state.best_is_mean) == (0.5, 4, False)
    assert kept(folder) == pytest.approx(-1.0)


def test_a_training_that_never_gave_a_number_says_so(tmp_path):
    with pytest.raises(MiradaError, match=r"every evaluation gave .*nan.*; lower train.learning_rate \(now 0.1\)"):
        trained(folder_in(tmp_path), lambda model: {"score": math.nan, "loss": math.nan})
