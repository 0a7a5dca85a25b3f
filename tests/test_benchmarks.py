"""What the measurements page says and shows, from made-up results; and that comparisons are done once."""

import itertools
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import (
    contests,
    jobs,
    mask_tiles,
    masks,
    page,
    shortcuts,
    small_data,
    systems_table,
    time_to_accuracy,
    transfer,
)
from benchmarks.contests import Budget, Measurement
from benchmarks.curves import LEAST_GAP, _apart, curve, draw_all
from benchmarks.small_data_table import grouped
from benchmarks.throughput import LEARNING, OUTSIDE

from mirada import systems
from mirada.compare.contest import Contest, parse_entrant
from mirada.systems.outline import outline
from mirada.systems.registry import all_arguments
from mirada.verbs.contest_steps import plan_all
from mirada.verbs.masks.windows import Plan
from tests.shapes import shapes
from tests.verbs.trained_run import make_photos


def job(
    contender: str, seed: int, *, minutes: float = 5, recipe: str = "a", accuracy: float = 0.5, steps: int = 100
) -> dict:
    times = [minutes * 60 * (number + 1) / 10 for number in range(10)]
    return {
        "dataset": "cifar10",
        "contender": contender,
        "minutes": minutes,
        "seed": seed,
        "settings": recipe,
        "steps": steps,
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
    monkeypatch.setattr(page, "PRESETS", tmp_path / "presets")
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


def test_seeds_with_as_many_steps_as_the_latest_count():
    """Minutes that were timed anew are other steps, and no other seed of the same."""
    (group,) = grouped([job("preset", 0, steps=100, accuracy=0.1), job("preset", 1, steps=200, accuracy=0.9)])
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


def test_scores_go_into_the_preset_that_reached_them_once(places):
    results, _ = places
    write_jobs(results, [job("preset", 0, accuracy=0.8), job("preset", 0, minutes=20), job("tutorial", 0)])
    page.PRESETS.mkdir()
    for name in ("medium-data", "small-data"):
        (page.PRESETS / f"{name}.yaml").write_text("# a command\n# a sentence\nsystem:\n  name: vit  # a word\n")
    page.main()
    page.main()
    assert (page.PRESETS / "medium-data.yaml").read_text() == (
        "# a command\n# a sentence\n# Measured: CIFAR-10 80.00 % in 5 minutes\n"
        "# Measured: CIFAR-10 50.00 % in 20 minutes\nsystem:\n  name: vit  # a word\n"
    )
    assert "Measured" not in (page.PRESETS / "small-data.yaml").read_text()


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
    step = {"ms": {"mirada": 100.0, "timm": 103.0}, "of_the_limit": 0.75, "rounds": 15, "calls": 4}
    content = {
        "machine": {"processor": "Abacus", "torch": "2.13"},
        "threads": 2,
        "profile": {"medium-data": {**found, "outside": 0.0312, "evaluation": 0.07}},
        "step": {
            "gemm_gflops": 157.0,
            "shapes": {
                "a tie": {**step, "faster_than": {"timm": [1.01, 0.98, 1.05]}},
                "a loss": {**step, "faster_than": {"timm": [0.9, 0.88, 0.92]}},
            },
        },
    }
    (results / "throughput.json").write_text(json.dumps(content))
    text = page.page()
    assert "| **outside forward, backward and optimiser** | **3.1 %** |" in text
    assert "| a tie | 100.0 ms | 75 % | tie (0.98–1.05) |" in text and "157 GFLOP/s" in text
    assert "0.90 (0.88–0.92), slower |" in text


@pytest.fixture
def no_reports(monkeypatch) -> None:
    """Nothing is drawn: that takes longer than a training of one step."""
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: None)
    monkeypatch.setattr("mirada.verbs.compare.figure", lambda rows: SimpleNamespace(light=b""))


@pytest.fixture
def trying(tmp_path: Path, no_reports) -> transfer.Places:
    """Small photos in the place of CIFAR-10 and of Pets."""
    photos = make_photos(tmp_path / "photos", per_class=6)
    return transfer.Places(photos, photos, tmp_path / "runs", tmp_path / "results" / "transfer.json")


def finishing_times(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("result.json")}


def test_the_recipes_of_the_small_data_table_are_those_that_were_measured():
    known = small_data.calibrated()
    for contender in ("preset", "preset-adamw", "tutorial", "cnn-micro-adamw", "cnn-mini-adamw"):
        assert small_data.steps_key(small_data.key_of("cifar10", contender, 5.0, 0)) in known


