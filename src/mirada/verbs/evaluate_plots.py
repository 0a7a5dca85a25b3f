"""`mirada evaluate` of a model of plots: on the plots its run held out, or on others where the target is known."""

from __future__ import annotations

import time

import numpy as np
import torch

from mirada.config.load import resolve
from mirada.data.geo.blocks import blocks_of
from mirada.data.geo.plots import Plots
from mirada.errors import MiradaError
from mirada.verbs.maps.prepare import prepare_plots, reading_options
from mirada.verbs.maps.trained import TrainedPlots
from mirada.verbs.questions import require_other_data, require_own_data

READING = ("rasters", "crs", "x_column", "y_column", "label_column")
LEAST = 2  # plots that a score can be made of


def judge_plots(trained: TrainedPlots, source: str | None, given: dict) -> tuple[dict, list[dict], str]:
    """Numbers, a row per plot, and the side of the run's own split (empty for other data)."""
    plots, rows_N, side = _own(trained) if source is None else _other(trained, source, given)
    started = time.monotonic()
    outputs_NMT = trained.on(plots)
    seconds = time.monotonic() - started
    target = f"target_{trained.field.target_name}"
    lines = [
        {"name": plots.name(n), "row": int(row), target: float(f"{plots.targets_N[n]:.7g}"), **answer}
        for n, (row, answer) in enumerate(zip(rows_N, trained.described(plots, outputs_NMT), strict=True))
    ]
    targets_N = torch.from_numpy(plots.targets_N)
    result = {
        "source": source or f"{trained.data['source']} ({side} plots)",
        "inputs": "plots",
        "task": trained.data["task"],
        **trained.field.result(outputs_NMT, targets_N, blocks_of(plots, trained.data["block"])),
        "promised_inside": trained.certainty.coverage,
        "inside_interval": float(np.mean([line["low"] <= line[target] <= line["high"] for line in lines])),
        "seconds_per_image": seconds / len(lines),
        "broken": [],
    }
    return result, lines, side


def _own(trained: TrainedPlots) -> tuple[Plots, np.ndarray, str]:
    require_own_data(trained)
    config = trained.config
    prepared = prepare_plots(config.data, config.system.name, saved=trained.data).ready(config)
    assert prepared.split is not None
    rows_N = prepared.split.rows(prepared.held_out)
    return prepared.plots.subset(rows_N), rows_N, prepared.held_out


def _other(trained: TrainedPlots, source: str, given: dict) -> tuple[Plots, np.ndarray, str]:
    """All rows with a place and a target, read as the run read its plots but for what is said now."""
    said = given.get("data", {})
    unknown = sorted({*given} - {"data"}) or sorted(f"data.{key}" for key in said if key not in READING)
    if unknown:
        can = ", ".join(f"data.{key}" for key in READING)
        raise MiradaError(f"setting {unknown[0]!r} has no meaning for evaluating on plots; {can} have.")
    options = reading_options(resolve(given).data)
    target = options["target"] or trained.field.target_name
    reading = {name: options[name] for name in ("x", "y", "crs") if options[name] is not None}
    points = trained.points(source, options["rasters"] or None, target=target, **reading)
    require_other_data(points.plots.checksum(), trained, source)
    if len(points.plots) < LEAST:
        raise MiradaError(f"{source}: {len(points.plots)} plot is too few to measure on; give {LEAST} or more.")
    return points.plots, points.rows_N, ""
