"""Random, blocked and buffered validation side by side, of the model and of three simple ones, on the same folds.

    validation.csv    a row per scheme and held-out plot: what was measured, and what each model said unseen
    validation.json   for each scheme and model the scores with intervals over blocks, the pattern left in residuals,
                      and how often intervals held that were calibrated on other folds

Each fold is a small run of its own below validation/, with the recipe of the run: a validation that is stopped goes on.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from mirada.config.schema import Config
from mirada.data.geo.splits import folds_of
from mirada.data.splits import Split
from mirada.errors import MiradaError
from mirada.tasks.applicability import Applicability, permutation_importance
from mirada.tasks.conformal import Conformal, leave_one_fold_out_coverage
from mirada.tasks.field_baselines import BASELINES
from mirada.tasks.field_scores import block_bootstrap, field_scores, morans_i
from mirada.tasks.layers import middle_pixel
from mirada.train.checkpoint import load_model
from mirada.train.files import write_atomically, write_json, write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.verbs.maps.prepare import PreparedPlots

TrainFold = Callable[[RunFolder, PreparedPlots], None]
OURS = "model"
MODELS = (OURS, *BASELINES)
IMPORTANCE_ROWS = 512


def validate(
    folder: RunFolder, config: Config, prepared: PreparedPlots, train_fold: TrainFold, says: Callable[[str], None]
) -> None:
    """Write validation.json and what the map needs of it; folds that are done are not done again."""
    if folder.validation.exists() or not config.maps.folds:
        return
    rows: list[dict] = []
    for scheme in config.maps.schemes:
        folds = folds_of(
            prepared.plots,
            scheme,
            folds=config.maps.folds,
            block=prepared.block,
            buffer_km=config.maps.buffer_km,
            seed=config.data.split_seed,
        )
        for number, (train, test) in enumerate(folds):
            part = RunFolder(folder.path / "validation" / f"{scheme}-{number + 1}")
            done = part.path.with_suffix(".csv")
            if not done.exists():
                says(f"Validation: {scheme}, fold {number + 1} of {len(folds)}, {len(test):,} plots held out.")
                fold = prepared.divided(_with_val(prepared, train, test, scheme, config))
                train_fold(part, fold)
                write_text(done, csv_text(_fold_rows(part, fold, scheme, number)))
                shutil.rmtree(part.path)
            with open(done, newline="", encoding="utf-8") as file:
                rows += csv.DictReader(file)
    write_text(folder.path / "validation.csv", csv_text(rows))
    found = summary(rows, prepared, config.maps.coverage)
    _write_applicability(folder, prepared, rows, found)
    write_json(folder.validation, found)
    shutil.rmtree(folder.path / "validation", ignore_errors=True)


def _with_val(prepared: PreparedPlots, train: np.ndarray, test: np.ndarray, scheme: str, config: Config) -> Split:
    """What chooses the weights is taken out of the training rows, by the same scheme."""
    inner = prepared.plots.subset(train)
    folds = folds_of(
        inner,
        "random" if scheme == "random" else "blocked",
        folds=max(2, round(1 / config.data.val)),
        block=prepared.block,
        seed=config.data.split_seed,
    )
    fitted, chosen = folds[0]
    return Split(train[fitted], train[chosen], test, how=scheme, seed=config.data.split_seed)


def _fold_rows(part: RunFolder, fold: PreparedPlots, scheme: str, number: int) -> list[dict]:
    """Held-out plots of a fold with what every model says; the baselines may learn from the val side too."""
    assert fold.split is not None
    with open(part.predictions, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    known = np.sort(np.concatenate([fold.split.train, fold.split.val]))
    test = np.array([int(line["row"]) for line in lines])
    layers = fold.layers_NLHW.numpy()
    blocks = None if scheme == "random" else fold.blocks_N[known]
    answers = {
        name: fit(layers[known], fold.plots.targets_N[known], blocks_N=blocks)(layers[test])
        for name, fit in BASELINES.items()
    }
    target, predicted = f"target_{fold.plots.target_name}", f"predicted_{fold.plots.target_name}"
    return [
        {
            "scheme": scheme,
            "fold": number,
            "row": int(line["row"]),
            "name": line["name"],
            "longitude": line["longitude"],
            "latitude": line["latitude"],
            "block": int(fold.blocks_N[int(line["row"])]),
            "target": float(line[target]),
            OURS: float(line[predicted]),
            "scale": float(line["scale"]),
            **{name: float(f"{values[i]:.7g}") for name, values in answers.items()},
        }
        for i, line in enumerate(lines)
    ]


def summary(rows: list[dict], prepared: PreparedPlots, coverage: float) -> dict:
    """validation.json"""
    found: dict = {"block": prepared.block, "coverage": coverage, "schemes": {}}
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        of = [row for row in rows if row["scheme"] == scheme]
        column = {name: np.array([float(row[name]) for row in of]) for name in ("target", "scale", *MODELS)}
        block = np.array([int(row["block"]) for row in of])
        fold = np.array([int(row["fold"]) for row in of])
        place = np.array([[float(row["longitude"]), float(row["latitude"])] for row in of])
        models = {}
        for name in MODELS:
            target, answer = column["target"], column[name]
            intervals = block_bootstrap(target, answer, block)
            models[name] = {
                "scores": field_scores(target, answer),
                "intervals": {score: list(ends) for score, ends in intervals.items()},
                "moran": asdict(morans_i(target - answer, place)),
            }
        residual = column["target"] - column[OURS]
        entry: dict = {"folds": int(fold.max()) + 1, "n": len(of), "models": models}
        try:
            entry["coverage"] = leave_one_fold_out_coverage(
                residual, column["scale"], fold, coverage, blocks_N=block
            ).to_dict()
            entry["conformal"] = Conformal.fit(residual, column["scale"], block, coverage).to_dict()
        except MiradaError as reason:
            entry["no_intervals"] = str(reason)
        found["schemes"][scheme] = entry
    return found


def _write_applicability(folder: RunFolder, prepared: PreparedPlots, rows: list[dict], found: dict) -> None:
    """How unlike the training plots a place may be: by the folds of the scheme that the model was divided by."""
    assert prepared.split is not None
    schemes = list(found["schemes"])
    scheme = prepared.maps.scheme if prepared.maps.scheme in schemes else schemes[0]
    fold_of = {int(row["row"]): int(row["fold"]) for row in rows if row["scheme"] == scheme}
    train = np.array([row for row in prepared.split.train if row in fold_of])
    model = prepared.attached(load_model(folder.best), torch.device("cpu")).eval()
    task = prepared.field

    def predict(layers_NLHW: np.ndarray) -> np.ndarray:
        scaled = prepared.scaled(torch.from_numpy(layers_NLHW))
        with torch.inference_mode():
            return torch.cat([task.values(model(some)) for some in scaled.split(256)]).numpy()

    layers = prepared.layers_NLHW.numpy()
    held_out = prepared.split.test[:IMPORTANCE_ROWS]
    importance = permutation_importance(predict, layers[held_out], prepared.plots.targets_N[held_out])
    weights = importance.clip(min=0)
    try:
        area = Applicability.fit(
            middle_pixel(layers)[train],
            np.array([fold_of[row] for row in train]),
            weights if weights.any() else None,
        )
    except MiradaError as reason:
        found["no_applicability"] = str(reason)
        return
    found["importance"] = {
        name: float(f"{growth:.6g}") for name, growth in zip(_layer_names(prepared), importance, strict=True)
    }
    found["applicability_threshold"] = area.threshold
    arrays = {name: np.ascontiguousarray(array) for name, array in area.to_arrays().items()}

    def write(path: Path) -> None:
        save_file(arrays, path)

    write_atomically(folder.applicability, write)


def _layer_names(prepared: PreparedPlots) -> list[str]:
    bands = () if prepared.plots.chips is None else prepared.plots.chips.band_names
    return [*bands, *prepared.plots.covariate_names, "location"]
