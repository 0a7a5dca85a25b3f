"""Every way of storing labelled images, and every way of getting it wrong."""

import gzip
import os
import struct

import numpy as np
import pytest

from mirada.data import open_source
from mirada.errors import MiradaError


def write(path, text: str, encoding: str = "utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


# Folders


def test_folder_per_class(class_folders):
    table = open_source(class_folders)
    assert (table.kind, table.task, table.class_names, len(table)) == ("folder", "single-label", ("cat", "dog"), 12)
    assert table.targets.tolist() == [0] * 7 + [1] * 5
    assert table.splits is None
    assert table.read(0).shape == (11, 13, 3)
    assert table.label(11) == "dog"
    assert open_source(class_folders).checksum() == table.checksum()


def test_split_folders_by_any_of_their_names(tmp_path, png):
    for i, split in enumerate(("Training", "valid", "test")):
        png(tmp_path / split / "cat" / "1.png", i)
        png(tmp_path / split / "dog" / "deep" / "er" / "2.png", 10 + i)
    table = open_source(tmp_path)
    assert sorted(table.splits.tolist()) == ["test", "test", "train", "train", "val", "val"]
    assert table.class_names == ("cat", "dog")


def test_outer_folder_is_stepped_through(tmp_path, png):
    png(tmp_path / "photos" / "photos" / "cat" / "1.png", 0)
    png(tmp_path / "photos" / "photos" / "dog" / "1.png", 1)
    png(tmp_path / "__MACOSX" / "photos" / "1.png", 2)
    png(tmp_path / ".thumbnails" / "1.png", 2)
    assert open_source(tmp_path).class_names == ("cat", "dog")


def test_names_with_spaces_accents_and_signs(tmp_path, png):
    png(tmp_path / "cañón verde" / "años & más.PNG", 0)
    png(tmp_path / "日本" / "写真 1.png", 1)
    png(tmp_path / "e\u0301t\u00e9" / "a.png", 2)  # decomposed and composed accents in one name
    table = open_source(tmp_path)
    assert table.class_names == ("cañón verde", "\u00e9t\u00e9", "日本")
    assert [table.read(row).shape for row in range(3)] == [(11, 13, 3)] * 3


def test_loose_images_and_empty_class_folders_are_noted(class_folders, png):
    png(class_folders / "loose.png", 5)
    (class_folders / "empty").mkdir()
    table = open_source(class_folders)
    assert table.class_names == ("cat", "dog")
    assert any("1 images outside" in note for note in table.notes)
    assert any("empty" in note for note in table.notes)


def test_link_loops_end_and_do_not_mix_classes(class_folders):
    (class_folders / "cat" / "up").symlink_to(class_folders, target_is_directory=True)
    (class_folders / "again").symlink_to(class_folders, target_is_directory=True)
    (class_folders / "self").symlink_to(class_folders / "self")
    table = open_source(class_folders)
    assert table.class_names == ("cat", "dog")
    assert len(table) == 12


def test_class_folder_may_be_a_link(class_folders, tmp_path, png):
    png(tmp_path / "elsewhere" / "1.png", 50)
    (class_folders / "bird").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert open_source(class_folders).class_names == ("bird", "cat", "dog")


def test_class_from_the_file_name(tmp_path, png):
    for split in ("train", "test"):
        for name in ("old_cat_1", "old_cat_22", "dog_3"):
            png(tmp_path / split / "images" / f"{name}.png", 0)
    table = open_source(tmp_path, label_pattern="(.+)_[0-9]+")
    assert table.class_names == ("dog", "old_cat")
    assert set(table.splits) == {"train", "test"}
    for bad, reason in (("(.+)_[0-", "regular expression"), (".+", "no group"), ("(x)", "does not match")):
        with pytest.raises(MiradaError, match=reason):
            open_source(tmp_path, label_pattern=bad)


def test_empty_folder(tmp_path):
    with pytest.raises(MiradaError, match="no images here"):
        open_source(tmp_path)


def test_flat_folder_without_labels(tmp_path, png):
    png(tmp_path / "a.png", 0)
    with pytest.raises(MiradaError, match="1 images but no labels"):
        open_source(tmp_path)


def test_missing_source_and_unknown_kind(tmp_path):
    with pytest.raises(MiradaError, match="no such file or folder, nor a sample set"):
        open_source(tmp_path / "typo")
    with pytest.raises(MiradaError, match=r"cannot read \.docx"):
        open_source(write(tmp_path / "a.docx", "x"))
    with pytest.raises(MiradaError, match="task is 'ranking'"):
        open_source("digits", task="ranking")


# Tables


@pytest.fixture
def pictures(tmp_path, png):
    for i in range(6):
        png(tmp_path / "images" / f"p {i}.png", i)
    return tmp_path


def rows(cells, delimiter=",") -> str:
    return "\n".join(delimiter.join(map(str, row)) for row in cells) + "\n"


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.csv", ";"), ("t.tsv", "\t"), ("t.csv", "\t")])
def test_csv_with_relative_paths(pictures, name, delimiter):
    cells = [("Filename", "Class"), *((f"images/p {i}.png", "ab"[i % 2]) for i in range(6))]
    table = open_source(write(pictures / name, rows(cells, delimiter)))
    assert (table.kind, table.class_names, table.targets.tolist()) == ("table", ("a", "b"), [0, 1] * 3)
    assert table.read(5).shape == (11, 13, 3)


def test_labels_table_beside_or_above_the_images(pictures):
    write(pictures / "labels.csv", rows([("id", "label"), *((f"p {i}", i % 3) for i in range(6))]))
    table = open_source(pictures)  # names without folder and extension are looked up
    assert table.class_names == ("0", "1", "2")
    assert all(os.path.exists(path) for path in table.paths)


def test_tables_named_after_splits(pictures):
    for name, numbers in (("train", (0, 1, 2, 3)), ("test", (4, 5))):
        write(pictures / f"{name}.csv", rows([("path", "label"), *((f"images/p {i}.png", i % 2) for i in numbers)]))
    assert open_source(pictures).splits.tolist() == ["train"] * 4 + ["test"] * 2


def test_split_and_group_columns(pictures):
    cells = [("file", "y", "split", "patient")]
    cells += [
        (f"images/p {i}.png", "ab"[i % 2], ["train", "Validation", "test"][i % 3], f"P{i // 2}") for i in range(6)
    ]
    table = open_source(write(pictures / "t.csv", rows(cells)))
    assert table.splits.tolist() == ["train", "val", "test"] * 2
    assert table.groups.tolist() == [0, 0, 1, 1, 2, 2]


def test_no_header_byte_order_mark_and_windows_encoding(pictures):
    plain = [(f"images/p {i}.png", "ab"[i % 2]) for i in range(6)]
    assert len(open_source(write(pictures / "t.csv", rows(plain)))) == 6
    marked = write(pictures / "m.csv", rows([("path", "label"), *plain]), "utf-8-sig")
    assert open_source(marked).class_names == ("a", "b")
    cells = [("path", "label"), *((f"images/p {i}.png", ("año", "café")[i % 2]) for i in range(6))]
    assert open_source(write(pictures / "w.csv", rows(cells, ";"), "cp1252")).class_names == ("año", "café")


def test_multi_label_cells(pictures):
    cells = [("path", "labels"), *((f"images/p {i}.png", ["cat;dog", "dog|bird", ""][i % 3]) for i in range(6))]
    table = open_source(write(pictures / "t.csv", rows(cells)))
    assert (table.task, table.class_names) == ("multi-label", ("bird", "cat", "dog"))
    assert table.targets[:3].tolist() == [[0, 1, 1], [1, 0, 1], [0, 0, 0]]
    assert table.label(0) == "cat;dog"


def test_multi_label_and_one_hot_columns(pictures):
    several = [("path", "cat", "dog"), *((f"images/p {i}.png", 1, i % 2) for i in range(6))]
    table = open_source(write(pictures / "t.csv", rows(several)))
    assert (table.task, table.class_names, table.num_outputs) == ("multi-label", ("cat", "dog"), 2)
    one_hot = [("path", "cat", "dog"), *((f"images/p {i}.png", i % 2, 1 - i % 2) for i in range(6))]
    assert open_source(write(pictures / "o.csv", rows(one_hot))).task == "single-label"
    chosen = open_source(pictures / "o.csv", label_column=["dog", "cat"], task="multi-label")
    assert chosen.class_names == ("dog", "cat")


def test_regression(pictures):
    cells = [("path", "label"), *((f"images/p {i}.png", f"{i}.25") for i in range(6))]
    table = open_source(write(pictures / "t.csv", rows(cells)))
    assert (table.task, table.target_names, table.targets.shape) == ("regression", ("label",), (6, 1))
    comma = [("path", "label"), *((f"images/p {i}.png", f"{i},25") for i in range(6))]
    assert open_source(write(pictures / "c.csv", rows(comma, ";"))).targets[3, 0] == 3.25
    whole = [("path", "age", "size"), *((f"images/p {i}.png", i % 2, i) for i in range(6))]
    write(pictures / "w.csv", rows(whole))
    assert open_source(pictures / "w.csv", label_column="age").task == "single-label"
    assert open_source(pictures / "w.csv", label_column="age", task="regression").task == "regression"
    both = open_source(pictures / "w.csv", label_column=["age", "size"])
    assert (both.task, both.num_outputs) == ("regression", 2)


def test_spaces_and_number_formats_are_merged_case_is_not(pictures):
    labels = ["cat", "cat ", "Cat", "dog", " dog", "dog"]
    cells = [("path", "label"), *((f"images/p {i}.png", label) for i, label in enumerate(labels))]
    assert open_source(write(pictures / "t.csv", rows(cells))).class_names == ("Cat", "cat", "dog")
    cells = [("path", "label"), *((f"images/p {i}.png", ("1", "1.0", "10")[i % 3]) for i in range(6))]
    assert open_source(write(pictures / "n.csv", rows(cells))).class_names == ("1", "10")


def test_some_missing_paths_are_kept_and_noted(pictures):
    cells = [("path", "label"), *((f"images/p {i}.png", i % 2) for i in range(8))]
    table = open_source(write(pictures / "t.csv", rows(cells)))
    assert len(table) == 8
    assert "2 of 8 images do not exist (first: 'images/p 6.png', row 7)" in table.notes[0]


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("", {}, "the table is empty"),
        ("path,label\n", {}, "a header but no rows"),
        ("path,label\nnope.png,a\n", {}, "none of its 1 images exists"),
        ("path,label\nimages/p 0.png\n", {}, "row 2 has 1 cells, expected 2"),
        ("path,label\nimages/p 0.png,\n", {}, "1 rows have an empty 'label'"),
        ("path,label\n,a\n", {}, "row 1 has an empty path"),
        ("path,path\na.png,b\n", {}, "same name"),
        ("path,label\nimages/p 0.png,a\n", {"label_column": "labl"}, "no column 'labl' .label.; the columns are path"),
        ("path,label\nimages/p 0.png,a\n", {"path_column": "img"}, "no column 'img' .path."),
        ("path,height,weight\nimages/p 0.png,1,2\n", {}, "no label column among path, height, weight"),
        ("where,label\n???,a\n", {}, "no column of image paths among where, label"),
        ("path,label\nimages/p 0.png,tall\n", {"task": "regression"}, "'tall' in column 'label', row 1"),
        ("path,label\nimages/p 0.png,nan\n", {"task": "regression"}, "not a finite number"),
        ("path,label,part\nimages/p 0.png,a,x\n", {"split_column": "part"}, "split 'x' in row 1, expected train"),
        ("path,label\nimages/p 0.png,a\n", {"image_root": "nowhere"}, "no such folder"),
        ("path\0label", {}, "binary data"),
    ],
)
def test_bad_tables(pictures, text, options, reason):
    with pytest.raises(MiradaError, match=reason):
        open_source(write(pictures / "t.csv", text), **options)


