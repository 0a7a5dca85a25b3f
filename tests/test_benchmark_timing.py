"""How the benchmarks take time: whom it is charged to, in which order, and what a ratio is."""

from types import SimpleNamespace

import pytest
from benchmarks import throughput, timing
from benchmarks.throughput import EVALUATION, LEARNING, OUTSIDE, Stopwatch, profile
from benchmarks.timing import Timing, interleave, speed_up


def test_the_outermost_part_is_charged(monkeypatch):
    now = [0.0]

    def pass_time(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(throughput, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    watch = Stopwatch()
    backward = watch.around("backward", pass_time)
    evaluate = watch.around(EVALUATION, lambda: backward(3.0))
    backward(100.0)  # not yet on
    watch.start()
    evaluate()
    backward(7.0)
    pass_time(2.0)
    watch.stop()
    charged = {part: seconds for part, seconds in watch.seconds.items() if seconds}
    assert charged == {EVALUATION: 3.0, "backward": 7.0, "rest": 2.0}


@pytest.mark.long
def test_the_profile_accounts_for_every_part_and_leaves_the_product_as_it_was():
    from mirada.train import loop
    from mirada.verbs import stages

    before = (stages.fit, loop.endless, loop.Training.save, loop.save_tensors)
    found = profile("medium-data", epochs=1, num_images=400)
    assert (stages.fit, loop.endless, loop.Training.save, loop.save_tensors) == before
    assert sum(found["share"].values()) == pytest.approx(1)
    assert all(found["share"][part] > 0 for part in (*LEARNING, *OUTSIDE))
    assert found["share"]["backward"] > found["share"]["optimiser"]
    assert found["evaluation"] > 0


def test_candidates_take_turns_and_the_first_round_does_not_count():
    seen: list[str] = []
    ticks = iter(range(100))
    taken = interleave({name: lambda n=name: seen.append(n) for name in "ab"}, 2, clock=lambda: float(next(ticks)))
    assert "".join(seen) == "baabba"
    assert taken["a"].seconds == (1.0, 1.0)


def test_a_ratio_is_of_pairs():
    ratio = speed_up(Timing((1.0, 2.0, 4.0)), Timing((2.0, 4.0, 8.0)))
    assert (ratio.median, ratio.low, ratio.high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("fpu avx2", "Abacus (AVX2)"),
        ("avx2 avx512f avx512_vnni avx512_bf16", "Abacus (AVX-512, VNNI, BF16)"),
        ("fpu", "Abacus"),
    ],
)
def test_processors_of_one_name_are_told_apart_by_what_they_can(flags, name, monkeypatch):
    told = f"processor\t: 0\nmodel name\t: Abacus\nflags\t\t: {flags}\n\nprocessor\t: 1\n"
    monkeypatch.setattr(timing, "Path", lambda path: SimpleNamespace(read_text=lambda: told))
    assert timing.machine()["processor"] == name
