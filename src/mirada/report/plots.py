"""The report of a run on plots: how well it does where nobody has been, where it errs, and what it rests on."""

from __future__ import annotations

import numpy as np

from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.numbers import scatter
from mirada.report.paired import columns
from mirada.report.plots_area import area_section
from mirada.report.plots_attention import attention_section
from mirada.report.plots_influence import importance_figure, location_effect
from mirada.report.plots_intervals import interval_section, own_bounds
from mirada.report.plots_maps import residual_map, split_map
from mirada.report.plots_opened import Opened, open_run_on_plots
from mirada.report.plots_schemes import COLUMNS, MEANING, gap_sentence, score_figure, score_table
from mirada.report.plots_validation import OURS, Validation, read_validation, title_of, why_not_validated
from mirada.report.style import Drawing
from mirada.report.wording import decimal, p_value

SIDES = {"train": "training", "val": "validation", "test": "test"}


def plot_section(run: Contents) -> dict:
    """All that the sections of the page say, with the sentences on what is missing."""
    validation = read_validation(run)
    section: dict = {"validation": None, "missing": None, "intervals": None, "importance": None}
    section |= {"split": None, "location": None, "attention": None, "area": None}
    section["own_bounds"] = own_bounds(run.result or {})
    if validation is None:
        section["missing"] = why_not_validated(run)
    else:
        section["validation"] = _validated(validation, run)
        section["intervals"] = interval_section(validation, run)
        section["importance"] = importance_figure(validation)
    section["scatters"] = _scatters(run, validation)
    section["residuals"] = _residuals(run, validation)
    return section | _of_plots(run, validation)


def _validated(validation: Validation, run: Contents) -> dict:
    return {
        "table": score_table(validation, run),
        "columns": [name.upper() if len(name) > 1 else name for name in COLUMNS],
        "drawing": score_figure(validation, run),
        "gap": gap_sentence(validation, run),
        "moran": [_moran_row(validation, run, name) for name in validation.models(validation.trusted)],
        "num_neighbours": validation.models(validation.trusted)[OURS]["moran"]["num_neighbours"],
        "meaning": [MEANING[scheme] for scheme in validation.schemes],
        "schemes": validation.schemes,
        "trusted": validation.trusted,
    }


def _moran_row(validation: Validation, run: Contents, model: str) -> dict:
    found = [validation.models(scheme)[model]["moran"] for scheme in validation.schemes]
    return {
        "name": title_of(model, run),
        "is_ours": model == OURS,
        "by_scheme": [f"{decimal(moran['value'])} ({p_value(moran['p'])})" for moran in found],
    }


def _scatters(run: Contents, validation: Validation | None) -> list[Drawing]:
    """What was said of plots that were held out: those of the split, and all of them, fold by fold."""
    name, words = run.data["target_name"], {"nouns": "plots", "truth": "measured"}
    drawings = []
    if run.predictions:
        target, predicted = (columns(run.predictions, word, [name])[:, 0] for word in ("target", "predicted"))
        side = f"{len(target):,} {SIDES.get(run.held_out, run.held_out)} plots"
        drawings.append(scatter("scatter", name, target, predicted, title=side, **words))
    if validation is not None and validation.rows:
        target, predicted = validation.columns(validation.trusted, "target", OURS)
        side = f"All {len(target):,} plots, {validation.trusted} folds"
        drawings.append(scatter("scatter-folds", name, target, predicted, title=side, **words))
    return drawings


def _residuals(run: Contents, validation: Validation | None) -> dict | None:
    """The map of residuals: of all plots by folds where there are some, else of the held-out ones."""
    name = run.data["target_name"]
    if validation is not None and validation.rows:
        lon, lat, target, predicted = validation.columns(validation.trusted, "longitude", "latitude", "target", OURS)
        said = f"All {len(target):,} plots, each predicted by a model of the {validation.trusted} folds without it."
    elif run.predictions and "longitude" in run.predictions[0]:
        lon, lat = (np.array([float(row[key]) for row in run.predictions]) for key in ("longitude", "latitude"))
        target, predicted = (columns(run.predictions, word, [name])[:, 0] for word in ("target", "predicted"))
        said = f"The {len(target):,} {SIDES.get(run.held_out, run.held_out)} plots."
    else:
        return None
    return {"drawing": residual_map(np.stack([lon, lat], axis=1), target - predicted, name), "said": said}


def _of_plots(run: Contents, validation: Validation | None) -> dict:
    """What takes the plots or the model themselves, each with a reason where it cannot be shown."""
    try:
        opened = open_run_on_plots(run)
    except MiradaError as error:
        reason = f"The plots of this run cannot be read again: {error}"
        return {"no_location": reason, "no_attention": reason, "no_area": _no_area(run, validation) or reason}
    found: dict = {"split": _split_map(opened), "no_location": None, "no_attention": None}
    try:
        found["location"] = location_effect(run, opened)
    except MiradaError as error:
        found["no_location"] = f"The effect of location is not shown: {error}"
    try:
        found["attention"] = attention_section(run, opened)
    except MiradaError as error:
        found["no_attention"] = f"No attention over plots is shown: {error}"
    found["no_area"] = _no_area(run, validation)
    if found["no_area"] is None:
        found["area"] = area_section(run, opened)
    return found


def _no_area(run: Contents, validation: Validation | None) -> str | None:
    if validation is None:
        return f"The area of applicability takes its threshold from the folds. {why_not_validated(run)}"
    if "no_applicability" in validation.summary:
        return str(validation.summary["no_applicability"])
    if not run.folder.applicability.exists():
        return f"{run.folder.applicability.name} is missing from the run, so the area cannot be shown."
    return None if run.predictions else "There are no predictions of held-out plots in this run."


def _split_map(opened: Opened) -> Drawing:
    rows = {name: opened.split.rows(side) for side, name in SIDES.items()}
    return split_map({name: opened.plots.lonlat_N2[chosen] for name, chosen in rows.items() if len(chosen)})
