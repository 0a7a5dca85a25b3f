"""`mirada segment`: masks of new images, as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mirada.data.decode import check_pixels, grey_from_integers, over_white
from mirada.data.resize import match_channels
from mirada.errors import MiradaError
from mirada.report.held_out import displayable
from mirada.train.files import write_text
from mirada.train.folder import RunFolder
from mirada.verbs.images import NamedImage, named_images, named_reason, pixels_of
from mirada.verbs.load import Trained
from mirada.verbs.masks.output import polygons_of, write_geotiff, write_overlay, write_png
from mirada.verbs.masks.trained import TrainedMasks, masks_run

Progress = Callable[[int, int], None]
GEOTIFFS = (".tif", ".tiff")


@dataclass(frozen=True)
class Segmented:
    """Of one image: its mask, the files that were written, and the share of each class; or why there is none."""

    name: str
    files: tuple[Path, ...]
    shares: dict[str, float]
    error: str | None = None


def segment(
    run: str | Path | RunFolder | Trained,
    images: object,
    out: str | Path,
    *,
    overlay: bool = False,
    polygons: bool = False,
    device: str = "auto",
    engine: str | None = None,
    progress: Progress | None = None,
) -> list[Segmented]:
    """Write the mask of every image to the folder `out`: name.png with the numbers of classes, in their colours.

    A GeoTIFF gives name.tif, which lies where the image lies. overlay: name-overlay.png too, the image under its mask.
    polygons: name.geojson too. engine: as of mirada.load. An image that cannot be read is told and stops no others.
    """
    trained = masks_run(run, device, engine)
    named = named_images(images)
    if not named:
        raise MiradaError("no images are given; give at least one file or folder.")
    _require_different_names([Path(image.name).stem for image in named])
    done = []
    for number, image in enumerate(named):
        try:
            done.append(_segment_one(trained, image, Path(out), overlay=overlay, polygons=polygons))
        except MiradaError as error:
            done.append(Segmented(image.name, (), {}, named_reason(image, error)))
        if progress is not None:
            progress(number + 1, len(named))
    if all(one.error for one in done):
        raise MiradaError(f"none of {len(done)} images has a mask; the first: {done[0].error}")
    return done


def _segment_one(trained: TrainedMasks, image: NamedImage, out: Path, *, overlay: bool, polygons: bool) -> Segmented:
    name, names, channels = image.name, trained.data["class_names"], trained.data["in_channels"]
    stem = out / Path(name).stem
    with georeferenced(name) as raster:
        if raster is not None and trained.data["fit"] == "tile" and not overlay:  # however large, never read whole
            pixels = None
            size = (raster.height, raster.width)
            mask_HW = trained.segment_windows(lambda rows, cols: _read(raster, rows, cols, channels), size)
        else:
            pixels = match_channels(
                pixels_of(image.content) if raster is None else _read(raster, None, None, channels), channels
            )
            mask_HW = trained.segment_pixels(pixels)
        profile = None if raster is None else raster.profile
    files = [stem.with_name(f"{stem.name}.png" if profile is None else f"{stem.name}.tif")]
    _require_not_an_image(files[0], name)
    outlines = polygons_of(mask_HW, names, profile) if polygons else None
    if profile is None:
        write_png(files[0], mask_HW, names)
    else:
        write_geotiff(files[0], mask_HW, names, profile)
    if overlay:
        assert pixels is not None
        files.append(stem.with_name(f"{stem.name}-overlay.png"))
        write_overlay(files[-1], displayable(pixels), mask_HW, names)
    if outlines is not None:
        files.append(stem.with_name(f"{stem.name}.geojson"))
        write_text(files[-1], outlines)
    return Segmented(name, tuple(files), trained.shares(mask_HW))


@contextmanager
def georeferenced(name: str) -> Iterator[Any]:
    """The opened raster of a TIFF that says where it lies; None of any other image."""
    if Path(name).suffix.lower() not in GEOTIFFS or not Path(name).exists():
        yield None
        return
    try:
        import rasterio
        from rasterio.errors import RasterioIOError
    except ImportError:
        yield None
        return
    try:
        raster = rasterio.open(name)
    except RasterioIOError:  # Pillow says why it is no image
        yield None
        return
    with raster:
        yield raster if raster.crs is not None else None


def _read(raster: Any, rows: tuple[int, int] | None, cols: tuple[int, int] | None, channels: int) -> np.ndarray:
    """uint8 (h, w, channels) of a window, or of all, treated as data/decode.py treats images."""
    from rasterio.enums import ColorInterp
    from rasterio.errors import RasterioError

    window = None if rows is None or cols is None else (rows, cols)
    try:
        if window is None:
            check_pixels(raster.height, raster.width)
        pixels = raster.read(window=window).transpose(1, 2, 0)
        if pixels.dtype != np.uint8:
            if pixels.dtype.kind not in "iu":
                raise ValueError(f"its bands are {pixels.dtype}, expected whole numbers of 8 or 16 bits")
            pixels = grey_from_integers(pixels)
    except (RasterioError, ValueError) as error:
        raise MiradaError(f"{raster.name}: cannot be read: {' '.join(str(error).split())}.") from error
    if pixels.shape[2] in (2, 4) and raster.colorinterp[-1] == ColorInterp.alpha:
        pixels = over_white(pixels)
    return match_channels(pixels, channels)


def _require_not_an_image(path: Path, name: str) -> None:
    if path.resolve() == Path(name).resolve():
        raise MiradaError(f"{path}: is the image itself; give another folder with --out.")


def _require_different_names(stems: list[str]) -> None:
    seen: set[str] = set()
    for stem in stems:
        if stem in seen:
            raise MiradaError(f"two images are called {stem}, so their masks would be one file; segment them apart.")
        seen.add(stem)
