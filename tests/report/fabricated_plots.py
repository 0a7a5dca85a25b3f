"""Folders of runs on plots, with made-up answers: plots, splits, folds and the model are real, nothing is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from mirada import systems
from mirada.config.load import dump_config, resolve
from mirada.data.geo.splits import folds_of
from mirada.tasks.applicability import Applicability
from mirada.tasks.layers import middle_pixel
from mirada.train.checkpoint import describe_model, save_tensors
from mirada.train.files import write_json, write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.verbs.maps.among import AmongPlots
from mirada.verbs.maps.prepare import PreparedPlots, prepare_plots
from mirada.verbs.maps.validate import MODELS, summary
from tests.places import scattered, write_csv

NUM_PLOTS = 211
TARGET, COVARIATE = "species <b>$x$</b>", "rain & <i>snow</i>"
TINY = {"dim": 8, "depth": 1, "num_heads": 2, "members": 2, "dropout": 0.0}
NOISE = {"model": 6.0, "knn": 14.0, "random_forest": 10.0, "gradient_boosting": 12.0}
SCHEME_NOISE = {"random": 0.3, "blocked": 1.0, "buffered": 1.1}


def plots_run(path: Path, *, schemes=("random", "blocked", "buffered"), noise: dict[str, float] = NOISE) -> RunFolder:
    """Plots on both sides of the antimeridian; without schemes there is no validation."""
    settings: dict = {"data": {"source": str(write_plots(path.parent)), "label_column": TARGET}}
    settings["system"] = {"name": "spatioformer", "size": None, "arguments": TINY}
    settings["maps"] = {"block": 300, "folds": 3 if schemes else 0, "schemes": list(schemes) or ["blocked"]}
    config = resolve({**settings, "preset": "maps", "train": {"steps": 30}, "baseline": {"name": "none"}})
    prepared = prepare_plots(config.data, "spatioformer").ready(config)
    folder = RunFolder(path)
    write_text(folder.config, dump_config(config))
    write_json(folder.data, prepared.describe())
    _write_model(folder, prepared)
    _write_answers(folder, prepared)
    if schemes:
        _write_validation(folder, prepared, schemes, noise)
    return folder


def write_plots(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lonlat, generator = scattered(NUM_PLOTS, west=168, south=-47, width=24, height=13), np.random.default_rng(3)
    rain, elev = generator.normal(size=(2, NUM_PLOTS))
    species = np.maximum(0, 40 + 15 * rain + 2 * (lonlat[:, 1] + 40) + 4 * generator.normal(size=NUM_PLOTS)).round()
    columns = {"site": [f"<u>site {n}</u>" for n in range(NUM_PLOTS)], "longitude": lonlat[:, 0].round(4)}
    columns |= {"latitude": lonlat[:, 1].round(4), TARGET: species, COVARIATE: rain.round(4), "elev": elev.round(4)}
    return write_csv(folder / "plots.csv", columns)


def _write_model(folder: RunFolder, prepared: PreparedPlots) -> None:
    torch.manual_seed(0)
    arguments = {**TINY, **prepared.arguments()}
    model = systems.create("spatioformer", **arguments)
    attached = prepared.attached(model, torch.device("cpu")).eval()
    assert isinstance(attached, AmongPlots)
    attached.remember_all()
    describe_model(folder.best / "model.json", "spatioformer", None, arguments, 1234)
    save_tensors(folder.best / "model.safetensors", model.state_dict())


def _write_answers(folder: RunFolder, prepared: PreparedPlots) -> None:
    assert prepared.split is not None
    task, rows = prepared.field, prepared.split.test
    targets = torch.from_numpy(prepared.plots.targets_N[rows])
    generator = torch.Generator().manual_seed(1)
    means = (targets - task.mean) / task.std + 0.4 * torch.randn(len(rows), generator=generator)
    outputs = torch.stack([means, torch.full_like(means, -1.8)], dim=1)[:, None].repeat(1, 2, 1)
    places = [{"longitude": lon, "latitude": lat} for lon, lat in prepared.plots.lonlat_N2[rows].tolist()]
    answers = zip(task.named(targets), task.answers(outputs), places, strict=True)
    lines = [
        {"name": prepared.name(row), "row": int(row), **target, **answer, **place, "scale": 5.0}
        for row, (target, answer, place) in zip(rows, answers, strict=True)
    ]
    write_text(folder.predictions, csv_text(lines))
    counted = {"system": "spatioformer", "size": None, "num_parameters": 1234, "seconds_training": 61.5}
    counted |= {"samples_seen": 1920, "best_step": 20, "steps": 30, "seconds_per_image": 0.0021}
    told = {"split": "test", "inputs": "plots", "task": "field"}
    write_json(folder.result, {**told, **task.result(outputs, targets, prepared.blocks_N[rows]), **counted})
    folder.write_metrics(
        [
            {"step": 10 * n, "epoch": float(n), "seconds": 20.0 * n, "samples": 640 * n, "learning_rate": 1e-3}
            | {"train_loss": 2 / n, "val_loss": 1.5 / n, "val_r2": 1 - 0.5 / n, "val_mae": 9 / n}
            for n in (1, 2, 3)
        ]
    )


def _write_validation(folder: RunFolder, prepared: PreparedPlots, schemes, noise: dict[str, float]) -> None:
    rows, plots = [], prepared.plots
    for scheme in schemes:
        generator = np.random.default_rng(5)
        for fold, (_, test) in enumerate(folds_of(plots, scheme, folds=3, block=prepared.block)):
            for row in test.tolist():
                target, (lon, lat) = float(plots.targets_N[row]), plots.lonlat_N2[row]
                said = {name: target + SCHEME_NOISE[scheme] * noise[name] * generator.normal() for name in MODELS}
                place = {"longitude": lon, "latitude": lat, "block": int(prepared.blocks_N[row])}
                named = {"scheme": scheme, "fold": fold, "row": row, "name": plots.name(row)}
                rows.append({**named, **place, "target": target, "scale": 5.0, **said})
    found = summary(rows, prepared, 0.9)
    found["importance"] = {COVARIATE: 120.5, "elev": 0.0, "location": 33.25}
    fold_of = {row["row"]: row["fold"] for row in rows}
    assert prepared.split is not None
    train = prepared.split.train
    area = Applicability.fit(
        middle_pixel(prepared.layers_NLHW.numpy())[train],
        np.array([fold_of[row] for row in train]),
        np.array([120.5, 0.0, 33.25]),
    )
    found["applicability_threshold"] = area.threshold
    save_file({name: np.ascontiguousarray(array) for name, array in area.to_arrays().items()}, folder.applicability)
    write_text(folder.path / "validation.csv", csv_text(rows))
    write_json(folder.validation, found)
