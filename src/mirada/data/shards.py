"""Which files make a data set in the layouts of Hugging Face, and which split each belongs to.

saved/                                 datasets.save_to_disk of one Dataset
  state.json, dataset_info.json, data-00000-of-00002.arrow, …
saved/                                 … of a DatasetDict
  dataset_dict.json, train/…, test/…
beans/                                 a repository of the hub, or one of its configurations
  data/train-00000-of-00001.parquet, data/validation-00000-of-00001.parquet, …
beans/default/train/0000.parquet       the Parquet that the hub makes itself
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mirada.data.table import canonical_split
from mirada.errors import MiradaError

_SHARD = re.compile(r"(?P<split>.+?)-(?P<number>\d{5})-of-(?P<total>\d{5})(?:-[0-9a-f]+)?")


@dataclass(frozen=True)
class Shard:
    """One file, and the name of its split as it is written; '' where the source is a single one."""

    file: Path
    split: str = ""


def find_shards(source: Path, holds_images: Callable[[Path], bool]) -> list[Shard]:
    """The files of a source, in order, or none if it has another layout.

    `holds_images` says whether there are images in a Parquet file: one with a plain name may also be a table of paths.
    """
    if source.is_file():
        is_ours = source.suffix == ".arrow" or (source.suffix == ".parquet" and holds_images(source))
        return [Shard(source)] if is_ours else []
    if (source / "dataset_dict.json").exists():
        splits = _read(source / "dataset_dict.json").get("splits", [])
        return [Shard(shard.file, split) for split in splits for shard in _saved(source / split)]
    if (source / "state.json").exists():
        return _saved(source)
    arrows = sorted(source.glob("*.arrow"))
    if arrows:
        return [Shard(file, _split_name(file).rpartition("-")[2]) for file in arrows]
    return _parquet_shards(source, holds_images)


def missing_shards(shards: list[Shard]) -> list[str]:
    """Sentences about splits of which some files are not here, as the numbers in their names tell."""
    numbers: dict[tuple[str, int], set[int]] = {}
    for shard in shards:
        match = _SHARD.fullmatch(shard.file.stem)
        if match is not None:
            numbers.setdefault((shard.split or match["split"], int(match["total"])), set()).add(int(match["number"]))
    return [
        f"{split}: {len(found)} of its {total} files are here."
        for (split, total), found in numbers.items()
        if len(found) < total
    ]


def _saved(folder: Path) -> list[Shard]:
    """A Dataset as save_to_disk writes it."""
    state = _read(folder / "state.json")
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise MiradaError(f"{folder}: its rows are chosen by an index; load it and save it anew with `datasets`.")
    files = [folder / entry["filename"] for entry in state.get("_data_files", [])]
    absent = [file for file in files if not file.exists()]
    if absent or not files:
        raise MiradaError(f"{folder}: {absent[0].name if absent else 'its data'} is missing; copy the whole folder.")
    return [Shard(file) for file in files]


def _parquet_shards(source: Path, holds_images: Callable[[Path], bool]) -> list[Shard]:
    """Shards in the folder, in data/, in one configuration, or in folders named after splits."""
    configurations: dict[Path, list[Shard]] = {}
    for pattern in ("*.parquet", "*/*.parquet", "*/*/*.parquet"):
        for file in sorted(source.glob(pattern)):
            is_hidden = any(part.startswith(".") for part in file.relative_to(source).parts)
            if is_hidden or not (_SHARD.fullmatch(file.stem) or holds_images(file)):
                continue
            folder, split = file.parent, _split_name(file)
            if canonical_split(folder.name) is not None and folder != source:
                folder, split = folder.parent, folder.name
            configurations.setdefault(folder, []).append(Shard(file, split))
    if len(configurations) > 1:
        names = ", ".join(str(folder.relative_to(source)) for folder in configurations)
        raise MiradaError(f"{source}: holds several data sets ({names}); give the folder of one.")
    return next(iter(configurations.values()), [])


def _split_name(file: Path) -> str:
    match = _SHARD.fullmatch(file.stem)
    return match["split"] if match else file.stem


def _read(file: Path) -> dict:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise MiradaError(f"{file}: cannot be read as JSON ({error}); copy the whole folder again.") from None
    if not isinstance(content, dict):
        raise MiradaError(f"{file}: holds {type(content).__name__}, expected an object; copy the whole folder again.")
    return content
