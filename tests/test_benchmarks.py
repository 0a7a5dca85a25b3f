"""What the measurements page says and shows, from made-up results; and that the profile charges the right parts."""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import page, throughput
from benchmarks.curves import LEAST_GAP, _apart, curve, draw_all
from benchmarks.small_data_table import grouped
from benchmarks.throughput import EVALUATION, LEARNING, OUTSIDE, Stopwatch, profile
from benchmarks.timing import Timing, interleave, speed_up


def job(contender: str, seed: int, *, minutes: float = 5, recipe: str = "a", accuracy: float = 0.5) -> dict:
    times = [minutes * 60 * (number + 1) / 10 for number in range(10)]
    return {
        "dataset": "cifar10",
        "contender": contender,
        "minutes": minutes,
        "seed": seed,
        "settings": recipe,
        "accuracy": accuracy,
        "epochs": 7.0,
        "num_parameters": 1234567,
        "curve": [[seconds, accuracy - 0.1 / (number + 1)] for number, seconds in enumerate(times)],
    }


@pytest.fixture
def places(tmp_path: Path, monkeypatch) -> tuple[Path, Path]:
    """A folder of results and one of documentation, both empty but for the page on training."""
    results, docs = tmp_path / "results", tmp_path / "docs"
    results.mkdir()
    docs.mkdir()
    (docs / "train.md").write_text(f"before\n\n{page.BEGIN}\n{page.END}\n\nafter\n")
    monkeypatch.setattr(page, "RESULTS", results)
    monkeypatch.setattr(page, "DOCS", docs)
    return results, docs


def write_jobs(results: Path, jobs: list[dict]) -> None:
    (results / "small_data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in jobs))


def test_a_group_has_the_mean_and_its_interval():
    (group,) = grouped([job("preset", seed, accuracy=a) for seed, a in enumerate((0.80, 0.82, 0.84))])
    assert group.accuracy == "82.00 ± 4.97"  # t(0.975; 2) = 4.303, 2/√3 = 1.155


def test_one_seed_has_no_interval():
    (group,) = grouped([job("preset", 0, accuracy=0.8)])
    assert group.half_width is None
    assert group.accuracy == "80.00"


def test_budgets_and_contenders_stay_apart():
    groups = grouped([job("tutorial", 0), job("preset", 0), job("preset", 0, minutes=20)])
    assert [(group.minutes, group.contender) for group in groups] == [(5, "preset"), (5, "tutorial"), (20, "preset")]


def test_only_the_latest_recipe_counts():
    old = [job("preset", seed, recipe="old", accuracy=0.1) for seed in range(3)]
    (group,) = grouped([*old, job("preset", 0, recipe="new", accuracy=0.9)])
    assert group.accuracies == [90.0]


def test_a_curve_is_in_minutes_and_percent_per_seed():
    (group,) = grouped([job("preset", seed, accuracy=0.5 + 0.1 * seed) for seed in range(3)])
    minutes, accuracy = curve(group)
    assert minutes[-1] == pytest.approx(5)
    assert accuracy.shape == (3, 10)
    assert accuracy[:, -1] == pytest.approx([49, 59, 69])


def test_labels_keep_their_order_and_distance():
    heights = _apart([0.1, 0.5, 0.505, 0.51, 0.9])
    assert heights == sorted(heights)
    assert min(b - a for a, b in itertools.pairwise(heights)) >= LEAST_GAP - 1e-12
    assert heights[0] == 0.1
    assert heights[2] == pytest.approx(0.505)


def test_the_same_results_draw_the_same_picture(tmp_path):
    groups = grouped([job(name, seed, minutes=m) for name in ("preset", "new") for seed in (0, 1) for m in (5, 20)])
    first, again = (draw_all(groups, tmp_path / name)["cifar10"] for name in ("a", "b"))
    assert first[0].read_bytes() == again[0].read_bytes()
    assert first[0].read_text().startswith("<?xml")
    assert "Mirada's preset 49.0 % after 20 minutes" in first[1]


def test_pictures_go_into_both_pages_and_twice_changes_nothing(places):
    results, docs = places
    write_jobs(results, [job("preset", seed) for seed in range(2)])
    page.main()
    written = {path.name: path.read_bytes() for path in docs.rglob("*.*") if path.is_file()}
    assert written.keys() == {"train.md", "measured.md", "accuracy-cifar10.svg"}
    assert b"(images/accuracy-cifar10.svg)" in written["train.md"]
    assert written["train.md"].startswith(b"before\n")
    assert written["train.md"].endswith(b"\n\nafter\n")
    assert b"| cifar10 | 5 | preset | 1,234,567 | 7 | 50.00" in written["measured.md"]
    page.main()
    assert written == {path.name: path.read_bytes() for path in docs.rglob("*.*") if path.is_file()}


def test_without_results_the_pages_have_no_pictures(places):
    _, docs = places
    before = (docs / "train.md").read_text()
    page.main()
    assert (docs / "train.md").read_text() == before
    assert not (docs / "images").exists()


def test_the_page_on_training_has_the_marks_for_its_pictures():
    text = (page.ROOT / "docs" / "train.md").read_text()
    assert text.count(page.BEGIN) == text.count(page.END) == 1


def test_throughput_on_the_page(places):
    results, _ = places
    share = dict.fromkeys((*LEARNING, *OUTSIDE), 0.125)
    found = {"epochs": 5, "num_images": {"train": 8100}, "seconds_per_epoch": 7.25, "share": share}
    step = {"ms": {"mirada": 100.0, "timm": 103.0}, "num_parameters": 7, "rounds": 31}
    content = {
        "machine": {"processor": "Abacus", "torch": "2.13"},
        "threads": 2,
        "profile": {"medium-data": {**found, "outside": 0.0312, "evaluation": 0.07}},
        "step": {
            "a tie": {**step, "faster_than": {"timm": [1.01, 0.98, 1.05]}},
            "a loss": {**step, "faster_than": {"timm": [0.9, 0.88, 0.92]}},
        },
    }
    (results / "throughput.json").write_text(json.dumps(content))
    text = page.page()
    assert "| **outside forward, backward and optimiser** | **3.1 %** |" in text
    assert "| a tie | 100.0 ms | 103.0 ms | 1.01 (0.98–1.05), tie |" in text
    assert "0.90 (0.88–0.92), slower |" in text


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
