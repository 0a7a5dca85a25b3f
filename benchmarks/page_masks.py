"""The section on large images in tiles of docs/measured.md: benchmarks/mask_tiles.py."""

from __future__ import annotations

from mirada.compare.outcome import markdown


def tiles_text(results: dict) -> str:
    if not results:
        return ""
    (height, width), machine = results["size"], results["machine"]
    lines = [
        {
            "system": f"`{name}`",
            "memory": f"{row['megabytes']:,} MB",
            "seconds": f"{row['seconds']:.1f}",
            "pixels per second": f"{row['pixels_per_second']:,}",
            "near a seam": _percent(row["share_near_seams"]),
            "changed near seams": _percent(row["changed_near_seams"]),
            "changed inside tiles": _percent(row["changed_inside"]),
        }
        for name, row in results["systems"].items()
    ]
    return (
        f"## Masks of a large image, in tiles\n\n`python benchmarks/mask_tiles.py`: an image of {width:,} × {height:,} "
        "pixels, a mosaic of microscope images of nuclei, by systems that learned them on tiles of 128 px for two "
        f"minutes; {machine['processor']}, torch {machine['torch']}. Memory is that of the process, libraries and "
        "image included. Changed are pixels that get another class if all tiles begin half a tile later: of those near "
        "a seam of either tiling, and of those inside tiles of both. What sees the border of the image is left out.\n\n"
    ) + markdown(lines)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
