"""Ready chips in an .npz archive: windows of pixels around points, what was measured there, and where.

chips       (N, C, H, W) or (N, H, W, C), H = W odd; NaN, or the number in `nodata`, where there is no data
target      (N,), also called y or targets
lonlat      (N, 2) of the middle pixels, or (N, 2, H, W) or (N, H, W, 2) of each; or lon and lat, (N,) or (N, H, W)
covariates  (N, D) with covariate_names, and year (N,), where there are any; band_names, layout and splits likewise
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mirada.data.geo.column_names import listed
from mirada.data.table import canonical_split
from mirada.errors import MiradaError

CHIPS = ("chips", "pixels", "patches", "images", "x")
TARGETS = ("target", "targets", "y")
LON, LAT = ("lon", "longitude"), ("lat", "latitude")


@dataclass(frozen=True, eq=False)
class ChipArchive:
    pixels_NCHW: np.ndarray  # float32, NaN = nodata
    lonlat_N2HW: np.ndarray  # float64
    band_names: tuple[str, ...]
    target_name: str
    targets_N: np.ndarray  # float64
    covariates: dict[str, np.ndarray]
    splits: np.ndarray | None
    notes: tuple[str, ...]


def is_chip_archive(path: Path) -> bool:
    """Whether an .npz holds chips and places, by the names of its arrays."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys = {key.lower() for key in archive.files}
    except Exception:  # a damaged zip raises zlib, struct, EOF and zipfile errors
        return False
    has_place = "lonlat" in keys or (not keys.isdisjoint(LON) and not keys.isdisjoint(LAT))
    return has_place and not keys.isdisjoint(CHIPS)


def read_chip_archive(path: Path, target: str | None, *, needs_target: bool = True) -> ChipArchive:
    """Without a target, where none is needed, targets are NaN."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except Exception as error:
        raise MiradaError(f"{path}: not a readable .npz archive of plain arrays ({error}).") from None
    chips = _key(arrays, CHIPS, None, path)
    pixels_NCHW = _as_nchw(arrays[chips].astype(np.float32), str(arrays.get("layout", "")), path, chips)
    if "nodata" in arrays:
        pixels_NCHW = np.where(pixels_NCHW == np.float32(arrays["nodata"]), np.float32(np.nan), pixels_NCHW)
    num, num_bands, height, width = pixels_NCHW.shape
    if height != width or height % 2 == 0:
        raise MiradaError(
            f"{path}: {chips} are {height} x {width} pixels, expected squares of odd size; cut them anew."
        )
    target, targets_N = _targets(arrays, target, num, path) if needs_target else ("", np.full(num, np.nan))
    lonlat_N2HW, notes = _places(arrays, (num, height, width), path)
    bands = tuple(map(str, arrays.get("band_names", [f"band{i + 1}" for i in range(num_bands)])))
    if len(bands) != num_bands:
        raise MiradaError(f"{path}: band_names has {len(bands)} names for {num_bands} bands in {chips}; name each.")
    covariates, splits = _covariates(arrays, num, path), _splits(arrays, num, path)
    return ChipArchive(pixels_NCHW, lonlat_N2HW, bands, target, targets_N, covariates, splits, notes)


def _targets(arrays: dict[str, np.ndarray], given: str | None, num: int, path: Path) -> tuple[str, np.ndarray]:
    key = _key(arrays, TARGETS, given, path)
    if arrays[key].shape not in ((num,), (num, 1)):
        raise MiradaError(f"{path}: {key} has shape {arrays[key].shape}, expected ({num},), one for each chip.")
    return key, arrays[key].reshape(num).astype(np.float64)


def _key(arrays: dict[str, np.ndarray], known: tuple[str, ...], given: str | None, path: Path) -> str:
    wanted = known if given is None else (given.lower(),)
    found = [key for key in arrays if key.lower() in wanted]
    if len(found) != 1:
        which = "several could be" if found else "none is"
        raise MiradaError(
            f"{path}: of the arrays {listed(found or arrays)}, {which} {' or '.join(wanted)}; name it so."
        )
    return found[0]


def _as_nchw(pixels: np.ndarray, layout: str, path: Path, key: str) -> np.ndarray:
    if pixels.ndim == 3:
        return pixels[:, None]
    if pixels.ndim != 4 or 0 in pixels.shape:
        raise MiradaError(f"{path}: {key} has shape {pixels.shape}, expected (N, C, H, W) or (N, H, W, C).")
    first, last = pixels.shape[2] == pixels.shape[3], pixels.shape[1] == pixels.shape[2]
    if layout.upper() not in ("NCHW", "NHWC"):
        if first == last and pixels.shape[1:] != (1, 1, 1):
            raise MiradaError(
                f"{path}: {key} has shape {pixels.shape}, from which one cannot tell where the bands are; "
                "add an array layout that says NCHW or NHWC."
            )
        layout = "NCHW" if first else "NHWC"
    return pixels if layout.upper() == "NCHW" else np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))


def _places(
    arrays: dict[str, np.ndarray], size: tuple[int, int, int], path: Path
) -> tuple[np.ndarray, tuple[str, ...]]:
    if "lonlat" in arrays:
        lonlat = arrays["lonlat"].astype(np.float64)
        if lonlat.shape == (*size, 2):
            lonlat = lonlat.transpose(0, 3, 1, 2)
    else:
        parts = [arrays[_key(arrays, names, None, path)].astype(np.float64) for names in (LON, LAT)]
        if parts[0].shape != parts[1].shape:
            raise MiradaError(f"{path}: lon has shape {parts[0].shape} but lat {parts[1].shape}, expected the same.")
        lonlat = np.stack(parts, axis=1)
    num, height, width = size
    if lonlat.shape == (num, 2, height, width):
        return lonlat, ()
    if lonlat.shape != (num, 2):
        raise MiradaError(
            f"{path}: the coordinates have shape {lonlat.shape}, expected a longitude and a latitude for each of "
            f"{num} chips or for each of their {height} x {width} pixels."
        )
    note = f"{path.name}: the archive says where the chips are, not where each pixel is: all share that of the middle."
    return np.broadcast_to(lonlat[:, :, None, None], (num, 2, height, width)), (note,) if height > 1 else ()


def _covariates(arrays: dict[str, np.ndarray], num: int, path: Path) -> dict[str, np.ndarray]:
    found = {}
    if "covariates" in arrays:
        values = arrays["covariates"].astype(np.float64)
        values = values[:, None] if values.ndim == 1 else values
        names = [
            str(name) for name in arrays.get("covariate_names", [f"covariate{i + 1}" for i in range(values.shape[1])])
        ]
        if values.shape != (num, len(names)):
            raise MiradaError(f"{path}: covariates has shape {values.shape}, expected ({num}, {len(names)}).")
        found = dict(zip(names, values.T, strict=True))
    if "year" in arrays:
        found["year"] = arrays["year"].reshape(-1).astype(np.float64)
    if any(len(values) != num for values in found.values()):
        raise MiradaError(f"{path}: year has {len(found['year'])} values, expected {num}.")
    return found


def _splits(arrays: dict[str, np.ndarray], num: int, path: Path) -> np.ndarray | None:
    key = next((key for key in ("splits", "split") if key in arrays), None)
    if key is None:
        return None
    splits = [canonical_split(str(name)) for name in arrays[key].tolist()]
    if None in splits or len(splits) != num:
        raise MiradaError(f"{path}: {key} must hold train, val or test for each of the {num} chips.")
    return np.array(splits)
