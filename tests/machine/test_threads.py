"""Which threads, and how they wait: decided from what is given, without a clock."""

import os

import pytest
import torch

from mirada.machine.threads import Moment, is_busy, num_threads, settle_waiting, threads_for

GIGA = 1e9


def settled(verb, is_busy_now=False, **environment):
    settle_waiting(verb, environment, lambda: is_busy_now)
    return environment


def test_on_a_quiet_machine_torch_decides():
    assert settled("train") == {}
    assert settled("predict") == {}


def test_on_a_busy_machine_threads_sleep():
    assert settled("train", True)["OMP_WAIT_POLICY"] == "PASSIVE"
    assert settled("predict", True)["OMP_WAIT_POLICY"] == "PASSIVE"


def test_a_server_does_not_look_as_it_outlives_the_load():
    assert settled("serve", False)["OMP_WAIT_POLICY"] == "PASSIVE"


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS"])
def test_what_the_user_has_set_stays(name):
    assert settled("train", True, **{name: "7"}) == {name: "7"}


def test_a_process_decides_anew_what_its_parent_decided():
    assert settled("train", False, **settled("studio")) == {}
    assert settled("train", True, **settled("studio")) == settled("train", True)


def test_verbs_without_torch_do_not_look():
    def never() -> bool:
        raise AssertionError

    settle_waiting("presets", {}, never)
    settle_waiting(None, {}, never)


def test_busy_is_what_others_use(monkeypatch):
    monkeypatch.setattr("mirada.machine.threads.num_cores", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    before = Moment(10.0, 100.0, 3.0)
    assert not is_busy(before, Moment(10.1, 100.1, 3.1))  # one core for 0.1 s: this process itself
    assert is_busy(before, Moment(10.1, 100.2, 3.1))  # and another one
    assert not is_busy(before, Moment(10.1, 100.12, 3.1))  # a fifth of a core


def test_neighbours_on_other_cores_do_not_matter(monkeypatch):
    monkeypatch.setattr("mirada.machine.threads.num_cores", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert not is_busy(Moment(0.0, 0.0, 0.0), Moment(1.0, 13.0, 0.0))
    assert is_busy(Moment(0.0, 0.0, 0.0), Moment(1.0, 15.0, 0.0))


def test_where_nothing_tells_the_average_load_does(monkeypatch):
    monkeypatch.setattr("mirada.machine.threads.num_cores", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for load, expected in ((0.1, False), (1.3, True)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert is_busy(Moment(0.0, None, 0.0), Moment(1.0, None, 0.0)) is expected


@pytest.mark.parametrize(
    ("items", "flops", "expected"), [(1, 0.7, 1), (1, 35, 4), (3, 0.7, 4), (2, 0.7, 1), (64, 0.001, 4)]
)
def test_small_work_has_one_thread(items, flops, expected):
    assert num_threads(items, lambda: flops * GIGA, 4) == expected


def test_many_inputs_are_not_counted():
    def never() -> float:
        raise AssertionError

    assert num_threads(64, never, 4) == 4


def test_threads_are_given_back(monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads_for(1, lambda: 1.0):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with threads_for(1, lambda: 1.0):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
