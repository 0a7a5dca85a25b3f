"""Images and their masks, paired by name.

images/a.jpg, masks/a.png          also below train/, val/, test/, or with these below images/ and masks/
images/a.jpg, annotations/trimaps/a.png
a.jpg, a_mask.png                  side by side in one folder
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirada.data.discover import find_images, folders_in, has_images, images_directly_in
from mirada.data.folder import split_folders
from mirada.data.table import canonical_split
from mirada.errors import MiradaError

IMAGE_FOLDERS = ("images", "image", "imgs", "img", "photos", "inputs")
MASK_FOLDERS = (
    "masks",
    "mask",
    "trimaps",
    "annotations",
    "labels",
    "segmentations",
    "segmentation",
    "groundtruth",
    "gt",
)
MASK_ENDINGS = ("_mask", "-mask", "_masks", "_label", "_labels", "_seg", "_segmentation", "_gt")


@dataclass(frozen=True)
class Pair:
    image: Path
    mask: Path
    split: str | None


def find_pairs(root: Path) -> tuple[list[Pair], tuple[str, ...]] | None:
    """All pairs below a folder, and notes; None if the folder is not laid out so."""
    root = inner_folder(root)
    if both := _both_folders(root):
        return _paired(root, *both, split=None)
    divided = split_folders(root)
    if any(_both_folders(folder) for _, folder in divided):
        pairs: list[Pair] = []
        notes: list[str] = []
        for split, folder in divided:
            if (both := _both_folders(folder)) is None:
                notes.append(f"{folder}: is not used, as it has no folder of masks beside its images.")
                continue
            some, said = _paired(folder, *both, split=split)
            pairs += some
            notes += said
        return pairs, tuple(notes)
    return _side_by_side(root)


def inner_folder(root: Path) -> Path:
    """An archive often unpacks to one folder in a folder."""
    while _both_folders(root) is None and not images_directly_in(root):
        inside = [folder for folder in folders_in(root) if has_images(folder)]
        if len(inside) != 1 or inside[0].name.lower() in IMAGE_FOLDERS:
            break
        root = inside[0]
    return root


def _both_folders(root: Path) -> tuple[Path, Path] | None:
    folders = {folder.name.lower(): folder for folder in folders_in(root)}
    images = next((folders[name] for name in IMAGE_FOLDERS if name in folders), None)
    masks = next((folders[name] for name in MASK_FOLDERS if name in folders), None)
    return None if images is None or masks is None else (images, _inner_masks(masks, images))


def _inner_masks(masks: Path, images: Path) -> Path:
    """annotations/trimaps/, as Oxford Pets has them, where the images are not divided so."""
    inside = [folder for folder in folders_in(masks) if has_images(folder)]
    if len(inside) != 1 or images_directly_in(masks):
        return masks
    is_divided = inside[0].name.lower() in {folder.name.lower() for folder in folders_in(images)}
    return masks if is_divided else inside[0]


def _paired(root: Path, images: Path, masks: Path, split: str | None) -> tuple[list[Pair], tuple[str, ...]]:
    found = find_images(masks)
    mask_of = {_key(path, masks, is_mask=True): path for path in found} | {_key(path, masks): path for path in found}
    pairs, missing = [], []
    for image in find_images(images):
        mask = mask_of.get(_key(image, images))
        if mask is None:
            missing.append(image)
        else:
            pairs.append(Pair(image, mask, split or _split_of(image.relative_to(images))))
    if missing:
        raise MiradaError(
            f"{missing[0]}: has no mask in {masks} ({len(missing)} of {len(missing) + len(pairs)} images have none); "
            "give it one of the same name, or take the image away."
        )
    if not pairs:
        raise MiradaError(f"{images}: has no images, expected one for each mask in {masks}.")
    left = len(found) - len({pair.mask for pair in pairs})
    return pairs, ((f"{masks}: {left:,} masks without an image are not used.",) if left else ())


def _side_by_side(root: Path) -> tuple[list[Pair], tuple[str, ...]] | None:
    """a.jpg beside a_mask.png."""
    files = images_directly_in(root)
    masks = {_key(path, root, is_mask=True): path for path in files if _without_ending(path.stem) != path.stem}
    are_masks = set(masks.values())
    images = [path for path in files if path not in are_masks]
    if not masks or not any(_key(path, root) in masks for path in images):
        return None
    missing = [path for path in images if _key(path, root) not in masks]
    if missing:
        raise MiradaError(
            f"{missing[0]}: has no mask beside it ({len(missing)} of {len(images)} images have none); give it one "
            f"such as {missing[0].stem}_mask.png, or take the image away."
        )
    return [Pair(path, masks[_key(path, root)], None) for path in images], ()


def _key(path: Path, root: Path, is_mask: bool = False) -> str:
    stem = _without_ending(path.stem) if is_mask else path.stem
    return (path.relative_to(root).parent / stem).as_posix().lower()


def _without_ending(stem: str) -> str:
    ending = next((ending for ending in MASK_ENDINGS if stem.lower().endswith(ending)), "")
    return stem[: len(stem) - len(ending)] or stem


def _split_of(path: Path) -> str | None:
    return next(filter(None, map(canonical_split, path.parts[:-1])), None)
