"""The server does what its description says, for whatever schemathesis thinks of: all of its checks."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.formats import STRING_FORMATS

from mirada.serve.app import create_app
from mirada.serve.limits import Limits
from tests.serve.untrained import picture
from tests.verbs.text.tiny_bert import tiny_bert

pytestmark = pytest.mark.long

LIMITS = Limits(images=3, texts=4, explained=2, characters=60)
FEW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture
def picture_files():
    """What the description calls a file is to be an image: anything else is refused, as other tests show."""
    schemathesis.openapi.format("binary", st.integers(0, 9).map(picture))
    yield
    STRING_FORMATS.pop("binary")


def require_conformity(run) -> None:
    app = create_app(run, LIMITS, hosts=["testserver", "localhost"], device="cpu")
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    asked = []
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:
            if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
                continue  # nothing can be wrong with it

            @FEW
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case):
                case.call_and_validate(timeout=600)  # a busy machine is not a failure

            check()
            asked.append((operation.path, mode.value))
    assert ("/predict", "positive") in asked and ("/explain", "negative") in asked and len(asked) == 8


def test_images(run, picture_files):
    require_conformity(run)


def test_texts(tmp_path):
    require_conformity(tiny_bert(tmp_path / "run", "single-label"))