def test_time_to_accuracy_compares_a_contender_with_the_preset_in_less_time(places):
    results, docs = places
    pairs = [time_to_accuracy.Pair("cifar10", "tutorial", 12.0, 3.0), time_to_accuracy.Pair("pets", "cct", 30.0, 6.0)]
    write_jobs(
        results,
        [job("tutorial", 0, accuracy=0.6, minutes=12.0), job("preset", 0, accuracy=0.7, minutes=3.0), job("preset", 0)],
    )
    assert time_to_accuracy.time_to_accuracy_text(results) == ""
    (results / "time_to_accuracy.json").write_text(json.dumps({"pairs": [vars(pair) for pair in pairs]}))
    text = time_to_accuracy.time_to_accuracy_text(results)
    assert "| cifar10 | tutorial | 12 | 60.00 | 3 | 70.00 | yes, one seed |" in text and "| pets" not in text
    assert "| 3 |" not in page.small_data_section()
    section = page.time_to_accuracy_section()
    assert section.startswith(text) and "tutorial recipe 59.0 % after 12 minutes" in section
    assert section.count("](images/") == 1
    assert (docs / "images" / "time-to-accuracy-cifar10.svg").read_text().startswith("<?xml")


def test_a_busy_machine_is_not_timed(monkeypatch):
    monkeypatch.setattr(jobs, "busy_share", lambda: 0.5)
    with pytest.raises(SystemExit, match="50 % busy"):
        jobs.require_idle()


def test_transfer_is_tried_out_and_not_done_twice(trying, monkeypatch, capsys):
    small = {
        name: found for name, found in transfer.measurements(trying, Budget(5, 1, 1)).items() if name != "fine-tuning"
    }
    monkeypatch.setattr(transfer, "measurements", lambda places, budget: small)
    transfer.measure(trying, Budget(5, 1, 1), 20, 1, only_time=False)
    finished = finishing_times(trying.runs)
    assert sorted(path.split("/")[1] for path in finished if "distillation" in path) == ["hard", "no-teacher", "soft"]
    transfer.measure(trying, Budget(5, 1, 1), 20, 1, only_time=False)
    assert finishing_times(trying.runs) == finished
    kept = json.loads(trying.results_file.read_text())
    assert [row["entrant"] for row in kept["distillation"]["rows"]] == ["no teacher", "hard", "soft"]
    assert kept["givers"]["teacher"]["system"] == "cnn"
    assert "| hard |" in capsys.readouterr().out


def test_shortcuts_are_tried_out_and_each_differs_from_the_preset(tmp_path, no_reports, monkeypatch, capsys):
    draw = np.random.default_rng(0)
    images = {f"x_{split}": draw.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8) for split in ("train", "test")}
    source, runs = tmp_path / "images.npz", tmp_path / "runs"
    np.savez(source, **images, y_train=np.arange(40) % 2, y_test=np.arange(40) % 2)
    shortcuts.prepare_starts(source, runs, 1)
    finished = finishing_times(runs)
    shortcuts.prepare_starts(source, runs, 1)
    assert finishing_times(runs) == finished and len(finished) == 2
    found = shortcuts.measurements(source, runs, Budget(3, 1, 1))
    assert found["starts"].budget.minutes == 2
    found["starts"].train(1)
    contests.keep({"starts": found["starts"]}, tmp_path / "shortcuts.json")
    kept = json.loads((tmp_path / "shortcuts.json").read_text())["starts"]
    assert kept["table"][0]["entrant"] == "from scratch" and len(kept["table"]) == 3
    contest = Contest(str(source), found["settings"].entrants, 1, shortcuts.SETTINGS, shortcuts.PRESET, 3)
    recipes = [config.model_dump_json() for config, _ in plan_all(contest).values()]
    assert len(set(recipes)) == len(shortcuts.CHANGES)


def test_turned_images_have_their_quarter_as_class(tmp_path):
    draw = np.random.default_rng(0)
    content = {f"x_{split}": draw.integers(0, 256, (7, 5, 5, 3), dtype=np.uint8) for split in ("train", "test")}
    np.savez(tmp_path / "images.npz", **content)
    with np.load(shortcuts.turned(tmp_path / "images.npz", tmp_path / "turned.npz")) as found:
        assert set(found["y_train"]) | set(found["y_test"]) == {0, 1, 2, 3}
        for split in ("train", "test"):
            for image, before, quarters in zip(
                found[f"x_{split}"], content[f"x_{split}"], found[f"y_{split}"], strict=True
            ):
                assert (np.rot90(image, -quarters) == before).all()