def test_parquet_without_pyarrow_says_so(pictures, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MiradaError, match="needs pyarrow"):
        open_source(write(pictures / "t.parquet", "PAR1"))


def test_parquet(pictures):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"path": [f"images/p {i}.png" for i in range(6)], "label": [0, 1, 2] * 2}
    parquet.write_table(pyarrow.table(columns), pictures / "t.parquet")
    assert open_source(pictures / "t.parquet").class_names == ("0", "1", "2")


def test_column_options_need_a_table(class_folders):
    with pytest.raises(MiradaError, match="are for CSV"):
        open_source(class_folders, label_column="label")


# Arrays

X = np.random.default_rng(0).integers(0, 256, (6, 5, 7, 3), dtype=np.uint8)
Y = np.array([0, 1, 2] * 2)


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_npz(tmp_path):
    table = open_source(npz(tmp_path / "a.npz", x=X, y=Y))
    np.testing.assert_array_equal(table.pixels, X)
    assert (table.class_names, table.splits) == (("0", "1", "2"), None)
    grey = open_source(npz(tmp_path / "b.npz", images=X[..., 0], labels=Y[:, None], class_names=["a", "b", "c"]))
    assert (grey.pixels.shape, grey.class_names) == ((6, 5, 7, 1), ("a", "b", "c"))
    parts = {"x_train": X[:4], "y_train": Y[:4], "x_test": X[4:], "y_test": Y[4:]}
    assert open_source(npz(tmp_path / "c.npz", **parts)).splits.tolist() == ["train"] * 4 + ["test"] * 2
    medmnist = {"train_images": X, "train_labels": Y[:, None], "val_images": X, "val_labels": Y[:, None]}
    assert set(open_source(npz(tmp_path / "d.npz", **medmnist)).splits) == {"train", "val"}
    assert open_source(npz(tmp_path / "e.npz", x=X, y=Y.astype(str))).class_names == ("0", "1", "2")


