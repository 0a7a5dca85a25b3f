"""An inspection of plots as text for a terminal."""

from __future__ import annotations

from mirada.data.check_text import sentences
from mirada.data.geo.check import PlotsInspection, Values

SHOWN = 24


def render_plots(found: PlotsInspection) -> str:
    """Counts and places, values, then problems and warnings."""
    west, south, east, north = found.extent
    median_km, most_km = found.neighbour_km
    spacing = "" if found.spacing is None else f"; spacing {found.spacing:.2f} (1 = random, less = clustered)"
    lines = [f"{found.source}: {found.num_rows:,} plots ({found.kind}), {found.target_name} to predict"]
    if list(found.split_counts) != ["all"]:
        lines.append("split     " + ", ".join(f"{name} {count:,}" for name, count in found.split_counts.items()))
    crs = found.crs if len(found.crs) < 40 else "a crs without a number"
    lines += [
        f"extent    {_degrees(west, 'EW')} to {_degrees(east, 'EW')}, {_degrees(south, 'NS')} to "
        f"{_degrees(north, 'NS')}, {found.area_km2:,.0f} km² ({crs})",
        f"nearest   {median_km:.3g} km to the next plot (median), 95 % within {most_km:.3g} km" + spacing,
        f"blocks    {found.num_blocks} of {found.block_km:g} km",
        f"repeated  {found.num_repeated:,} plots lie exactly where another one does",
    ]
    if found.bands:
        size = f"{found.chip_size} x {found.chip_size} pixels, {len(found.bands)} bands"
        lines.append(f"chips     {size}; {100 * found.incomplete_chips:.3g} % have pixels without data")
    target = found.target
    lines += ["", "target", _row(found.target_name, target, max(12, len(found.target_name)))]
    if target.zero:
        lines[-1] += f", zero in {100 * target.zero:.3g} %"
    for title, columns in (("covariates", found.covariates), ("bands", found.bands)):
        lines += _table(title, columns)
    lines += sentences(found.problems, found.warnings, found.notes)
    return "\n".join(lines if found.problems else [*lines, "", "ready to train"])


def _table(title: str, columns: dict[str, Values]) -> list[str]:
    if not columns:
        return []
    width = max(12, min(30, max(map(len, columns))))
    rows = [_row(name, values, width) for name, values in list(columns.items())[:SHOWN]]
    more = [f"  ... and {len(columns) - SHOWN} more"] if len(columns) > SHOWN else []
    return ["", f"{len(columns)} {title}", *rows, *more]


def _row(name: str, values: Values, width: int) -> str:
    middle = f"median {values.median:.4g}, mean {values.mean:.4g}, std {values.std:.3g}"
    missing = f", missing {100 * values.missing:.3g} %" if values.missing else ""
    return f"  {name[:30]:<{width}}  {values.least:.4g} .. {values.most:.4g}, {middle}{missing}"


def _degrees(angle: float, names: str) -> str:
    return f"{abs(angle):.2f}° {names[0] if angle >= 0 else names[1]}"
