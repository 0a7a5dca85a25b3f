"""What is said of plots as data: where they lie, what is known of them, how they were held out."""

from __future__ import annotations

from mirada.data.geo.read_plots import SETTING_OF_OPTION

HELD_OUT = {
    "blocked": "whole blocks on one side",
    "buffered": "whole blocks on one side, with training plots near them left out",
    "random": "plot by plot, so neighbours lie on both sides",
    "given": "as the data says",
}
HEADS = {
    "gaussian": "a mean and a variance (gaussian)",
    "count": "a number from 0 on (count)",
    "quantile": "quantiles",
    "rmse": "one number, by the root of the mean squared error, as in the paper",
}
MOST_NAMES = 30
# Settings that say nothing of a run on plots.
NOT_OF_PLOTS = {
    "data": (
        *("path_column", "group_column", "image_root", "label_pattern", "image_size", "fit", "on_broken", "workers"),
        *("memory_gb", "source_column", "target_column", "text_column", "target"),
    ),
    "train": ("label_smoothing", "class_weights", "balanced"),
}
SHORT_OF_MAPS = ("scheme", "block", "buffer_km", "folds", "schemes", "head", "scale", "coverage")


def short_settings(data: dict, maps: dict) -> dict[str, object]:
    """What the short command says of plots."""
    unused = () if data.get("rasters") else ("chip_size",)
    reading = {f"data.{key}": data.get(key) for key in SETTING_OF_OPTION.values() if key not in unused}
    return reading | {f"maps.{key}": maps.get(key) for key in SHORT_OF_MAPS}


def plot_rows(data: dict) -> list[tuple[str, str]]:
    lon, lat = data.get("center", (0.0, 0.0))
    around_km = 3**0.5 * data.get("extent_km", 0.0)  # what is saved is that of one of three axes
    side = data["chip_size"]
    return [
        ("Target", f"{data['target_name']}, {data['target_mean']:.4g} ± {data['target_std']:.4g} in training"),
        ("Predicted is", HEADS.get(data["head"], data["head"])),
        ("Coordinates", data["crs"]),
        ("Extent", f"{around_km:,.0f} km (root mean square) around {_degrees(lat, 'NS')}, {_degrees(lon, 'EW')}"),
        ("Blocks", f"{data.get('num_blocks', 0):,} with a side of {block_text(data['block'])}"),
        ("Held out", HELD_OUT.get(data["split"]["how"], data["split"]["how"])),
        ("Covariates", _named(data["covariate_names"])),
        ("Bands of rasters", _named(data["band_names"])),
        ("Seen around a plot", f"{side} × {side} pixels" if data["band_names"] else "the plot alone"),
    ]


def block_text(block: float | str) -> str:
    text = str(block).strip()
    return (
        f"{text.removesuffix('deg')}°" if text.endswith("deg") else f"{text.removesuffix('km').removesuffix('.0')} km"
    )


def _named(names: list[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{len(names)}: {', '.join(names[:MOST_NAMES])}{more}"


def _degrees(value: float, signs: str) -> str:
    return f"{abs(value):.4g}° {signs[0] if value >= 0 else signs[1]}"
