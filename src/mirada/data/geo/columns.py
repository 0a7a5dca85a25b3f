"""Which column of a table of samples is what: by what the user says, else by its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mirada.data.geo.column_names import (
    DATES,
    DEGREES,
    MAP,
    NAMES,
    ROW_NUMBERS,
    TARGETS,
    YEARS,
    existing,
    listed,
    pair_of,
)
from mirada.data.geo.crs import LONLAT, is_degrees
from mirada.data.geo.numbers import Numbers, is_identifying, numbers_of, years_of
from mirada.data.tabular import SPLIT_NAMES, Columns, find_column, read_splits
from mirada.data.text.column_names import plain_name
from mirada.errors import MiradaError


@dataclass(frozen=True)
class PlotColumns:
    """Columns the user names; what is None is inferred. No covariates at all are ()."""

    target: str | None = None
    x: str | None = None
    y: str | None = None
    covariates: Sequence[str] | None = None
    split: str | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """What the columns hold besides the coordinates, before rows are left out."""

    target_name: str
    targets_N: np.ndarray  # float64, NaN where missing
    covariates: dict[str, np.ndarray]
    splits: np.ndarray | None
    names: tuple[str, ...] | None
    notes: tuple[str, ...]


def find_coordinates(columns: Iterable[str], choice: PlotColumns, crs: str | None, where: str) -> tuple[str, str, str]:
    """The columns that go to the east and to the north, and their CRS, which is never guessed from numbers."""
    columns = list(columns)
    degrees, metres = pair_of(columns, DEGREES), pair_of(columns, MAP)
    if choice.x or choice.y:
        if not (choice.x and choice.y):
            raise MiradaError(f"{where}: of x and y only one is given; name both columns.")
        pair = (existing(columns, choice.x, "x", where), existing(columns, choice.y, "y", where))
        if tuple(map(plain_name, pair))[::-1] in DEGREES:
            raise MiradaError(f"{where}: x is {pair[0]} and y is {pair[1]}, but longitude is x; exchange the two.")
    else:
        is_map = crs is not None and not is_degrees(crs)
        found = (metres or degrees) if is_map else (degrees or metres)
        if found is None:
            raise MiradaError(
                f"{where}: no coordinates among the columns {listed(columns)}; expected longitude and latitude, or "
                "name the columns by x and y and their crs."
            )
        pair = found
    if crs is None and (*map(plain_name, pair),) not in DEGREES:
        raise MiradaError(
            f"{where}: {pair[0]} and {pair[1]} say nothing about the crs they are in; "
            "give it, such as crs=EPSG:32613, or crs=EPSG:4326 for degrees."
        )
    return *pair, crs or LONLAT


def read_measured(columns: Columns, choice: PlotColumns, coordinates: Sequence[str], where: str) -> Measured:
    """Target, covariates, split and names; `coordinates` are columns that are none of these unless the user says so."""
    split = find_column(columns, choice.split, SPLIT_NAMES, "split", where)
    splits = read_splits(columns[split], where, required=choice.split is not None) if split else None
    pairs = [pair_of(columns, (names,)) for names in (*DEGREES, *MAP)]
    places = {*coordinates, *(name for pair in pairs if pair for name in pair)}
    numbers = {name: numbers_of(cells) for name, cells in columns.items()}
    identifiers = [name for name in columns if _is_identifier(name, numbers[name])]
    year = _year_column(columns, numbers)
    unused = {*places, *identifiers, *([split] if split else []), *([year] if year else [])}
    free = [name for name in columns if name not in unused and numbers[name].is_numeric]
    target = _target(columns, free, choice.target, where)
    _require_numbers(numbers[target], target, where)
    wanted = [name for name in columns if name != target and (name in free or name == year)]
    wanted = wanted if choice.covariates is None else list(choice.covariates)
    covariates = _covariates(columns, numbers, wanted, target, where)
    used = (target, *wanted, *coordinates, *([split] if splits is not None else []))
    left_out = [name for name in columns if name not in used]
    taken = f"covariates are {listed(wanted)}" if wanted else "there are no covariates"
    rest = f"; not used: {listed([name or 'a column without a name' for name in left_out])}" if left_out else ""
    note = f"{where}: the target is {target}, {taken}{rest}."
    return Measured(
        target, numbers[target].values_N, covariates, splits, _names(columns, numbers, identifiers), (note,)
    )


def read_known(columns: Columns, num_rows: int, covariates: Sequence[str], target: str | None, where: str) -> Measured:
    """What a trained model asks of every row: the covariates that it knows by name and, if it is judged, the target.

    Covariates that are no column are left out; so may be all columns, in a file of nothing but points.
    """
    numbers = {name: numbers_of(cells) for name, cells in columns.items()}
    column_of = {name: name for name in columns} | {"year": _year_column(columns, numbers)}
    wanted = [column for name in covariates if (column := column_of.get(name)) is not None]
    targets_N = np.full(num_rows, np.nan)
    if target is not None:
        _require_numbers(numbers[existing(columns, target, "target", where)], target, where)
        targets_N = numbers[target].values_N
    known = _covariates(columns, numbers, wanted, target, where)
    identifiers = [name for name in columns if _is_identifier(name, numbers[name])]
    return Measured(target or "", targets_N, known, None, _names(columns, numbers, identifiers), ())


def _covariates(
    columns: Columns, numbers: dict[str, Numbers], wanted: Sequence[str], target: str | None, where: str
) -> dict[str, np.ndarray]:
    """Columns of numbers by name; a year or a date becomes 'year'."""
    covariates = {}
    for name in wanted:
        if existing(columns, name, "covariates", where) == target:
            raise MiradaError(f"{where}: {target} is the target, so it cannot be a covariate; leave it out of one.")
        if plain_name(name) in DATES:
            covariates["year"] = years_of(columns[name])
        else:
            _require_numbers(numbers[name], name, where)
            covariates["year" if plain_name(name) in YEARS else name] = numbers[name].values_N
    return covariates


def _target(columns: Columns, free: Sequence[str], given: str | None, where: str) -> str:
    if given is not None:
        return existing(columns, given, "target", where)
    plausible = [name for name in free if plain_name(name) in TARGETS]
    found = plausible or free
    if len(found) == 1:
        return found[0]
    if not free:
        raise MiradaError(f"{where}: no column of numbers is left for the target among {listed(columns)}; add one.")
    which = "several could be" if plausible else "none says by its name that it is"
    raise MiradaError(f"{where}: of the columns {listed(found)}, {which} the target; give target.")


def _require_numbers(found: Numbers, name: str, where: str) -> None:
    if 2 * found.num_words > len(found.values_N) or not np.isfinite(found.values_N).any():
        held = f"text such as {found.word!r}" if found.num_words else "nothing"
        raise MiradaError(f"{where}: the column {name} holds {held}, expected numbers; name another column.")


def _is_identifier(name: str, found: Numbers) -> bool:
    is_called_so = (
        plain_name(name) in ROW_NUMBERS or plain_name(name).startswith("id") or plain_name(name).endswith("id")
    )
    return is_called_so and found.is_numeric and is_identifying(found.values_N)


def _year_column(columns: Columns, numbers: dict[str, Numbers]) -> str | None:
    by_plain_name = {plain_name(name): name for name in reversed(list(columns))}
    years = [by_plain_name[name] for name in YEARS if name in by_plain_name]
    dates = [by_plain_name[name] for name in DATES if name in by_plain_name]
    usable = [name for name in years if numbers[name].is_numeric]
    usable += [name for name in dates if np.isfinite(years_of(columns[name])).any()]
    return usable[0] if usable else None


def _names(columns: Columns, numbers: dict[str, Numbers], identifiers: Sequence[str]) -> tuple[str, ...] | None:
    """What the rows are called: unique identifiers, or unique names."""
    if identifiers:
        return tuple(str(int(value)) for value in numbers[identifiers[0]].values_N)
    for name, cells in columns.items():
        is_called_so = plain_name(name) in NAMES or (plain_name(name).endswith("id") and numbers[name].num_words > 0)
        if is_called_so and len(set(cells)) == len(cells):
            return tuple(cells)
    return None
