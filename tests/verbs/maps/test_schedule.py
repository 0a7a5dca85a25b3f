"""The same map from one process, Dask threads and a Dask cluster, whoever is killed on the way."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rasterio")
pytest.importorskip("distributed")

from mirada.errors import MiradaError
from mirada.verbs.maps.map_run import map_rasters
from mirada.verbs.maps.predict_tile import Job
from mirada.verbs.maps.schedule import _in_order
from mirada.verbs.maps.tiles import tiles_of
from tests.verbs.maps.predictors import ConvolutionOf, Deadly, WindowSum, save_convolution

ROOT = Path(__file__).resolve().parents[3]
BANDS = ("red", "nir")


@pytest.fixture
def run(tmp_path):
    return save_convolution(tmp_path / "run", BANDS)


@pytest.fixture
def expected(rasters, run, tmp_path):
    """The file that one undisturbed process makes."""
    return map_rasters(ConvolutionOf(run), rasters, tmp_path / "expected.tif", tile=64, workers=1).path.read_bytes()


@pytest.fixture
def cluster():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.scheduler_address


def test_threads_make_the_same_map(rasters, run, expected, tmp_path):
    result = map_rasters(ConvolutionOf(run), rasters, tmp_path / "map.tif", tile=64, workers=2)
    assert result.path.read_bytes() == expected


class Countdown:
    """A client of three threads that notes how many tiles are under way."""

    def __init__(self):
        self.under_way, self.most = 0, 0

    def nthreads(self):
        return {"worker": 3}

    def submit(self, predict, packed, tile, pure):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return self

    def result(self):
        self.under_way -= 1


def test_few_tiles_are_under_way_at_once(rasters):
    client, tiles = Countdown(), tiles_of((64, 64 * 50), 64)
    made = [tile for tile, _ in _in_order(client, Job(WindowSum(BANDS), rasters), tiles)]
    assert made == tiles and client.most == 6 and client.under_way == 0


def test_an_address_without_a_scheduler_is_an_error(rasters, tmp_path, monkeypatch):
    monkeypatch.setattr("mirada.verbs.maps.schedule.CONNECTING", "1s")
    with pytest.raises(MiradaError, match=r"scheduler tcp://127.0.0.1:9 does not answer"):
        map_rasters(WindowSum(BANDS), rasters, tmp_path / "map.tif", scheduler="tcp://127.0.0.1:9")


@pytest.mark.long
def test_a_cluster_of_two_processes_makes_the_same_map(rasters, run, expected, tmp_path, cluster):
    result = map_rasters(ConvolutionOf(run), rasters, tmp_path / "map.tif", tile=64, scheduler=cluster)
    assert result.path.read_bytes() == expected


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(rasters, run, expected, tmp_path, cluster):
    result = map_rasters(Deadly(run), rasters, tmp_path / "map.tif", tile=64, scheduler=cluster)
    assert (run / "has-died").exists() and result.path.read_bytes() == expected


@pytest.mark.long
def test_a_job_that_is_killed_goes_on_to_the_same_map(rasters, run, expected, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from mirada.data.geo.rasters import open_rasters; from mirada.verbs.maps.map_run import map_rasters\n"
        "from tests.verbs.maps.predictors import Deadly\n"
        "run, raster, out = map(Path, sys.argv[1:])\n"
        "print(map_rasters(Deadly(run), open_rasters(raster), out, tile=64, workers=1).num_kept)"
    )
    command = [sys.executable, "-c", code, str(run), rasters.paths[0], str(tmp_path / "map.tif")]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True)
    assert killed.returncode == -signal.SIGKILL and not (tmp_path / "map.tif").exists()
    gone_on = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(gone_on.stdout) > 0 and (tmp_path / "map.tif").read_bytes() == expected
