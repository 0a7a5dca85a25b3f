"""MLflow has the numbers and the model of a run, goes on with it, and never stops it."""

import logging
import shutil

import pytest
import torch

import mirada
from mirada.train.folder import RunFolder
from mirada.train.loop import Progress
from mirada.train.stopping import Stopped
from mirada.train.track import Tracker, flat, tracking

SETTINGS = {"name": None, "train": {"epochs": 3, "betas": [0.9, 0.999]}}


def evaluated(step: int) -> Progress:
    row = {"step": step, "epoch": step / 10, "val_accuracy": 0.5 + step / 100, "train_loss": "0.25"}
    return Progress(step, 20, 0, 0, 0.0, 0.25, 1e-3, row, True)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of MLflow and SQLAlchemy
def test_run_is_in_mlflow_with_params_metrics_and_a_model_that_loads(own_run, photos, tmp_path):
    MlflowClient = pytest.importorskip("mlflow.tracking").MlflowClient
    folder = RunFolder(own_run)

    def stopped():
        with tracking(True, folder, SETTINGS, "birds", None) as tracker:
            tracker.advances(evaluated(10))
            raise Stopped("", 130)

    with pytest.raises(Stopped):
        stopped()
    client = MlflowClient(tracking_uri=f"sqlite:///{own_run.parent / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("birds").experiment_id
    assert [run.info.status for run in client.search_runs([experiment])] == ["KILLED"]
    with tracking(True, folder, SETTINGS, "birds", None) as tracker:
        tracker.advances(evaluated(20))
        tracker.ends(folder.read_result())
    (run,) = client.search_runs([experiment])
    assert (run.info.status, run.info.run_name) == ("FINISHED", own_run.name)
    assert run.data.params["train.epochs"] == "3"
    history = client.get_metric_history(run.info.run_id, "val_accuracy")
    assert [(metric.step, metric.value) for metric in history] == [(10, 0.6), (20, 0.7)]
    assert run.data.metrics["test_value"] == folder.read_result()["value"]
    model = next((own_run.parent / "mlartifacts").rglob("model.safetensors")).parent
    torch.testing.assert_close(mirada.load(model).outputs(photos), mirada.load(own_run).outputs(photos))


def test_tracker_that_fails_is_logged_once_and_stops_nothing(tmp_path, run, caplog):
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(run, folder.path)
    with caplog.at_level(logging.WARNING), tracking(True, folder, SETTINGS, "birds", "nonsense://nowhere") as tracker:
        tracker.advances(evaluated(10))
        tracker.ends(folder.read_result())
    assert [record.levelname for record in caplog.records if "MLflow failed" in record.message] == ["WARNING"]


def test_nothing_is_tracked_unless_wanted(tmp_path):
    with tracking(False, RunFolder(tmp_path), SETTINGS, "birds", None) as tracker:
        tracker.advances(evaluated(10))
    assert type(tracker) is Tracker
    assert not list(tmp_path.iterdir())


def test_settings_are_flattened():
    assert list(flat(SETTINGS)) == [("name", None), ("train.epochs", 3), ("train.betas", [0.9, 0.999])]
