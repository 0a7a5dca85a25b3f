"""Data sets of Hugging Face that cannot be used, and the sentence that says why."""

from __future__ import annotations

import json

import pytest
from tests.data.hugging_face_files import (
    CLASSES,
    FEATURES,
    IMAGE,
    arrow_table,
    cells,
    images,
    parquet,
    save_to_disk,
    write_parquet,
)

from mirada.data import open_source
from mirada.data import packed as packing
from mirada.errors import MiradaError


@pytest.mark.parametrize(
    ("columns", "features", "options", "reason"),
    [
        ({"text": ["a", "b"], "label": [0, 1]}, {"label": CLASSES}, {}, "no column of images among text, label"),
        (
            {"image": cells([0, 1]), "mask": cells([2, 3]), "label": [0, 1]},
            {"image": IMAGE, "mask": IMAGE, "label": CLASSES},
            {},
            r"several columns of images \(image, mask\); say which with data.path_column=image",
        ),
        (
            {"image": cells([0, 1]), "width": [3, 4], "height": [5, 6]},
            {"image": IMAGE},
            {},
            "no column of labels among image, width, height; name it one of label, class",
        ),
        ({"image": cells([0, 1])}, {"image": IMAGE}, {}, "no column of labels among image"),
        (
            {"image": cells([0, 1]), "fine": [0, 1], "coarse": [0, 1]},
            {"image": IMAGE, "fine": CLASSES, "coarse": CLASSES},
            {},
            r"several columns of classes \(fine, coarse\); say which with data.label_column=fine",
        ),
        (images(0, 2, [0, 3]), FEATURES, {}, r"labels span 0..3 but there are 3 class names"),
        (images(0, 2, [-1, -1]), FEATURES, {}, "no image has a label in label"),
        (images(0, 2), FEATURES, {"label_column": "labl"}, "no column 'labl' .label."),
        (images(0, 2), FEATURES, {"path_column": "img"}, "no column 'img' .image."),
        (images(0, 2), FEATURES, {"task": "multi-label"}, "one class per image, so the task cannot be multi-label"),
        (images(0, 2), FEATURES, {"image_root": "."}, "image_root has no meaning"),
        (
            {"image": cells([0, 1]), "tags": [[0], [3]]},
            {"image": IMAGE, "tags": {"_type": "List", "feature": CLASSES}},
            {},
            r"row 2 has \[3\], expected numbers below 3",
        ),
        (
            {"sound": cells([0, 1]), "label": [0, 1]},
            {"sound": {"_type": "Audio"}, "label": CLASSES},
            {},
            "no column of images among sound, label",
        ),
    ],
)
def test_bad_columns(tmp_path, columns, features, options, reason):
    folder = save_to_disk(tmp_path / "saved", columns, features)
    file = write_parquet(tmp_path / "hub" / "data" / "train-00000-of-00001.parquet", columns, features)
    for source in (folder, file.parent.parent):
        with pytest.raises(MiradaError, match=reason):
            open_source(source, **options)


def test_unknown_split_names(saved, hub):
    (saved / "test").rename(saved / "extra")
    (saved / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation", "extra"]}))
    (hub / "data" / "test-00000-of-00001.parquet").rename(hub / "data" / "extra-00000-of-00001.parquet")
    for source in (saved, hub):
        with pytest.raises(MiradaError, match="the split 'extra' is neither train, validation nor test; rename it"):
            open_source(source)
    assert len(open_source(saved / "extra")) == 6


def test_several_configurations(tmp_path):
    for name in ("full", "small"):
        write_parquet(tmp_path / name / "train-00000-of-00001.parquet", images(0, 6))
    with pytest.raises(MiradaError, match=r"holds several data sets \(full, small\); give the folder of one"):
        open_source(tmp_path)
    assert len(open_source(tmp_path / "small")) == 6


def test_splits_that_do_not_fit_together(hub):
    file = hub / "data" / "test-00000-of-00001.parquet"
    other = {"names": ["ant", "bee"], "_type": "ClassLabel"}
    write_parquet(file, images(200, 6, [0, 1] * 3), {"image": IMAGE, "label": other})
    with pytest.raises(MiradaError, match=r"test-00000-of-00001\.parquet: its classes differ"):
        open_source(hub)
    write_parquet(file, {"photo": cells(range(6)), "label": [0] * 6}, {"photo": IMAGE, "label": CLASSES})
    with pytest.raises(MiradaError, match="has no column 'image', which other files have"):
        open_source(hub)


def test_damaged_files(saved, hub):
    arrow, shard = saved / "train" / "data-00000-of-00002.arrow", hub / "data" / "train-00000-of-00001.parquet"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n"
    for source, file in ((saved, arrow), (hub, shard)):
        whole = file.read_bytes()
        for content, reason in (
            (b"", f"{file.name}: not a readable"),
            (b"hello, this is no table", "not a readable"),
            (whole[: len(whole) // 2], "not a readable"),
            (pointer, "Git LFS pointer .* `git lfs pull`"),
        ):
            file.write_bytes(content)
            with pytest.raises(MiradaError, match=reason):
                open_source(source)


def test_incomplete_folders(saved):
    (saved / "train" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(MiradaError, match=r"data-00001-of-00002\.arrow is missing; copy the whole folder"):
        open_source(saved)
    (saved / "train" / "state.json").write_text(json.dumps({"_data_files": [], "_indices_files": ["i.arrow"]}))
    with pytest.raises(MiradaError, match="chosen by an index"):
        open_source(saved)
    for content in ("[]", "{"):
        (saved / "dataset_dict.json").write_text(content)
        with pytest.raises(MiradaError, match="copy the whole folder again"):
            open_source(saved)


def test_unreadable_description(tmp_path):
    table = arrow_table(images(0, 6), None).replace_schema_metadata({"huggingface": "{"})
    parquet.write_table(table, tmp_path / "train-00000-of-00001.parquet")
    with pytest.raises(MiradaError, match="what is written about its columns cannot be read"):
        open_source(tmp_path)


def test_without_pyarrow_it_is_said_what_to_install(saved, hub, monkeypatch):
    packing._open_version.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    for source in (saved, hub):
        with pytest.raises(MiradaError, match=r'needs pyarrow to be read; pip install "mirada\[parquet\]"'):
            open_source(source)
