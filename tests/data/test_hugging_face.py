"""Data sets of Hugging Face: layouts, columns, images."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.data.conftest import noise
from tests.data.hugging_face_files import (
    CLASSES,
    FEATURES,
    IMAGE,
    arrow_table,
    cells,
    images,
    png,
    pyarrow,
    save_to_disk,
    write_parquet,
)

from mirada.data import decode_image, inspect, load_images, make_split, open_images, open_source, read_header
from mirada.data import packed as packing
from mirada.errors import MiradaError
from mirada.verbs.train import train


def pixels_of(table, split: str | None = None) -> list[bytes]:
    rows = range(len(table)) if split is None else np.flatnonzero(table.splits == split)
    return [table.read(row).tobytes() for row in rows]


# Layouts


def test_saved_splits(saved):
    table = open_source(saved)
    assert (table.task, table.class_names) == ("single-label", ("zebra", "ant", "bee"))
    assert table.targets.tolist() == [0, 1, 2] * 8
    assert table.splits.tolist() == ["train"] * 12 + ["val"] * 6 + ["test"] * 6
    assert pixels_of(table) == [noise(s).tobytes() for s in (*range(12), *range(100, 106), *range(200, 206))]
    assert table.name(7) == f"{saved}/train/data-00001-of-00002.arrow[1].image"
    assert table.notes == ()


def test_one_saved_data_set_is_left_to_be_divided(saved):
    table = open_source(saved / "train")
    assert (len(table), table.splits) == (12, None)
    assert len(open_source(saved / "train" / "data-00000-of-00002.arrow")) == 6


def test_hub(hub):
    table = open_source(hub)
    assert table.class_names == ("zebra", "ant", "bee")
    assert sorted(set(table.splits)) == ["test", "train", "val"]
    assert pixels_of(table, "train") == [noise(seed).tobytes() for seed in range(12)]
    assert pixels_of(table, "val") == [noise(seed).tobytes() for seed in range(100, 106)]
    assert len(open_source(hub / "data")) == 24
    assert open_source(hub / "data" / "train-00000-of-00001.parquet").splits is None


@pytest.mark.parametrize(
    "layout",
    [
        (
            "mnist/train-00000-of-00002.parquet",
            "mnist/train-00001-of-00002.parquet",
            "mnist/test-00000-of-00001.parquet",
        ),
        (
            "data/train-00000-of-00002-0a1b2c.parquet",
            "data/train-00001-of-00002-ff.parquet",
            "data/test-00000-of-00001.parquet",
        ),
        ("default/train/0000.parquet", "default/train/0001.parquet", "default/test/0000.parquet"),
        ("train/a.parquet", "train/b.parquet", "test/a.parquet"),
        ("train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "test.parquet"),
    ],
)
def test_other_places_of_the_hub(tmp_path, layout):
    for number, name in enumerate(layout):
        write_parquet(tmp_path / name, images(10 * number, 6))
    table = open_source(tmp_path)
    assert pixels_of(table, "train") == [noise(seed).tobytes() for seed in (*range(6), *range(10, 16))]
    assert (table.splits == "test").sum() == 6


def test_cache_of_datasets(tmp_path):
    for split in ("train", "test"):
        save_to_disk(tmp_path / split, images(0, 6))
        (tmp_path / split / "data-00000-of-00001.arrow").rename(tmp_path / f"beans-{split}.arrow")
    assert sorted(open_source(tmp_path).splits) == ["test"] * 6 + ["train"] * 6


def test_arrow_file_that_is_not_a_stream(tmp_path):
    table = arrow_table(images(0, 6), FEATURES)
    with pyarrow.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert pixels_of(open_source(tmp_path / "a.arrow")) == [noise(seed).tobytes() for seed in range(6)]


def test_plain_parquet_with_images_inside(tmp_path):
    columns = {
        "picture": [png(i) for i in range(6)],
        "class": ["ant", "bee"] * 3,
        "split": ["train", "val", "test"] * 2,
    }
    table = open_source(write_parquet(tmp_path / "mine.parquet", columns, None))
    assert (table.class_names, table.splits.tolist()) == (("ant", "bee"), ["train", "val", "test"] * 2)
    assert pixels_of(table) == [noise(seed).tobytes() for seed in range(6)]


def test_parquet_of_paths_is_still_a_table_of_paths(tmp_path, class_folders):
    paths = sorted(map(str, class_folders.rglob("*.png")))
    write_parquet(class_folders / "train.parquet", {"path": paths[:9], "label": [0, 1, 2] * 3}, None)
    write_parquet(class_folders / "test.parquet", {"path": paths[9:], "label": [0, 1, 2]}, None)
    table = open_source(class_folders)
    assert table.paths == tuple(paths)
    assert set(table.splits) == {"train", "test"}


def test_folder_of_images_with_an_unrelated_parquet(class_folders):
    (class_folders / "cat" / "notes.parquet").write_bytes(b"PAR1")
    assert len(open_source(class_folders)) == 12


# Labels


def test_class_names_keep_their_order_and_unused_ones_stay(tmp_path):
    table = open_source(write_parquet(tmp_path / "a.parquet", images(0, 6, [2, 0] * 3)))
    assert table.class_names == ("zebra", "ant", "bee")
    assert table.class_counts().tolist() == [3, 0, 3]
    assert open_source(tmp_path / "a.parquet", task="regression").targets[:, 0].tolist() == [2, 0] * 3


def test_rows_and_splits_without_labels_are_left_out_and_said(tmp_path):
    write_parquet(tmp_path / "train-00000-of-00001.parquet", images(0, 6, [0, 1, -1, None, 0, 1]))
    write_parquet(tmp_path / "test-00000-of-00002.parquet", images(10, 4, [-1] * 4))
    only = {"image": cells(range(20, 23))}
    write_parquet(tmp_path / "validation-00000-of-00001.parquet", only, {"image": IMAGE})
    table = open_source(tmp_path)
    assert pixels_of(table) == [noise(seed).tobytes() for seed in (0, 1, 4, 5)]
    assert table.splits is None
    assert set(table.notes) == {
        "train: 2 images without a label were left out.",
        "test: 4 images without a label were left out.",
        "validation: 3 images without a label were left out.",
        "test: 1 of its 2 files are here.",
    }


@pytest.mark.parametrize("wrapped", [{"_type": "Sequence"}, {"_type": "List"}])
def test_several_classes_per_image(tmp_path, wrapped):
    columns = {"image": cells(range(4)), "tags": [[0, 2], [], [1], [0]]}
    features = {"image": IMAGE, "tags": {"feature": CLASSES, **wrapped}}
    table = open_source(save_to_disk(tmp_path / "a", columns, features))
    assert (table.task, table.class_names) == ("multi-label", ("zebra", "ant", "bee"))
    assert table.targets.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 0, 0]]


def test_text_numbers_and_several_columns(tmp_path):
    columns = {
        "image": cells(range(6)),
        "label": ["b", "a"] * 3,
        "age": [0.5, 1.25, 2, 3, 4, 5],
        "x": [0, 1] * 3,
        "y": [1, 1] * 3,
        "patient": ["p", "q"] * 3,
    }
    file = write_parquet(tmp_path / "a.parquet", columns, {"image": IMAGE})
    table = open_source(file)
    assert (table.class_names, table.groups.tolist()) == (("a", "b"), [0, 1] * 3)
    assert open_source(file, label_column="age").task == "regression"
    several = open_source(file, label_column=["x", "y"])
    assert (several.task, several.class_names) == ("multi-label", ("x", "y"))


def test_chosen_image_column(tmp_path):
    columns = {"left": cells(range(4)), "right": cells(range(10, 14)), "fine": [0, 1] * 2, "coarse": [1, 2] * 2}
    features = {"left": IMAGE, "right": IMAGE, "fine": CLASSES, "coarse": CLASSES}
    file = write_parquet(tmp_path / "a.parquet", columns, features)
    table = open_source(file, path_column="right", label_column="coarse")
    assert pixels_of(table) == [noise(seed).tobytes() for seed in range(10, 14)]
    assert table.targets.tolist() == [1, 2, 1, 2]


# Reading


def test_images_may_also_lie_beside(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "1.png").write_bytes(png(1))
    beside = [{"bytes": None, "path": path} for path in ("pictures/1.png", "pictures/2.png", None)]
    file = write_parquet(tmp_path / "a.parquet", {"image": [*cells([0]), *beside], "label": [0, 1, 0, 1]})
    found = inspect(file)
    assert open_source(file).read(1).tobytes() == noise(1).tobytes()
    assert [image.reason for image in found.broken] == [
        f"{file}[2].image: cannot be decoded: it holds no image but the path 'pictures/2.png', where there is no file.",
        f"{file}[3].image: cannot be decoded: the cell is empty.",
    ]


def test_broken_images_are_named_and_left_out(tmp_path):
    columns = images(0, 6)
    columns["image"][1]["bytes"] = b"no image"
    columns["image"][2]["bytes"] = columns["image"][2]["bytes"][:-40]
    columns["image"][3]["bytes"] = b""
    store = load_images(open_source(save_to_disk(tmp_path / "a", columns)))
    assert [Path(image.name).name for image in store.broken] == [
        f"data-00000-of-00001.arrow[{row}].image" for row in (1, 2, 3)
    ]
    assert "not an image that can be read (it holds text)" in store.broken[0].reason
    assert "cannot be decoded" in store.broken[1].reason
    assert "the file is empty" in store.broken[2].reason
    assert len(store) == 3


def test_in_memory_and_streamed_images_are_the_same(hub):
    table = open_source(hub)
    memory, streamed = load_images(table), open_images(table, memory_limit=0, workers=2)
    rows = np.random.default_rng(0).permutation(len(table)).reshape(4, 6)
    for (ours, _), (theirs, _) in zip(
        memory.fetch([*map(_tensor, rows)]), streamed.fetch([*map(_tensor, rows)]), strict=True
    ):
        assert ours.equal(theirs)
    assert len(set(streamed.hashes())) == len(table)


def _tensor(rows):
    import torch

    return torch.from_numpy(rows)


def test_identical_images_are_recognised_and_stay_together(tmp_path):
    columns = images(0, 30)
    columns["image"][3:6] = columns["image"][0:3]
    table = open_source(write_parquet(tmp_path / "a.parquet", columns))
    assert len(inspect(table).duplicates) == 3
    split = make_split(table, hashes=open_images(table, memory_limit=0, workers=0).hashes())
    side = {row: name for name in ("train", "val", "test") for row in split.rows(name)}
    assert all(side[row] == side[row + 3] for row in range(3))


def test_addresses_are_paths(hub, tmp_path):
    path = f"{hub}/data/train-00000-of-00001.parquet[5].image"
    assert decode_image(path).tobytes() == noise(5).tobytes()
    assert read_header(Path(path)).format == "PNG"
    for wrong, reason in (("[12].image", "only 12 rows"), ("[0].photo", "no column 'photo', only image, label")):
        with pytest.raises(MiradaError, match=reason):
            decode_image(f"{hub}/data/train-00000-of-00001.parquet{wrong}")
    with pytest.raises(MiradaError, match="does not exist"):
        decode_image(tmp_path / "none.arrow[0].image")


def test_row_groups_are_forgotten_and_read_again(hub, monkeypatch):
    monkeypatch.setattr(packing, "KEPT_BYTES", 1)
    table = open_source(hub)
    order = np.random.default_rng(0).permutation(len(table))
    pixels = {row: table.read(row).tobytes() for row in order}
    assert [pixels[row] for row in range(len(table))] == pixels_of(table)
    assert len(packing._groups.kept) == 1


def test_row_group_that_would_fill_the_memory_is_refused(hub, monkeypatch):
    monkeypatch.setattr(packing, "LARGEST_GROUP", 10)
    monkeypatch.setattr(packing, "_groups", packing._Groups())
    with pytest.raises(MiradaError, match="write smaller ones"):
        open_source(hub).read(0)


def test_file_that_was_written_anew_is_read_anew(tmp_path):
    file = write_parquet(tmp_path / "a.parquet", images(0, 6))
    assert open_source(file).read(0).tobytes() == noise(0).tobytes()
    write_parquet(file, images(50, 7))
    table = open_source(file)
    assert (len(table), table.read(0).tobytes()) == (7, noise(50).tobytes())


def test_table_goes_to_other_processes_without_its_images(saved):
    table = open_source(saved)
    sent = pickle.dumps(table)
    assert len(sent) < 10_000
    assert pixels_of(pickle.loads(sent)) == pixels_of(table)


# Verbs


@pytest.mark.parametrize("layout", ["saved", "hub"])
@pytest.mark.long
def test_train_and_check(request, tmp_path, layout):
    source = request.getfixturevalue(layout)
    found = inspect(source)
    assert (found.num_images, found.problems, found.split_counts) == (24, (), {"train": 12, "val": 6, "test": 6})
    small = (
        "system.arguments.dim=16",
        "system.arguments.depth=1",
        "system.arguments.num_heads=2",
        "baseline.name=none",
    )
    settings = ("train.steps=2", "train.evaluations=1", "train.device=cpu", *small)
    run = train(source, settings=settings, out=tmp_path / "run")
    assert run.read_data()["class_names"] == ["zebra", "ant", "bee"]
    assert run.read_result()["n"] == 6
    assert "cannot be shown" not in run.report.read_text("utf-8")
