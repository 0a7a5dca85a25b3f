"""`mirada train --from` on the command line: the table of what was adapted, and sentences where it cannot be."""

import json

import pytest

from tests.verbs.trained_run import make_photos

FEW = ("train.steps=2", "train.evaluations=1", "train.batch_size=8", "baseline.name=none")


def test_train_from_a_run_shows_what_was_adapted(mirada, no_report, run, empty_folder):
    photos = make_photos(empty_folder / "other", classes=("dark", "bright"), per_class=10)
    ended = mirada("train", photos, "--from", run, "--name", "new", *FEW)
    assert ended.exit_code == 0, ended.output
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert any(line.startswith("Starting from") and "taken as they are" in line for line in lines)
    assert "adapted found wanted done" in lines
    assert "head.weight 3 × 8 2 × 8 started anew: other classes" in lines
    start = json.loads((empty_folder / "runs" / "new" / "start.json").read_text("utf-8"))
    assert start["start"] == str(run) and len(start["adapted"]) == 2


@pytest.mark.parametrize(
    ("start", "words"),
    [("nowhere", "there is no such file or folder"), ("model.pth", "such files run code when they are opened")],
)
def test_a_start_that_cannot_be_is_one_sentence(mirada, photos, empty_folder, start, words):
    (empty_folder / "model.pth").write_bytes(b"pickle")
    ended = mirada("train", photos, "--from", start)
    assert ended.exit_code == 2 and words in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.output and not (empty_folder / "runs").exists()


def test_export_to_transformers_says_what_it_needs(mirada, run, empty_folder):
    ended = mirada("export", run, "--to", "transformers", "-o", "theirs")
    assert ended.exit_code == 2 and "no part of the vit of transformers" in " ".join(ended.stderr.split())