def test_npz_number_types(tmp_path):
    for images in (X / 255, X.astype(np.float32), X.astype(np.int64), X.astype(np.uint16) * 257):
        np.testing.assert_array_equal(open_source(npz(tmp_path / "a.npz", x=images, y=Y)).pixels, X)
    first = X.transpose(0, 3, 1, 2)
    table = open_source(npz(tmp_path / "a.npz", x=first, y=Y))
    np.testing.assert_array_equal(table.pixels, X)
    assert "channels, height, width" in table.notes[0]


def test_npz_targets(tmp_path):
    assert open_source(npz(tmp_path / "a.npz", x=X, y=Y + 0.5)).task == "regression"
    assert open_source(npz(tmp_path / "a.npz", x=X, y=Y), task="regression").targets.shape == (6, 1)
    assert open_source(npz(tmp_path / "a.npz", x=X, y=np.eye(3)[Y])).targets.tolist() == Y.tolist()
    assert open_source(npz(tmp_path / "a.npz", x=X, y=np.ones((6, 4)))).task == "multi-label"


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x": X, "y": Y[:4]}, "6 images but y has 4 labels"),
        ({"x": X}, "expected x and y"),
        ({"x": X - 300.0, "y": Y}, "expected 0..1 or 0..255; undo"),
        ({"x": X * np.nan, "y": Y}, "span nan..nan"),
        ({"x": X.astype(str), "y": Y}, "images are <U"),
        ({"x": X[:, 0, 0], "y": Y}, "shape .6, 3., expected"),
        ({"x": X, "y": np.array([{}] * 6)}, "Python objects"),
        ({"x": X, "y": Y, "class_names": ["a", "b"]}, "span 0..2 but there are 2 class names"),
        ({"x": X, "y": Y * np.nan}, "NaN"),
        ({"x_train": X, "y_train": Y, "x_test": X[:, 1:], "y_test": Y}, "different shapes"),
    ],
)
def test_bad_npz(tmp_path, arrays, reason):
    with pytest.raises(MiradaError, match=reason):
        open_source(npz(tmp_path / "a.npz", **arrays))


