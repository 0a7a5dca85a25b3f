"""The studio's server does what its description says, for whatever schemathesis thinks of."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from mirada.studio.app import create_app
from mirada.studio.processes import Trainings

pytestmark = pytest.mark.long

FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
RUNS = ("photos", "book", "pairs", "nowhere", "..\\photos", "<script>")
# Which classes, words and sources of data there are cannot be described: a wrong one is refused with 400.
UNDECIDABLE = "positive_data_acceptance"


def test_all_addresses(shared_runs, monkeypatch):
    begun = []
    monkeypatch.setattr(
        Trainings, "_begin", lambda self, run, words: begun.append(words)
    )  # "/" is a source that is there
    monkeypatch.setattr("mirada.studio.processes.new_request", lambda runs, given: _elsewhere(runs))
    before = {path: path.stat().st_mtime_ns for path in shared_runs.parent.rglob("*")}
    app = create_app(shared_runs, hosts=["testserver", "localhost"])
    load_all_checks()
    checks = [check for check in CHECKS.get_all() if check.__name__ != UNDECIDABLE]
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    asked = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:
            if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
                continue  # nothing can be wrong with it

            names = st.sampled_from(RUNS) if mode is GenerationMode.POSITIVE else st.none()

            @FEW
            @given(case=operation.as_strategy(generation_mode=mode), name=names)
            def check(case, name):
                if name is not None and "name" in (case.path_parameters or {}):
                    case.path_parameters["name"] = name
                case.call_and_validate(checks=checks, timeout=600)  # a busy machine is not a failure

            check()
            asked.add(operation.path)
    assert {"/api/runs", "/api/trainings", "/api/runs/{name}/looks", "/api/runs/{name}/next"} <= asked
    assert {path: path.stat().st_mtime_ns for path in shared_runs.parent.rglob("*")} == before


def _elsewhere(runs):
    from mirada.train.folder import RunFolder

    return RunFolder(runs / "photos")
