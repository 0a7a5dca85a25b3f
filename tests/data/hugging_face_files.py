"""Data sets as Hugging Face's `datasets` saves them and as its hub keeps them, written with pyarrow alone."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from PIL import Image
from tests.data.conftest import noise

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

CELL = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
IMAGE = {"_type": "Image"}
CLASSES = {"names": ["zebra", "ant", " bee "], "_type": "ClassLabel"}
FEATURES = {"image": IMAGE, "label": CLASSES}


def png(seed: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(noise(seed)).save(stream, "PNG")
    return stream.getvalue()


def cells(seeds) -> list[dict]:
    return [{"bytes": png(seed), "path": f"{seed}.png"} for seed in seeds]


def arrow_table(columns: dict, features: dict | None):
    """As `datasets` types and describes it."""
    arrays = {
        name: pyarrow.array(values, CELL) if values and isinstance(values[0], dict) else pyarrow.array(values)
        for name, values in columns.items()
    }
    table = pyarrow.table(arrays)
    if features is None:
        return table
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def images(start: int, count: int, labels: list | None = None) -> dict:
    return {"image": cells(range(start, start + count)), "label": labels or [i % 3 for i in range(count)]}


def write_parquet(path: Path, columns: dict, features: dict | None = FEATURES, rows_per_group: int = 4) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow_table(columns, features), path, row_group_size=rows_per_group)
    return path


def save_to_disk(folder: Path, columns: dict, features: dict = FEATURES, shards: int = 1) -> Path:
    """One Dataset: streams of record batches, a list of them, and what is known of the columns."""
    folder.mkdir(parents=True)
    table = arrow_table(columns, features)
    names = [f"data-{number:05}-of-{shards:05}.arrow" for number in range(shards)]
    size = -(-len(table) // shards)
    for number, name in enumerate(names):
        with pyarrow.OSFile(str(folder / name), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(number * size, size), max_chunksize=3)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "f00", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


def write_saved(folder: Path) -> Path:
    """A DatasetDict of 12, 6 and 6 images, the training ones in two files."""
    save_to_disk(folder / "train", images(0, 12), shards=2)
    save_to_disk(folder / "validation", images(100, 6))
    save_to_disk(folder / "test", images(200, 6))
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation", "test"]}))
    return folder


def write_hub(folder: Path) -> Path:
    """The same as a repository of the hub."""
    for split, start, count in (("train", 0, 12), ("validation", 100, 6), ("test", 200, 6)):
        write_parquet(folder / "data" / f"{split}-00000-of-00001.parquet", images(start, count))
    (folder / "README.md").write_text("---\n---\n")
    return folder