def test_damaged_npz(tmp_path):
    whole = npz(tmp_path / "a.npz", x=X, y=Y).read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2]):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(MiradaError, match=r"not a readable \.npz"):
            open_source(tmp_path / "a.npz")


# IDX


def idx(path, array: np.ndarray):
    raw = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx(tmp_path, ending):
    for split, part in (("train", slice(0, 4)), ("t10k", slice(4, 6))):
        idx(tmp_path / f"{split}-images-idx3-ubyte{ending}", X[part, :, :, 0])
        idx(tmp_path / f"{split}-labels-idx1-ubyte{ending}", Y[part])
    for source in (tmp_path, tmp_path / f"train-images-idx3-ubyte{ending}"):
        table = open_source(source, class_names=["a", "b", "c"])
        np.testing.assert_array_equal(table.pixels[..., 0], X[..., 0])
        assert table.splits.tolist() == ["train"] * 4 + ["test"] * 2
        assert table.class_names == ("a", "b", "c")


def test_bad_idx(tmp_path):
    images, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    idx(images, X[..., 0])
    with pytest.raises(MiradaError, match="no labels file"):
        open_source(tmp_path)
    idx(labels, Y[:5])
    with pytest.raises(MiradaError, match="6 images but 5 labels"):
        open_source(tmp_path)
    for content, reason in (
        (images.read_bytes()[:-1], "209 bytes of data, expected 210"),
        (b"abcd", "not an IDX file"),
    ):
        images.write_bytes(content)
        with pytest.raises(MiradaError, match=reason):
            open_source(tmp_path)


# Samples and real data


def test_samples():
    digits = open_source("digits")
    assert digits.pixels.shape == (1797, 8, 8, 1)
    assert (digits.pixels.min(), digits.pixels.max(), digits.num_outputs) == (0, 255, 10)
    photos = open_source("photos")
    assert photos.pixels.shape == (520, 32, 32, 3)
    assert len(np.unique(photos.groups)) == 10


def test_cifar(real_data):
    table = open_source(real_data("images/cifar10_20k_5k.npz"))
    assert table.pixels.shape == (25000, 32, 32, 3)
    assert table.class_names[:2] == ("airplane", "automobile")
    assert (table.splits == "test").sum() == 5000


def test_fashion_mnist(real_data):
    table = open_source(real_data("images/fashion_mnist"))
    assert table.pixels.shape == (70000, 28, 28, 1)
    assert table.class_counts().tolist() == [7000] * 10
