"""The teacher of a run: the model of another run, checked before anything is trained."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from mirada.config.schema import Config
from mirada.errors import MiradaError
from mirada.tasks.distillation import Distillation, Teacher
from mirada.tasks.image import Task
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained, load, model_folder
from mirada.verbs.prepare import AnyPrepared, Prepared


def require_teacher(config: Config, prepared: AnyPrepared, says: Callable[[str], None]) -> Config:
    """Refuse a teacher that cannot teach this data; the configuration with the checksum of the teacher's weights."""
    distil = config.distil
    if distil.teacher is None:
        return config
    if not isinstance(prepared, Prepared) or prepared.task_name != "single-label":
        what = prepared.task_name if isinstance(prepared, Prepared) else f"of another kind ({prepared.inputs})"
        raise MiradaError(f"distil.teacher is for images with one class each, but {prepared.source} is {what}.")
    teacher = load(distil.teacher, device="cpu")
    _require_alike(distil.teacher, teacher, prepared)
    if seen := _seen_of_held_out(teacher, prepared):
        says(
            f"The teacher {distil.teacher} was trained on {seen} of the images held out here, so the result will be "
            "too good; train it with the same data.split_seed."
        )
    found = checksum(distil.teacher)
    if distil.checksum not in (None, found):
        raise MiradaError(
            f"distil.teacher {distil.teacher}: its weights are not those of distil.checksum; restore them, or set "
            "distil.checksum=null to learn from the new ones."
        )
    return config.model_copy(update={"distil": distil.model_copy(update={"checksum": found})})


def distillation(
    config: Config, prepared: AnyPrepared, task: Task, student: nn.Module, device: torch.device
) -> Distillation | None:
    """The objective of a student with a teacher; None where there is none."""
    distil = config.distil
    if distil.teacher is None:
        return None
    if checksum(distil.teacher) != distil.checksum:
        raise MiradaError(
            f"distil.teacher {distil.teacher}: its weights changed since this run started; restore them or train anew."
        )
    assert isinstance(prepared, Prepared)
    trained = load(distil.teacher, device=str(device))
    teacher = Teacher(trained.model, trained.normalisation, prepared.normalisation)
    objective = Distillation(task, teacher, kind=distil.kind, temperature=distil.temperature, weight=distil.weight)
    objective.enrol(student)
    return objective


def checksum(run: str) -> str:
    """SHA-256 of the weights of a run's best model."""
    weights = model_folder(RunFolder(Path(run))) / "model.safetensors"
    return hashlib.sha256(weights.read_bytes()).hexdigest()


def _require_alike(run: str, teacher: Trained, prepared: Prepared) -> None:
    data = teacher.data
    if data.get("inputs", "image") != "image" or data["task"] != "single-label":
        raise MiradaError(f"distil.teacher {run}: does not tell classes of images apart; give a run that does.")
    own, others = list(prepared.table.class_names), data["class_names"]
    if own != others:
        raise MiradaError(
            f"distil.teacher {run}: knows {_listed(others)}, but the classes here are {_listed(own)}; "
            "a teacher must have been trained on the same classes."
        )
    if data["in_channels"] != prepared.store.shape.channels:
        raise MiradaError(
            f"distil.teacher {run}: takes images of {data['in_channels']} channels, but those here have "
            f"{prepared.store.shape.channels}."
        )


def _listed(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return f"{len(names)} classes ({shown}{', …' if len(names) > most else ''})"


def _seen_of_held_out(teacher: Trained, prepared: Prepared) -> int:
    """How many held-out images of the same data the teacher was trained on."""
    data = teacher.data
    if "split" not in data or data.get("checksum") != prepared.table.checksum():
        return 0
    trained_on = set(data["split"]["train"])
    return sum(row in trained_on for row in prepared.split.rows(prepared.held_out).tolist())
