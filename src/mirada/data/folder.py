"""Folders of images: the class is the name of the folder."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from mirada.data.discover import find_images, folders_in, has_images, images_directly_in
from mirada.data.labels import clean_name, encode_names
from mirada.data.table import ImageTable, canonical_split
from mirada.errors import MiradaError


def read_folder(root: Path, source: str) -> ImageTable:
    """root/<class>/**/*.jpg, or root/<train|val|test>/<class>/**/*.jpg; a lone outer folder is stepped through."""
    notes: list[str] = []
    root = _step_through(root)
    divided = split_folders(root)
    paths: list[Path] = []
    names: list[str] = []
    splits: list[str] = []
    for split, folder in divided or [("", root)]:
        classes = [child for child in folders_in(folder) if has_images(child)]
        loose = images_directly_in(folder)
        if loose:
            notes.append(f"{folder}: {len(loose)} images outside any class folder are not used.")
        for child in classes:
            found = find_images(child)
            paths += found
            names += [clean_name(child.name)] * len(found)
            splits += [split] * len(found)
        empty = [child.name for child in folders_in(folder) if child not in classes]
        if empty and classes:
            notes.append(f"{folder}: folders without images are not used: {', '.join(empty)}.")
    if not paths:
        raise MiradaError(_nothing_found(root))
    labels = encode_names(names)
    return ImageTable(
        source=source,
        kind="folder",
        task="single-label",
        targets=labels.targets,
        class_names=labels.class_names,
        paths=tuple(map(str, paths)),
        splits=np.array(splits) if divided else None,
        notes=tuple(notes),
    )


def read_named_files(root: Path, pattern: str, source: str) -> ImageTable:
    """The class is in the file name: the first group of a regular expression on the name without extension.

    '(.+)_[0-9]+' reads 'beagle_12.jpg' as 'beagle'. Folders called train, val or test give the split.
    """
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise MiradaError(f"label_pattern {pattern!r} is not a regular expression ({error}).") from None
    if expression.groups < 1:
        raise MiradaError(
            f"label_pattern {pattern!r} has no group; put the class name in brackets, as in '(.+)_[0-9]+'."
        )
    paths = find_images(root)
    if not paths:
        raise MiradaError(_nothing_found(root))
    names = []
    for path in paths:
        match = expression.fullmatch(path.stem)
        if match is None:
            raise MiradaError(f"{path}: label_pattern {pattern!r} does not match this name; correct the pattern.")
        names.append(clean_name(match[1]))
    labels = encode_names(names)
    splits = [next(filter(None, map(canonical_split, path.relative_to(root).parts[:-1])), None) for path in paths]
    return ImageTable(
        source=source,
        kind="folder",
        task="single-label",
        targets=labels.targets,
        class_names=labels.class_names,
        paths=tuple(map(str, paths)),
        splits=None if None in splits or len(set(splits)) < 2 else np.array(splits),
    )


def _step_through(root: Path) -> Path:
    """photos/photos/<classes> is how archives unpack: go down while there is one folder that holds only folders."""
    while not images_directly_in(root):
        children = [child for child in folders_in(root) if has_images(child)]
        if len(children) != 1 or images_directly_in(children[0]):
            break
        if not [child for child in folders_in(children[0]) if has_images(child)]:
            break
        root = children[0]
    return root


def split_folders(root: Path) -> list[tuple[str, Path]]:
    """[('train', root/training), ('test', root/test)], or nothing unless there is train and one more."""
    found = [(canonical_split(child.name), child) for child in folders_in(root)]
    named = [(split, child) for split, child in found if split is not None]
    kinds = {split for split, _ in named}
    return named if "train" in kinds and len(kinds) > 1 else []


def _nothing_found(root: Path) -> str:
    loose = len(images_directly_in(root))
    if loose:
        return (
            f"{root}: {loose} images but no labels; put each class in a folder of its own, "
            "or add a labels.csv with the columns path and label."
        )
    return f"{root}: no images here; expected one folder per class with .jpg, .png, .tif or similar files in it."
