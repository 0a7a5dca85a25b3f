"""Masks as files: a palette PNG or a GeoTIFF, an overlay, and polygons. Shape letters: H height, W width."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mirada.data.masks.classes import is_background
from mirada.errors import MiradaError
from mirada.tasks.mask_colours import coloured, palette_of
from mirada.train.files import write_atomically


def picture_of(mask_HW: np.ndarray, class_names: Sequence[str]) -> Image.Image:
    """The number of a class in every pixel, in the colours of the report."""
    image = Image.fromarray(mask_HW).convert("P")
    image.putpalette(palette_of(class_names))
    return image


def write_png(path: Path, mask_HW: np.ndarray, class_names: Sequence[str]) -> None:
    image = picture_of(mask_HW, class_names)
    write_atomically(path, lambda partial: image.save(partial, "PNG", optimize=True))


def write_overlay(path: Path, picture_HW3: np.ndarray, mask_HW: np.ndarray, class_names: Sequence[str]) -> None:
    image = Image.fromarray(coloured(picture_HW3, mask_HW, class_names))
    write_atomically(path, lambda partial: image.save(partial, "PNG"))


def write_geotiff(path: Path, mask_HW: np.ndarray, class_names: Sequence[str], profile: dict[str, Any]) -> None:
    """Where the image lies is kept; names and colours of classes go with it."""
    import rasterio

    colours = np.array(palette_of(class_names)).reshape(256, 3)
    layout = {"driver": "GTiff", "dtype": "uint8", "count": 1, "tiled": True, "compress": "deflate"}
    place = {key: profile[key] for key in ("crs", "transform")}

    def write(partial: Path) -> None:
        height, width = mask_HW.shape
        with rasterio.open(partial, "w", height=height, width=width, **layout, **place) as file:
            file.write(mask_HW, 1)
            file.write_colormap(1, {number: (*map(int, colour), 255) for number, colour in enumerate(colours)})
            file.update_tags(1, **{f"class_{number}": name for number, name in enumerate(class_names)})

    write_atomically(path, write)


def polygons_of(mask_HW: np.ndarray, class_names: Sequence[str], profile: dict[str, Any] | None) -> str:
    """GeoJSON, a feature for every connected region that is not background: in degrees where it is known where the
    image lies, in pixels (x to the right, y down) where it is not.
    """
    try:
        from rasterio.features import shapes
        from rasterio.transform import Affine
        from rasterio.warp import transform_geom
    except ImportError:
        raise MiradaError('polygons need rasterio; pip install "mirada[maps]".') from None
    is_object = np.isin(mask_HW, [number for number, name in enumerate(class_names) if not is_background(name)])
    crs = profile.get("crs") if profile else None
    transform = profile["transform"] if profile and crs else Affine.identity()
    features = []
    for geometry, number in shapes(mask_HW, mask=is_object, transform=transform):
        try:
            located = transform_geom(crs, "EPSG:4326", geometry, precision=7) if crs else geometry
        except Exception as error:  # GDAL's own kinds derive from nothing else
            reason = " ".join(str(error).split())
            raise MiradaError(f"its outlines cannot be given in degrees ({reason}); leave --polygons out.") from error
        properties = {"class": class_names[int(number)], "number": int(number)}
        features.append({"type": "Feature", "properties": properties, "geometry": located})
    return json.dumps({"type": "FeatureCollection", "features": features})
