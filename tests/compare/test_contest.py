"""Who takes part, and what is wrong with a comparison before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirada.compare.contest import Contest, ContestFolder, parse_entrant, require_contest
from mirada.errors import MiradaError


def test_an_entrant_is_a_system_and_its_settings() -> None:
    entrant = parse_entrant("vit:micro system.arguments.stem=linear train.clip=1")
    assert entrant.system == "vit:micro"
    assert entrant.settings == ("system.arguments.stem=linear", "train.clip=1")
    assert entrant.slug == "vit-micro-system.arguments.stem-linear-train.clip-1"


def test_an_entrant_may_have_a_name() -> None:
    entrant = parse_entrant("linear patches: vit:micro system.arguments.stem=linear")
    assert (entrant.label, entrant.slug, entrant.system) == ("linear patches", "linear-patches", "vit:micro")
    assert entrant.settings == ("system.arguments.stem=linear",)
    inside = parse_entrant("vit 'system.arguments={depth: 2}'")
    assert (inside.system, inside.settings) == ("vit", ("system.arguments={depth: 2}",))


def test_the_presets_own_system() -> None:
    assert parse_entrant("preset train.clip=1").system is None


@pytest.mark.parametrize(
    ("words", "part"),
    [("vit depth", "'depth' is out of place"), ("a=1 b=2", "'a=1' is out of place"), ("vit 'a=", "No closing")],
)
def test_wrong_words_are_named(words: str, part: str) -> None:
    with pytest.raises(MiradaError, match=part):
        parse_entrant(words)


@pytest.mark.parametrize(
    ("entrants", "seeds", "part"),
    [
        (("vit",), 3, "needs two or more"),
        (("vit", "cnn", "vit"), 3, "'vit': is there twice"),
        (("vit", "cnn"), 0, "must be 1 or more"),
        (("vit train.epochs=9", "cnn"), 3, "sets its own length"),
    ],
)
def test_contests_that_cannot_be(entrants: tuple[str, ...], seeds: int, part: str) -> None:
    with pytest.raises(MiradaError, match=part):
        require_contest(Contest("digits", entrants, seeds, ()))


def test_written_and_read_again(tmp_path: Path) -> None:
    contest = Contest("digits", ("vit", "cnn"), 2, ("train.clip=1",), "tiny-images", 0.5)
    ContestFolder(tmp_path).write(contest)
    assert ContestFolder(tmp_path).read() == contest


def test_a_file_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "compare.json").write_text('{"entrants": ["vit"]}')
    with pytest.raises(MiradaError, match="is not a comparison"):
        ContestFolder(tmp_path).read()
