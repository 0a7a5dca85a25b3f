"""Names that columns of samples with a place go by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mirada.data.text.column_names import plain_name
from mirada.errors import MiradaError, nearest

DEGREES = (
    *(
        ("longitude", "latitude"),
        ("lon", "lat"),
        ("long", "lat"),
        ("lng", "lat"),
        ("decimal_longitude", "decimal_latitude"),
    ),
    *(("decimallongitude", "decimallatitude"), ("lon_dd", "lat_dd"), ("long_dd", "lat_dd")),
)
MAP = (
    *(("x", "y"), ("easting", "northing"), ("eastings", "northings"), ("x_coord", "y_coord"), ("coord_x", "coord_y")),
    *(("utm_x", "utm_y"), ("utm_easting", "utm_northing"), ("point_x", "point_y")),
)
TARGETS = (
    *("richness", "species_richness", "n_species", "num_species", "number_of_species", "target", "y", "value"),
    *("response", "abundance", "biomass", "count", "occurrence", "occ", "presence", "label"),
)
YEARS = ("year", "yr")
DATES = ("date", "eventdate", "event_date", "sampling_date", "survey_date", "date_of_recording")
ROW_NUMBERS = ("", "index", "unnamed:_0", "row")
NAMES = ("name", "plot", "plot_name", "site", "site_name", "station", "station_name")
SHOWN = 15


def pair_of(columns: Iterable[str], pairs: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """The first of the pairs of names that both are there, in any case."""
    by_plain_name = {plain_name(name): name for name in reversed(list(columns))}
    for first, second in pairs:
        if first in by_plain_name and second in by_plain_name:
            return by_plain_name[first], by_plain_name[second]
    return None


def listed(names: Iterable[str]) -> str:
    """For a message: the first of them, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def existing(columns: Iterable[str], name: str, role: str, where: str) -> str:
    """The column that the user named, which must be there."""
    if name not in columns:
        raise MiradaError(
            f"{where}: there is no column {name!r} ({role}){nearest(name, columns)}; the columns are {listed(columns)}."
        )
    return name
