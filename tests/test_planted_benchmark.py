"""The benchmark of explanations: what is planted, the published faults, a run of a few steps, and the page."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import jobs, page_explain, planted, planted_measure, planted_pairs
from benchmarks.planted_data import CLASSES, SIDE, pairs, write_data
from benchmarks.planted_data import planted as plant
from benchmarks.planted_measure import Asked, Pairs, measure
from benchmarks.planted_published import column_normalised, published_gradient_rollout, weighed_in_reverse
from benchmarks.planted_table import TITLES, affordable, grouped, written
from PIL import Image

from mirada import systems
from mirada.compare.statistics import mean_over_seeds
from mirada.data.discover import find_images
from mirada.explain.faithfulness import is_above_half
from mirada.explain.image import explain_images
from mirada.explain.looks import Look, Tokens
from mirada.explain.methods import METHODS
from mirada.explain.sanity import rank_correlation
from mirada.verbs.stages import Watcher
from mirada.verbs.train import plan, what_was_said


@pytest.fixture(scope="module")
def made():
    return plant(600, 7)


def test_images_are_the_same_for_a_seed_and_the_first_of_more(made):
    fewer, other = plant(11, 7), plant(11, 8)
    for name in ("images_NHWC", "labels_NC", "classes_NHW"):
        assert np.array_equal(getattr(fewer, name), getattr(made, name)[:11])
        assert not np.array_equal(getattr(fewer, name), getattr(other, name))


def test_masks_hold_the_classes_that_are_labelled(made):
    there = np.stack([(made.classes_NHW == number + 1).any((1, 2)) for number in range(len(CLASSES))], axis=1)
    assert np.array_equal(there, made.labels_NC > 0)
    counts = made.labels_NC.sum(1)
    assert set(counts) == {1, 2}
    assert 0.65 < (counts == 2).mean() < 0.8
    assert made.labels_NC.sum(0).min() > 100


def test_an_object_has_two_colours_and_the_rest_of_the_image_has_not_its_texture(made):
    horizontal, vertical = (CLASSES.index(name) for name in ("horizontal", "vertical"))
    alone = made.labels_NC.sum(1) == 1
    for class_number, along in ((horizontal, 1), (vertical, 0)):
        for number in np.flatnonzero(alone & (made.labels_NC[:, class_number] > 0))[:5]:
            inside = made.classes_NHW[number] == class_number + 1
            both = inside & np.roll(inside, 1, along)
            steps = np.abs(np.diff(made.images_NHWC[number].astype(int), axis=along, prepend=0)).max(-1)
            across = np.abs(np.diff(made.images_NHWC[number].astype(int), axis=1 - along, prepend=0)).max(-1)
            inner = both & np.roll(inside, 1, 1 - along)
            assert np.median(steps[inner]) < 40  # noise, along a stripe
            assert (across[inner] > 60).mean() > 0.35  # every other pixel is the edge of a stripe


def test_pairs_are_of_different_images_and_their_classes(made):
    image, target = pairs(made.labels_NC, 240, 3)
    assert len(set(image)) == 240
    assert (made.labels_NC[image, target] == 1).all()
    mask = made.mask(image, target)
    assert mask.shape == (240, SIDE, SIDE)
    assert mask.any((1, 2)).all()
    assert 0.07 < mask.mean() < 0.13
    both = made.labels_NC[image].sum(1) == 2
    first = made.labels_NC[image].argmax(1) == target
    assert 0.35 < first[both].mean() < 0.65  # either of the two


def test_the_archive_is_read_as_it_is_meant(tmp_path):
    write_data(tmp_path / "planted.npz", 0, {"train": 13, "val": 5, "test": 7})
    said = what_was_said(tmp_path / "planted.npz", None, None, [*planted.OF_PLANTED, "train.steps=1"])
    config, prepared = plan(said, planted.PRESET, Watcher())
    assert prepared.describe()["task"] == "multi-label"
    assert prepared.describe()["class_names"] == list(CLASSES)
    arguments = config.system.arguments
    assert [arguments[name] for name in ("patch_size", "dim", "depth", "num_heads", "stem")] == [7, 64, 4, 4, "linear"]
    shape = {"image_size": (56, 56), "in_channels": 3, "num_classes": 6}
    model = systems.create("vit", None, **{**arguments, **shape, "pooling": "class"})
    assert sum(parameter.numel() for parameter in model.parameters()) == 214_150
    assert config.augment.strength == "none"
    assert config.baseline.name == "none"


def test_columns_are_divided_by_the_sums_of_rows():
    fused = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, 7.0], [0.0, 0.0, 0.0]]])  # 8 of 9 are dropped
    # (M + I)/2 has the row sums ½, 4 and ½; a fault-free norm would divide each row by its own.
    expected = torch.tensor([[[0.5 / 0.5, 0, 0], [0, 0.5 / 4, 3.5 / 0.5], [0, 0, 0.5 / 0.5]]])
    torch.testing.assert_close(column_normalised(fused), expected)


def test_the_first_number_is_never_dropped():
    fused = torch.ones(1, 3, 3).index_put((torch.tensor(0), torch.tensor(0), torch.tensor(0)), torch.tensor(0.1))
    assert column_normalised(fused)[0, 0, 0] > 0.5 / 1


def test_gradients_are_those_of_the_layer_from_the_other_end():
    tokens = Tokens((2,))
    weights, gradients = torch.rand(3, 1, 2, 2, 2), torch.rand(3, 1, 2, 2, 2)
    looks = [Look(str(n), weights[n], tokens, tokens, gradient_BHNM=gradients[n]) for n in range(3)]
    for found, a, g in zip(weighed_in_reverse(looks), weights, gradients.flip(0), strict=True):
        torch.testing.assert_close(found, (a * g).mean(1))


@pytest.fixture
def small() -> tuple[Asked, Pairs]:
    shape = {"image_size": (21, 35), "in_channels": 3, "num_classes": 5, "pooling": "mean", "stem": "linear"}
    model = systems.create("vit", **{**systems.card("vit").tiny, **shape, "patch_size": 7}).eval()
    mask = torch.zeros(3, 21, 35, dtype=torch.bool)
    mask[:, 3:12, 10:20] = True
    asked = Asked(model, lambda images: model(images).sigmoid(), is_above_half, (0.0, 0.0, 0.0))
    return asked, Pairs(torch.randn(3, 3, 21, 35), torch.tensor([0, 4, 2]), mask, torch.tensor([True, False, True]))


def test_every_method_and_reference_is_measured(small):
    found = measure(*small)
    assert list(found) == ["random", "centre", "oracle", *METHODS, *planted_measure.PUBLISHED]
    assert set(found) == set(TITLES)
    assert found["oracle"]["pointing"] == 1
    assert all(len(numbers) == 9 + ("sanity" in numbers) for numbers in found.values())
    assert all(np.isfinite(list(numbers.values())).all() for numbers in found.values())
    assert found["oracle"]["precision"] == max(numbers["precision"] for numbers in found.values())


def test_published_and_repaired_gradient_rollout_differ(small):
    asked, pairs_ = small
    published = published_gradient_rollout(asked.model, pairs_.images_BCHW, pairs_.target_B)
    ours = explain_images(asked.model, pairs_.images_BCHW, method="gradient_rollout", target=pairs_.target_B)
    assert published.shape == ours.relevance_BRC.shape == (3, 3, 5)
    assert rank_correlation(published, ours.relevance_BRC).max() < 0.99


@pytest.fixture
def places(tmp_path: Path, monkeypatch) -> Path:
    """Results and runs of their own, and no report is drawn."""
    monkeypatch.setattr(jobs, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(jobs, "RESULTS", tmp_path / "results")
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: None)
    return tmp_path


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.long
def test_it_is_tried_out_and_not_done_twice(places, capsys):
    run = partial(planted.main, ["--try", "1", "--seeds", "1", "--at-once", "1"])
    run()
    file = places / "runs" / "planted-try" / "planted.jsonl"
    found = lines_of(file)
    assert [(line["data"], line["pooling"], line["seed"]) for line in found] == [
        ("planted", "class", 1),
        ("planted", "mean", 1),
    ]
    assert found[0]["num_parameters"] == found[1]["num_parameters"] + 2 * 64  # the token and its place
    assert set(found[0]["cost"]) == {"1", "16"}
    assert set(found[0]["cost"]["1"]) == set(METHODS)
    assert not list((places / "runs").rglob("*.npz"))
    assert not (places / "results").exists()
    run()
    assert lines_of(file) == found
    assert "| Chefer relevance |" in capsys.readouterr().out


@pytest.mark.long
def test_measuring_again_takes_the_trained_model(places, monkeypatch):
    words = ["--try", "1", "--seeds", "0", "--at-once", "1"]
    monkeypatch.setattr(planted, "POOLINGS", ("mean",))
    planted.main(words)
    weights = {path: path.stat().st_mtime_ns for path in (places / "runs").rglob("model.safetensors")}
    planted.main([*words, "--again"])
    first, again = lines_of(places / "runs" / "planted-try" / "planted.jsonl")
    assert first["methods"] == again["methods"]
    assert weights == {path: path.stat().st_mtime_ns for path in weights}


@pytest.mark.long
def test_pets_are_explained_for_the_class_said_and_the_true_one(places, monkeypatch):
    generator, folder = np.random.default_rng(0), places / "runs" / "data"
    rows = ["path,label,split"]
    for split, number, breed in [(s, n, b) for s in ("train", "test") for n in range(6) for b in ("beagle", "siamese")]:
        for kind in ("images", "trimaps"):
            (folder / "pets" / split / kind).mkdir(parents=True, exist_ok=True)
        path = folder / "pets" / split / "images" / f"{breed}_{number}.jpg"
        Image.fromarray(generator.integers(0, 255, (50, 80, 3), np.uint8)).save(path)
        trimap = np.full((50, 80), 2, np.uint8)
        trimap[:25, :40] = 0 if number == 0 else 1  # the first has no animal
        Image.fromarray(trimap).save(path.parents[1] / "trimaps" / f"{path.stem}.png")
        rows.append(f"{path},{breed},{split}")
    (folder / "pets.csv").write_text("\n".join(rows) + "\n")
    assert len(find_images(folder / "pets" / "test" / "images")) == 12
    monkeypatch.setattr(planted, "require_pets", lambda: None)
    planted.main(["--real", "--try", "1", "--seeds", "0", "--at-once", "1"])
    (line,) = lines_of(places / "runs" / "planted-try" / "planted.jsonl")
    assert line["num_pairs"] == planted.TRIED_PAIRS
    assert line["object"] == pytest.approx(0.25)
    assert set(line["of_true_class"]) == set(line["methods"]) == set(TITLES)
    assert "pointing_shared" not in line["methods"]["chefer"]
    assert line["methods"]["rollout"] | {"sanity": 0} != line["methods"]["chefer"] | {"sanity": 0}


def test_an_animal_is_squashed_as_its_image(tmp_path):
    trimap = np.full((10, 30), 2, np.uint8)
    trimap[:5], trimap[:5, 20:] = 1, 3
    Image.fromarray(trimap).save(tmp_path / "a.png")
    mask = planted_pairs._animal(tmp_path / "a.png", (4, 6))
    assert mask.tolist() == [[True] * 4 + [False] * 2] * 2 + [[False] * 6] * 2


def line(pooling: str, seed: int, *, recipe: str = "a", gain: float = 0.0) -> dict:
    """Numbers that fall from one method to the next, in the order of TITLES."""

    def number(place: int) -> float:
        return 0.9 - 0.04 * place + 0.01 * seed + gain

    metrics = ("pointing", "pointing_shared", "energy", "precision", "mean_iou", "deletion", "insertion")
    methods = {name: dict.fromkeys((*metrics, "positive", "negative"), number(n)) for n, name in enumerate(TITLES)}
    for name in METHODS:
        methods[name]["sanity"] = -0.01
    cost = {name: [2.0 + place, 1.5 + place, 2.5 + place] for place, name in enumerate(METHODS)}
    machine = {"processor": "Abacus", "torch": "2.13"}
    job = {"data": "planted", "pooling": pooling, "seed": seed, "recipe": recipe, "num_pairs": 240, "shared": 0.72}
    return job | {
        "object": 0.1,
        "accuracy": 0.99,
        "methods": methods,
        "cost": {"1": cost, "16": cost},
        "machine": machine,
    }


def test_only_the_latest_recipe_and_measurement_count():
    old, first, again = line("mean", 0, recipe="old"), line("mean", 0, gain=-0.5), line("mean", 0)
    (group,) = grouped([old, line("mean", 1, recipe="old"), first, again])
    assert [job["seed"] for job in group.jobs] == [0]
    assert group.number("random", "energy").value == pytest.approx(0.9)


def test_intervals_are_over_seeds():
    (group,) = grouped([line("class", seed) for seed in range(3)])
    assert written(group.number("random", "pointing")) == "0.910 ± 0.025"  # 4.303 · 0.01 / √3
    assert group.number("random", "sanity") is None
    difference = group.difference("random", "centre", "precision")
    assert (difference.value, difference.low) == pytest.approx((0.04, 0.04))
    assert group.cost("rollout", 16) == (3.0, 2.5, 3.5)
    assert written(mean_over_seeds([-0.25])) == "−0.250"


def test_what_is_affordable_is_so_everywhere():
    lines = [line(pooling, seed) for pooling in ("class", "mean") for seed in range(2)]
    cheap = list(METHODS)[:5]  # costs 2, 3, … 6
    assert affordable(grouped(lines)) == cheap
    for job in lines[2:]:
        job["cost"]["16"] = {**job["cost"]["16"], cheap[1]: [6.1, 6.0, 6.2]}
    assert affordable(grouped(lines)) == [cheap[0], *cheap[2:]]


def test_the_page_has_both_tables_and_says_what_is_best(tmp_path):
    assert page_explain.explain_text(tmp_path) == ""
    lines = [line(pooling, seed) for pooling in ("class", "mean") for seed in range(3)]
    pets = [job | {"data": "pets", "of_true_class": job["methods"]} for job in lines[3:]]
    (tmp_path / "planted.jsonl").write_text("".join(json.dumps(job) + "\n" for job in [*lines, *pets]))
    text = page_explain.explain_text(tmp_path)
    best = TITLES[next(iter(METHODS))]
    assert f"{best} has the highest average precision (class 0.790 ± 0.025, mean 0.790 ± 0.025)" in text
    assert f"The default is {TITLES['chefer']}" in text
    assert "Read from a class token, all labels right in 99.0 % of test images" in text
    assert "| *random* | 0.910 ± 0.025 |" in text
    assert "2.0 (1.5–2.5) | 2.0 (1.5–2.5) |" in text
    assert "72 % of them beside an object of another class; the object is 10.0 %" in text
    assert "as published in class" in text
    assert "less than *random*, *centre of the image*." in text
    assert text.count("The true breed:") == 1