def test_fine_tuning_and_scratch_differ_in_their_start_and_its_rate_only(trying):
    run = trying.giver("pretrained")
    transfer.learn("pretrained", run, trying.cifar10, 1)
    found = transfer.measurements(trying, Budget(5, 1, 1))["fine-tuning"]
    settings = ("data.val=0.1", "train.optimiser=adamw")
    contest = Contest(str(found.source), found.entrants, 1, settings, found.preset, 5)
    scratch, tuned = (config.model_dump() for config, _ in plan_all(contest).values())
    shape = {"image_size": (64, 64), "in_channels": 3, "num_classes": 3}
    made = [all_arguments("vit", "micro", **{**c["system"]["arguments"], **shape}) for c in (scratch, tuned)]
    # The preset leaves the patches to the size of the images; a checkpoint names those it was trained with.
    of_scratch, of_tuned = (systems.create("vit", **arguments).patch_size for arguments in made)
    assert of_scratch == of_tuned
    assert made[0] | {"patch_size": of_scratch} == made[1]
    assert tuned["start"] == str(run.path)
    assert tuned["train"].pop("learning_rate") == scratch["train"].pop("learning_rate") / 4
    assert tuned["train"] == scratch["train"]
    assert tuned["augment"] == scratch["augment"]


def test_a_giver_of_another_length_is_replaced(trying):
    run = trying.giver("teacher")
    transfer.learn("teacher", run, trying.cifar10, 1)
    transfer.learn("teacher", run, trying.cifar10, 2)
    assert not transfer.has_learned(run, 1)
    assert transfer.has_learned(run, 2)


def test_every_system_for_images_is_in_the_table():
    listed = {(parse_entrant(words).system or "vit").split(":")[0] for words in systems_table.CLASSIFIERS}
    assert listed == {name for name, card in systems.cards().items() if card.inputs == "image"}
    pixels = {parse_entrant(words).system.split(":")[0] for words in systems_table.OF_PIXELS}
    assert pixels == {name for name, card in systems.cards().items() if card.inputs == "pixels"}


def test_the_sizes_of_the_table_are_nearest_to_the_plain_vit_by_ratio():
    def distance(name: str, size: str) -> float:
        model = outline(name, size, image_size=(32, 32), in_channels=3, num_classes=10)
        return abs(math.log(sum(p.numel() for p in model.parameters()) / 632_138))

    assert distance("vit", "micro") == 0
    for words in systems_table.CLASSIFIERS[2:-1]:  # all but the two of vit and the narrower resnet
        name, _, size = parse_entrant(words).system.partition(":")
        small = [s for s in systems.card(name).sizes if s in ("nano", "micro", "mini", "base", "256/8")]
        assert min(small, key=lambda s: distance(name, s)) == size


def test_the_plain_vit_of_the_table_is_the_size_on_its_card():
    plain = parse_entrant(systems_table.CLASSIFIERS[0])
    contest = Contest("digits", (systems_table.CLASSIFIERS[0], "cnn:nano"), 1, (), "medium-data", 3)
    config, _ = plan_all(contest)[plain.label]
    shape = {"image_size": (32, 32), "in_channels": 3, "num_classes": 10}
    made = all_arguments("vit", "micro", **config.system.arguments, **shape)
    assert made == all_arguments("vit", "micro", **shape)
    assert config.train.learning_rate == systems.card("vit").learning_rate


def test_the_table_of_systems_is_tried_out_and_not_done_twice(tmp_path, trying, capsys):
    entrants = ("cnn:nano", "narrow: cnn:nano system.arguments.dim=8")
    found = Measurement(tmp_path / "c", entrants, trying.cifar10, "medium-data", (), Budget(3, 1, 1))
    found.time_steps()
    assert found.kept() == {}
    found.train(1)
    finished = finishing_times(tmp_path / "c")
    found.train(1)
    assert finishing_times(tmp_path / "c") == finished
    contests.keep({"classes": found}, tmp_path / "systems.json")
    kept = json.loads((tmp_path / "systems.json").read_text())["classes"]
    assert [row["entrant"] for row in kept["table"]] == ["cnn:nano", "narrow"]
    assert "| narrow |" in capsys.readouterr().out


def kept_comparison(*names: str) -> dict:
    row = {"parameters": "7", "MFLOP per image": "1.0", "by formula": "1.0", "accuracy": "50.00 %"}
    return {
        "minutes": 5.0,
        "seeds": 3,
        "preset": "medium-data",
        "machine": {"processor": "Abacus", "torch": "2.13"},
        "table": [{"entrant": name, **row} for name in names],
        "rows": [{"entrant": name, "metric": "accuracy"} for name in names],
        "steps": {name: {"steps": 1000, "threads": 2} for name in names},
    }


