"""The same numbers in MLflow. A tracker that fails says so once in the log and never stops training."""

from __future__ import annotations

import importlib.util
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import read_json, write_json
from mirada.train.folder import RunFolder
from mirada.train.loop import Progress
from mirada.train.stopping import Stopped

log = logging.getLogger(__name__)

LONGEST_VALUE = 500
PER_REQUEST = 100  # parameters that MLflow takes at once


def require_mlflow() -> None:
    """Refuse before training starts, not after."""
    needed = {"mlflow": "mlflow-skinny", "sqlalchemy": "sqlalchemy", "alembic": "alembic"}
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise MiradaError(f'track.mlflow=true needs {", ".join(missing)}: pip install "mirada[mlflow]".')


class Tracker:
    """Told of a run as it goes. This one keeps nothing to itself and tells nobody."""

    def advances(self, progress: Progress) -> None: ...
    def ends(self, result: Mapping) -> None: ...
    def close(self, status: str) -> None: ...


@contextmanager
def tracking(
    is_wanted: bool, folder: RunFolder, settings: Mapping, experiment: str, uri: str | None
) -> Iterator[Tracker]:
    """The tracker of this run; a run that is resumed goes on in the same MLflow run.

    `uri` None: the sqlite file mlflow.db beside the run folder, with models in mlartifacts/.
    """
    tracker = MlflowTracker(folder, settings, experiment, uri) if is_wanted else Tracker()
    try:
        yield tracker
    except Stopped:
        tracker.close("KILLED")
        raise
    except BaseException:
        tracker.close("FAILED")
        raise
    tracker.close("FINISHED")


class MlflowTracker(Tracker):
    """Parameters at the start, metrics at every evaluation, the result and the model at the end."""

    def __init__(self, folder: RunFolder, settings: Mapping, experiment: str, uri: str | None) -> None:
        require_mlflow()
        self.folder, self.is_broken = folder, False
        self._try(lambda: self._open(settings, experiment, uri))

    def advances(self, progress: Progress) -> None:
        row = progress.evaluation
        if progress.is_evaluated and row is not None:
            numbers = {name: float(value) for name, value in row.items() if name != "step"}
            self._try(lambda: self._log(numbers, progress.step))

    def ends(self, result: Mapping) -> None:
        numbers = {f"{result['split']}_{k}": float(v) for k, v in result.items() if isinstance(v, int | float)}
        self._try(lambda: self._log(numbers, int(result.get("steps", 0))))
        # Together these three are what mirada.load opens.
        for file in (self.folder.best / "model.safetensors", self.folder.best / "model.json", self.folder.data):
            self._try(partial(self._save, file))

    def close(self, status: str) -> None:
        self._try(lambda: self.client.set_terminated(self.run_id, status))

    def _open(self, settings: Mapping, experiment: str, uri: str | None) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        for name in ("mlflow", "alembic"):  # they report every migration of a new file
            logging.getLogger(name).setLevel(logging.WARNING)
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        runs = self.folder.path.resolve().parent
        self.client = MlflowClient(tracking_uri=uri or f"sqlite:///{runs / 'mlflow.db'}")
        remembered = self.folder.path / "mlflow.json"
        if remembered.exists():
            self.run_id = read_json(remembered)["run_id"]
            self.client.update_run(self.run_id, status="RUNNING")
            return
        known = self.client.get_experiment_by_name(experiment)
        place = None if uri else Path(runs / "mlartifacts").as_uri()
        number = known.experiment_id if known else self.client.create_experiment(experiment, artifact_location=place)
        self.run_id = self.client.create_run(number, run_name=self.folder.path.name).info.run_id
        write_json(remembered, {"run_id": self.run_id, "experiment": experiment})
        parameters = [Param(key, str(value)[:LONGEST_VALUE]) for key, value in flat(settings)]
        for start in range(0, len(parameters), PER_REQUEST):
            self.client.log_batch(self.run_id, params=parameters[start : start + PER_REQUEST])

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.client.log_batch(self.run_id, metrics=[Metric(k, v, now, step) for k, v in numbers.items()])

    def _save(self, file: Path) -> None:
        self.client.log_artifact(self.run_id, str(file), "model")

    def _try(self, action: Callable[[], object]) -> None:
        if self.is_broken:
            return
        try:
            action()
        except Exception as error:  # a full disk, a server that is away, another version of the store, …
            self.is_broken = True
            log.warning("MLflow failed and is left alone from here on: %s", " ".join(str(error).split())[:300])


def flat(settings: Mapping, prefix: str = "") -> Iterator[tuple[str, object]]:
    """{"train": {"epochs": 3}} as ("train.epochs", 3)."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
