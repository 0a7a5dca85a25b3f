"""What `inspect` finds, and how it says it."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from mirada.data import inspect, load_images, open_source, render, require_trainable
from mirada.data.suspicions import names_alike
from mirada.errors import MiradaError


def test_clean_folder(class_folders):
    found = inspect(class_folders)
    assert found.class_counts == {"cat": {"all": 7}, "dog": {"all": 5}}
    assert found.smallest == found.median == found.largest == (11, 13)
    assert (found.num_not_square, found.modes, found.channels, found.image_size) == (12, {"RGB": 12}, 3, (11, 13))
    assert found.problems == found.broken == found.duplicates == ()
    assert found.warnings == ("classes with fewer than 10 images: cat (7), dog (5).",)
    json.dumps(found.to_dict())
    text = render(found)
    assert "ready to train at 13 x 11" in text
    assert "2 classes" in text


def test_mixed_sizes_and_modes(tmp_path, png):
    png(tmp_path / "a" / "1.png", 0, 40, 60)
    png(tmp_path / "a" / "2.png", 1, 100, 80, 1)
    png(tmp_path / "b" / "3.png", 2, 50, 50, 4)
    png(tmp_path / "b" / "4.png", 3, 70, 90)
    Image.fromarray(np.zeros((64, 64), np.uint16)).save(tmp_path / "b" / "5.png")
    frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a" / "6.gif", save_all=True, append_images=frames[1:])
    found = inspect(tmp_path)
    assert (found.smallest, found.largest, found.num_sizes, found.num_not_square) == ((40, 60), (100, 80), 5, 3)
    assert (found.channels, found.animated, found.image_size) == (3, 1, (64, 64))
    text = " ".join(found.warnings)
    assert all(words in text for words in ("more than 8 bits", "laid over white", "animated"))
    assert load_images(open_source(tmp_path)).images.shape == (6, 3, 64, 64)


def test_broken_files_are_listed_and_skipped(class_folders):
    (class_folders / "cat" / "diary.jpg").write_text("dear diary")
    (class_folders / "dog" / "empty.png").touch()
    whole = (class_folders / "dog" / "0.png").read_bytes()
    (class_folders / "dog" / "cut.png").write_bytes(whole[: len(whole) // 2])
    found = inspect(class_folders)
    assert [broken.name.rsplit("/", 1)[1] for broken in found.broken] == ["diary.jpg", "cut.png", "empty.png"]
    assert "it holds text" in found.broken[0].reason
    assert found.warnings[0] == "3 images cannot be read and would be left out."
    assert "cannot be read (3)" in render(found)
    table = open_source(class_folders)
    loaded = load_images(table)
    assert (len(loaded), len(loaded.table), len(loaded.broken)) == (12, 12, 3)
    np.testing.assert_array_equal(loaded.images[0].permute(1, 2, 0), loaded.table.read(0))
    with pytest.raises(MiradaError, match=r"diary\.jpg"):
        load_images(table, on_broken="error")


def test_mostly_broken_is_an_error(tmp_path, png):
    png(tmp_path / "a" / "1.png", 0)
    for i in range(3):
        (tmp_path / "a" / f"x{i}.png").write_text("no")
    with pytest.raises(MiradaError, match="3 of 4 images cannot be used"):
        load_images(open_source(tmp_path))


def test_duplicates_leaks_and_conflicts(tmp_path, png):
    for seed in range(12):
        png(tmp_path / ("train", "test")[seed // 6] / ("cat", "dog")[seed // 3 % 2] / f"{seed % 3}.png", seed)
    original = tmp_path / "train" / "cat" / "0.png"
    shutil.copy(original, tmp_path / "train" / "cat" / "copy.png")
    Image.open(original).save(tmp_path / "test" / "cat" / "same pixels.bmp")
    shutil.copy(tmp_path / "train" / "dog" / "1.png", tmp_path / "train" / "cat" / "wrong.png")
    found = inspect(tmp_path)
    assert sorted(map(len, found.duplicates)) == [2, 3]
    assert [len(group) for group in found.leaks] == [3]
    assert [sorted(name.rsplit("/", 1)[1] for name in group) for group in found.conflicts] == [["1.png", "wrong.png"]]
    assert found.split_counts == {"train": 8, "val": 0, "test": 7}
    assert "1 images appear in more than one split, which flatters the result." in found.warnings


def test_near_duplicates(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    ramp = np.add.outer(np.sin(np.arange(96) / 9), np.cos(np.arange(96) / 7))
    picture = Image.fromarray(((ramp + 2) * 63).astype(np.uint8))
    picture.save(tmp_path / "a" / "1.png")
    picture.resize((70, 70)).save(tmp_path / "a" / "2.jpg", quality=80)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (96, 96), dtype=np.uint8)).save(tmp_path / "b" / "3.png")
    assert inspect(tmp_path).near_duplicates is None
    (pair,) = inspect(tmp_path, near_duplicates=True).near_duplicates
    assert [name.rsplit("/", 1)[1] for name in pair] == ["1.png", "2.jpg"]


def test_names_that_differ_only_in_spelling(tmp_path, png):
    for i, name in enumerate(("Cat", "cat", "polar bear", "polar_bear", "dog")):
        png(tmp_path / f"{name}" / "1.png", i)
        png(tmp_path / f"{name}" / "2.png", 10 + i)
    warnings = inspect(tmp_path).warnings
    assert sum("differ only in spelling" in warning for warning in warnings) == 2
    assert names_alike(["a", "b", "B"]) == [("b", "B")]


def test_imbalance_and_unseen_classes(tmp_path, png):
    for i in range(60):
        png(tmp_path / "train" / "many" / f"{i}.png", i, 8, 8)
    for i in range(10):
        png(tmp_path / "train" / "few" / f"{i}.png", 100 + i, 8, 8)
        png(tmp_path / "test" / "new" / f"{i}.png", 200 + i, 8, 8)
    warnings = " ".join(inspect(tmp_path).warnings)
    assert "6 times the images" in warnings
    assert "classes without training images: new" in warnings


def test_problems_stop_training(tmp_path, png):
    png(tmp_path / "only" / "1.png", 0)
    assert "only one usable image" in inspect(tmp_path).problems[0]
    png(tmp_path / "only" / "2.png", 1)
    found = inspect(tmp_path)
    assert "only one class ('only')" in found.problems[0]
    assert "ready to train" not in render(found)
    with pytest.raises(MiradaError, match="only one class"):
        require_trainable(open_source(tmp_path))
    for path in (tmp_path / "only").iterdir():
        path.write_text("broken")
    found = inspect(tmp_path)
    assert "none of the 2 images can be read" in found.problems[0]
    render(found)


def test_one_image_per_class_is_a_problem(tmp_path, png):
    png(tmp_path / "a" / "1.png", 0)
    png(tmp_path / "b" / "1.png", 1)
    assert "single image" in inspect(tmp_path).problems[0]


def test_bands_must_agree(tmp_path):
    for name, bands in (("a", 6), ("b", 5)):
        (tmp_path / name).mkdir()
        for i in range(2):
            np.save(tmp_path / name / f"{i}.npy", np.zeros((8, 8, bands), np.uint8))
    assert "with [5, 6] bands" in inspect(tmp_path).problems[0]
    shutil.rmtree(tmp_path / "b")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert inspect(tmp_path).channels == 6
    assert load_images(open_source(tmp_path)).images.shape == (4, 6, 8, 8)


def test_progress_is_reported(class_folders):
    seen = []
    inspect(class_folders, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i + 1, 12) for i in range(12)]


def test_digits_and_regression():
    assert inspect("digits").problems == ()
    table = open_source("digits")
    targets = np.arange(len(table), dtype=np.float32)[:, None]
    heights = replace(table, task="regression", targets=targets, class_names=(), target_names=("height",))
    found = inspect(heights)
    assert found.target_ranges == {"height": (0.0, 898.0, 1796.0)}
    assert "height: 0 .. 1796" in render(found)
    constant = replace(heights, targets=np.zeros_like(targets))
    assert "same for all images: height" in inspect(constant).problems[0]


def test_real_photos_of_cifar_have_no_exact_leak(real_data):
    found = inspect(real_data("images/cifar10_20k_5k.npz"))
    assert (found.num_images, found.image_size, found.problems) == (25000, (32, 32), ())