def test_systems_and_transfer_are_on_the_page_when_there_are_results(places):
    results, _ = places
    assert "All systems" not in page.page()
    (results / "systems.json").write_text(json.dumps({"classes": kept_comparison("vit:micro")}))
    assert "| vit:micro | 7 | 1.0 | 1.0 | 50.00 % |" in page.page()
    assert "image_gpt" not in page.page()
    givers = {"pretrained": {"accuracy": 0.8212}, "teacher": {"accuracy": 0.8528}}
    content = {"givers": givers, "fine-tuning": kept_comparison("scratch"), "distillation": kept_comparison("hard")}
    (results / "transfer.json").write_text(json.dumps(content))
    text = page.page()
    assert "| start | parameters |" in text
    assert "82.1 % right there" in text
    assert "85.3 % right on the test images" in text
    assert "(hard: 1,000)" in text
    assert "5 minutes each on 2 cores of Abacus" in text


def test_shortcuts_are_on_the_page_when_there_are_results(places):
    results, _ = places
    kept = {"settings": kept_comparison("preset"), "starts": kept_comparison("from scratch") | {"minutes": 2.0}}
    (results / "shortcuts.json").write_text(json.dumps(kept))
    text = page.page()
    assert "| change | parameters |" in text and "beside 2 minutes from scratch" in text


@pytest.mark.parametrize(
    ("metric", "seeds", "said"),
    [
        ("accuracy", 3, "3 seeds. .* from drawing seeds and images anew"),
        ("accuracy", 1, "1 seed. .* from drawing images anew"),
        ("dice", 3, r"3 seeds. .* ± is half .* interval Student's t over the seeds"),
        ("dice", 1, "1 seed. .* without an interval"),
    ],
)
def test_the_page_says_where_intervals_come_from(metric, seeds, said):
    rows = [{"entrant": "unet", "metric": metric}]
    text = page.masks_text({"nuclei": kept_comparison("unet") | {"trivial": 0.3, "seeds": seeds, "rows": rows}})
    assert re.search(said, text)
    assert ("±" in text) == (seeds > 1)


def test_large_masks_are_on_the_page_when_there_are_results(places):
    results, _ = places
    assert "in tiles" not in page.page()
    row = {"megabytes": 1234, "seconds": 5.67, "pixels_per_second": 4_000_000, "share_near_seams": 0.0625}
    row |= {"changed_near_seams": 0.0123, "changed_inside": 0.0045, "foreground": 0.2}
    content = {"size": [4000, 6000], "systems": {"unet": row}, "machine": {"processor": "Abacus", "torch": "2.13"}}
    (results / "mask_tiles.json").write_text(json.dumps(content))
    text = page.page()
    assert "6,000 × 4,000 pixels" in text
    assert "| `unet` | 1,234 MB | 5.7 | 4,000,000 | 6.25 % | 1.23 % | 0.45 % |" in text


def test_masks_are_compared_with_and_without_skips(tmp_path):
    found = masks.measurements(shapes(), tmp_path, (5, 10), 1)["pets"]
    contest = Contest(str(found.source), found.entrants, 1, found.settings, found.preset, 10)
    plans = {label: config for label, (config, _) in plan_all(contest).items()}
    assert [config.system.name for config in plans.values()] == ["transunet"] * 2 + ["unet"] * 2
    closed = [config.system.arguments.get("num_skips") for config in plans.values()]
    assert closed == [None, 0, None, 0]
    assert len({config.train.batch_size for config in plans.values()}) == 1


def test_seams_of_tiles_are_where_tiles_meet():
    plan = Plan(tile=20, halo=4, blend=4, is_moved=True)
    near = mask_tiles.near_seams((50, 30), plan)
    rows, columns = near[:, 0], near[0]
    assert np.flatnonzero(near[:, 9]).tolist() == [*range(16, 24), *range(36, 44)]
    assert np.flatnonzero(near[9]).tolist() == list(range(16, 24))
    assert rows.sum() == 16 and columns.sum() == 8


@pytest.mark.parametrize("blend", [0, 4])
def test_tiles_begun_elsewhere_are_judged_near_seams_of_both_and_away_from_the_new_border(blend):
    plan = Plan(tile=64, halo=8, blend=blend, is_moved=bool(blend))
    part = np.zeros((300, 280, 3), np.uint8)
    changed, near = mask_tiles.tiled_twice(part, plan, lambda pixels: mask_tiles.near_seams(pixels.shape[:2], plan))
    assert changed.any() and not changed[~near].any()
    assert near.any() and not near.all()

    def at_borders(pixels):
        found = np.zeros(pixels.shape[:2], bool)
        found[: plan.halo], found[:, : plan.halo] = True, True
        return found

    assert not mask_tiles.tiled_twice(part, plan, at_borders)[0].any()


def test_an_image_to_try_has_seams_that_are_judged():
    for plan in (Plan(512, 144, 0, is_moved=False), Plan(96, 16, 16, is_moved=True)):
        _, near = mask_tiles.tiled_twice(
            np.zeros((*mask_tiles.SMALL, 3), np.uint8), plan, lambda pixels: np.zeros(pixels.shape[:2])
        )
        assert near.any() and not near.all()
