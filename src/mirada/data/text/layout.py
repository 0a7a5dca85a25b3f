"""Which files make a source of text, and which split each of them is, by their names.

    en_es_train.tsv.gz, en_es_dev.tsv.gz, en_es_test.tsv.gz     a table per split
    train.en, train.es, val.en, val.es                          parallel files, line by line
    a.txt, b.txt                                                plain text, in the order of the names

A word of a name such as train, dev, valid or test is its split; files that differ only in that word belong together.
In a folder, tables and parallel files go before plain text, unless the task is one of plain text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from mirada.data.table import SPLIT_NAMES, canonical_split
from mirada.data.text.column_names import LANGUAGES
from mirada.data.text.encoding import GZIP, is_gzip_name
from mirada.data.text.records import ending
from mirada.data.text.table import KIND_OF_TASK
from mirada.errors import MiradaError, nearest

TEXTS = (".txt", ".md")
TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
SIDES = {*LANGUAGES, "src", "tgt", "trg", "source", "target"}
_ABOUT = {"readme", "license", "licence", "copying", "changelog", "citation"}


class Part(NamedTuple):
    file: Path
    split: str | None = None
    target: Path | None = None  # the other side of a parallel file


@dataclass(frozen=True)
class Layout:
    kind: Literal["plain", "table", "parallel"]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_splits(self) -> bool:
        return len(self.parts) > 0 and all(part.split is not None for part in self.parts)


def layout_of_file(path: Path, task: str | None, *, is_alone: bool = False) -> Layout:
    """One file; with a training file come its val and test files, unless it `is_alone` (divided by a column)."""
    plain_task = task is not None and KIND_OF_TASK[task] == "plain"
    if ending(path) in TABLES:
        kind: Literal["plain", "table"] = "table"
    elif ending(path) in TEXTS or plain_task:
        kind = "plain" if task is None or plain_task else "table"  # pairs are also published as .txt with tabs
    else:
        others = [other.name for other in counterparts(path)]
        if len(others) == 1:
            layout = layout_of_parallel(path, others[0])
            return replace(layout, notes=(f"{path.name}: {others[0]} is its translation.", *layout.notes))
        hint = f"give data.target={others[0]} beside it" if others else f"expected {', '.join((*TEXTS, *TABLES))}"
        raise MiradaError(
            f"{path}: cannot tell what {ending(path) or 'this'} files hold; {hint}, or rename it to .txt."
        )
    files: dict[str | None, Path] = {None: path} if is_alone else _with_siblings(path)
    return Layout(kind, tuple(Part(file, split) for split, file in files.items()), _sibling_notes(path, files))


def layout_of_parallel(path: Path, target: str) -> Layout:
    """Two files; `target` is a path, a name beside the source, or what its name ends in ('es')."""
    choices = [
        Path(target),
        path.parent / target,
        *(p for p in counterparts(path) if ending(p)[1:] == target.strip(".")),
    ]
    other = next((choice for choice in choices if choice.is_file()), None)
    if other is None:
        names = [choice.name for choice in counterparts(path)]
        raise MiradaError(
            f"target {target!r}: there is no such file, nor {path.parent / target}{nearest(target, names)}."
        )
    if other.samefile(path):
        raise MiradaError(f"{path}: source and target are the same file; give the file of the other side as target.")
    sources, targets = _with_siblings(path), _with_siblings(other)
    files = {split: file for split, file in sources.items() if split in targets}
    parts = tuple(Part(file, split, targets[split]) for split, file in files.items())
    return Layout("parallel", parts or (Part(path, None, other),), _sibling_notes(path, files))


def layout_of_folder(folder: Path, task: str | None) -> Layout:
    """The one set of tables or parallel files of a folder, else its plain texts."""
    files = visible_files(folder)
    texts = plain_files(files)
    structured = [*_table_sets(files), *_parallel_sets(files, folder)]
    plain_task = task is not None and KIND_OF_TASK[task] == "plain"
    if texts and (plain_task or not structured):
        return _plain_layout(texts)
    divided = [layout for layout in structured if layout.has_splits]
    chosen = divided if len(divided) == 1 else structured
    if len(chosen) > 1:
        names = ", ".join(layout.parts[0].file.name for layout in chosen)
        raise MiradaError(f"{folder}: holds several data sets ({names}); give the file of one.")
    if not chosen:
        raise MiradaError(
            f"{folder}: no text here; expected .txt files, a folder of them for every class, tables "
            f"({', '.join(TABLES)}) or parallel files such as train.en and train.es."
        )
    layout = chosen[0]
    used = {file for part in layout.parts for file in (part.file, part.target)}
    unused = [file.name for file in (*texts, *(f for f in files if ending(f) in TABLES)) if file not in used]
    read = f"{folder}: {', '.join(file.name for file in sorted(filter(None, used)))} are read"
    note = f"{read}, not {', '.join(unused)}; give one of those by itself." if unused else f"{read}."
    return Layout(layout.kind, layout.parts, (*layout.notes, note))


def visible_files(folder: Path) -> list[Path]:
    try:
        return sorted(child for child in folder.iterdir() if child.is_file() and not child.name.startswith("."))
    except OSError as error:
        raise MiradaError(f"{folder}: the folder cannot be read ({error.strerror}).") from None


def plain_files(files: Sequence[Path]) -> list[Path]:
    """.txt files, or .md where there are none; not those that are about the folder."""
    for wanted in TEXTS:
        found = [file for file in files if ending(file) == wanted and file.name.split(".")[0].lower() not in _ABOUT]
        if found:
            return found
    return []


def counterparts(path: Path) -> list[Path]:
    """Files beside that differ only in how the name ends, where both endings may name a side: train.en, train.es."""
    if ending(path)[1:] not in SIDES or not path.parent.is_dir():
        return []
    return [
        other
        for other in visible_files(path.parent)
        if ending(other)[1:] in SIDES and ending(other) != ending(path) and _stem(other) == _stem(path)
    ]


def split_of(path: Path) -> str | None:
    """'val' of 'en_es_dev.tsv.gz'; a name may say several things, the first counts."""
    return next(filter(None, map(canonical_split, re.findall("[A-Za-z]+", _stem(path)))), None)


def _bare(path: Path) -> str:
    return path.name[: -len(GZIP)] if is_gzip_name(path) else path.name


def _stem(path: Path) -> str:
    return Path(_bare(path)).stem


def _family(path: Path) -> str:
    """The name with its split left open: equal for files that belong together."""
    open_stem = re.sub("[A-Za-z]+", lambda word: "*" if canonical_split(word[0]) else word[0], _stem(path))
    return open_stem + ending(path)


def _with_siblings(path: Path) -> dict[str | None, Path]:
    """By split, in order, the files that belong to a training file; any other file stays alone."""
    family = [file for file in visible_files(path.parent) if _family(file) == _family(path)]
    found: dict[str | None, Path] = {}
    if split_of(path) == "train":
        for split in SPLIT_NAMES:
            files = [path] if split == "train" else [file for file in family if split_of(file) == split]
            if len(files) > 1:
                raise MiradaError(f"{files[0]} and {files[1].name} are both {split}; remove or rename one of them.")
            if files:
                found[split] = files[0]
    return found if len(found) > 1 else {None: path}


def _sibling_notes(path: Path, files: dict[str | None, Path]) -> tuple[str, ...]:
    beside = [f"{file.name} ({split})" for split, file in files.items() if file != path]
    return (f"{path.name}: {' and '.join(beside)} beside it belong to it and are read too.",) if beside else ()


def _table_sets(files: Sequence[Path]) -> list[Layout]:
    families: dict[str, list[Path]] = {}
    for file in files:
        if ending(file) in TABLES:
            families.setdefault(_family(file), []).append(file)
    sets = []
    for family in families.values():
        training = [file for file in family if split_of(file) == "train"]
        if training or len(family) == 1:
            parts = _with_siblings((training or family)[0])
            sets.append(Layout("table", tuple(Part(file, split) for split, file in parts.items())))
    return sets


def _parallel_sets(files: Sequence[Path], folder: Path) -> list[Layout]:
    sides = sorted({ending(file) for file in files if counterparts(file)})
    if len(sides) > 2:
        raise MiradaError(
            f"{folder}: files in {len(sides)} languages ({', '.join(sides)}); give one file, and data.target."
        )
    sets, seen = [], set()
    for file in files:
        if sides and ending(file) == sides[0] and counterparts(file) and _family(file) not in seen:
            seen.add(_family(file))
            training = [f for f in files if _family(f) == _family(file) and split_of(f) == "train"]
            layout = layout_of_parallel(training[0] if training else file, sides[1])
            first, second = (side[1:] for side in sides)
            back = f"{_stem(file)}.{second} and data.target={first}"
            note = f"from {first} to {second}; for the other direction give {back}."
            sets.append(Layout("parallel", layout.parts, (note,)))
    return sets


def _plain_layout(texts: Sequence[Path]) -> Layout:
    splits = [split_of(file) for file in texts]
    if "train" not in splits or len({*splits} - {None}) < 2:
        note = f"{len(texts)} files are read as one text, in this order: {', '.join(file.name for file in texts[:5])}"
        more = (note + (", …" if len(texts) > 5 else "."),) if len(texts) > 1 else ()
        return Layout("plain", tuple(Part(file) for file in texts), more)
    parts = sorted(
        (Part(file, split) for file, split in zip(texts, splits, strict=True) if split is not None),
        key=lambda part: SPLIT_NAMES.index(part.split or ""),
    )
    others = [file.name for file, split in zip(texts, splits, strict=True) if split is None]
    note = f"{', '.join(others)} belong to no split and are not read, since other files are named after splits."
    return Layout("plain", tuple(parts), (note,) if others else ())
