"""A trained run, and the command line in this process."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import mirada.report
from mirada.cli.app import app
from tests.verbs.conftest import own_run, photos, run

__all__ = ["own_run", "photos", "run"]  # fixtures of the verbs, here too


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run: what they write by default lands here."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def mirada() -> Callable[..., Result]:
    """mirada("train", "digits", input=…): the result has exit_code, stdout and stderr."""

    def command(*words: object, input: str | None = None) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words], input=input, prog_name="mirada")

    return command


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page takes seconds to draw; where a test is not about it, it is left out."""
    monkeypatch.setattr(sys.modules["mirada.report"], "build_report", lambda path: None)
