"""What is wrong on the command line ends in one sentence, exit code 2, and nothing written."""

import re
from pathlib import Path

import pytest

from tests.verbs.trained_run import TINY

QUICK = ("--steps", "2", "--baseline", "none", *TINY)

# words of the command, what the message says
SETTINGS = {
    "unknown key": (["train.epoch=3"], "'train.epoch' does not exist (did you mean 'epochs'"),
    "unknown section": (["trian.epochs=3"], "'trian' does not exist (did you mean 'train'"),
    "wrong type": (["train.batch_size=many"], "'train.batch_size' is 'many'"),
    "negative epochs": (["train.epochs=-3"], "'train.epochs' is -3"),
    "zero batch": (["train.batch_size=0"], "'train.batch_size' is 0"),
    "share above one": (["train.warmup=1.5"], "'train.warmup' is 1.5"),
    "unknown choice": (["train.optimiser=adagrad"], "'train.optimiser' is 'adagrad'"),
    "section given a value": (["augment=3"], "'augment' is 3"),
    "two lengths": (["train.epochs=3", "train.minutes=2"], "epochs and minutes are given"),
    "two length flags": (["--epochs", "3", "--minutes", "2"], "epochs and minutes are given"),
    "negative length flag": (["--epochs", "-1"], "'train.epochs' is -1"),
    "no setting": (["epochs"], "'epochs' is not a setting"),
    "nothing is forgotten": (["train.betas=[0.9,1.0]"], "'train.betas.1' is 1.0"),
    "float16 without a GPU": (
        ["train.precision=float16", "train.device=cpu"],
        "does not work on the device cpu",
    ),
    "setting that is no YAML": (["train.betas=[1,"], "not valid YAML"),
    "unknown preset": (["--preset", "small-dta"], "did you mean 'small-data'"),
    "missing file": (["--config", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
    "bad YAML": (["--config", "bad.yaml"], "bad.yaml: is not valid YAML"),
    "YAML that is a list": (["--config", "list.yaml"], "list.yaml: holds list"),
    "unknown system": (["--system", "vitt"], "did you mean 'vit'"),
    "unknown size": (["--system", "vit:tini"], "has no size 'tini'"),
    "empty size": (["--system", "vit:"], "expected a name, or name:size"),
    "unknown argument": (["system.arguments.dims=3"], "takes no argument 'dims'"),
    "unknown device": (["--device", "abacus"], "device 'abacus' cannot be used here"),
    "unknown baseline": (["--baseline", "cnnn"], "did you mean 'cnn'"),
    "folder not empty": (["--out", "full"], "full: already exists and is not empty"),
    "folder is a file": (["--out", "list.yaml"], "list.yaml"),
    "unwritable folder": (["--out", "list.yaml/run"], "list.yaml/run: cannot be the folder of a run"),
    "unknown strength": (["augment.strength=huge"], "'augment.strength' is 'huge'"),
}


@pytest.fixture
def traps(empty_folder: Path):
    (empty_folder / "bad.yaml").write_text("train: [1, 2")
    (empty_folder / "list.yaml").write_text("- 1\n- 2\n")
    (empty_folder / "full").mkdir()
    (empty_folder / "full" / "thesis.txt").write_text("keep me")
    return empty_folder


def files_below(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def assert_refused(ended, words: str) -> None:
    assert ended.exit_code == 2, (ended.stdout, ended.stderr)
    assert words in ended.stderr
    assert re.fullmatch(r"mirada: [^\n]+\n", ended.stderr), ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("case", list(SETTINGS))
def test_bad_setting_is_refused_before_anything_is_written(mirada, no_report, photos, traps, case):
    words, message = SETTINGS[case]
    is_length = any("epochs" in word or "minutes" in word for word in words)
    defaults = ["--baseline", "none", *TINY] if is_length else QUICK
    before = files_below(traps)
    assert_refused(mirada("train", photos, *defaults, *words), message)
    assert files_below(traps) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "no data is named"),
        (["train", "nowhere"], "nowhere: no such file or folder"),
        (["resume", "nowhere"], "nowhere: is not the folder of a run"),
        (["report", "nowhere"], "nowhere: is not the folder of a run"),
        (["evaluate", "nowhere"], "nowhere: there is no such folder"),
        (["predict", "nowhere", "x.png"], "nowhere: there is no such folder"),
        (["export", "nowhere"], "nowhere: there is no such folder"),
        (["check", "nowhere"], "nowhere: no such file or folder"),
        (["check", "digits", "train.epochs=3"], "give data.… only"),
        (["check", "digits", "data.lable_column=x"], "did you mean 'label_column'"),
        (["systems", "vitt"], "did you mean 'vit'"),
        (["systems", "vit", "--image-size", "big"], "expected a number of pixels"),
        (["presets", "small"], "preset 'small' does not exist"),
    ],
)
def test_bad_argument_is_refused(mirada, empty_folder, words, message):
    assert_refused(mirada(*words), message)
    assert not files_below(empty_folder)


def test_bad_arguments_of_predict_are_refused(mirada, run, photos, empty_folder):
    (empty_folder / "empty").mkdir()
    for words, message in (
        (["nowhere.png"], "none of 1 images can be read; the first: nowhere.png"),
        (["*.png"], "no file matches this pattern"),
        (["empty"], "there are no images in this folder"),
        ([photos, "-o", "answers.xlsx"], "cannot write .xlsx files"),
        ([photos, "--quiet"], "--quiet prints no answers"),
        ([photos, "--device", "abacus"], "device 'abacus' cannot be used here"),
        ([photos, "-o", "empty/file/../../empty/x.txt"], "cannot write .txt files"),
    ):
        assert_refused(mirada("predict", run, *words), message)
    assert files_below(empty_folder) == {str(empty_folder / "empty")}


def test_usage_errors_have_the_same_code(mirada):
    for words in (["tarin"], ["train", "--epcohs", "3"], ["predict"], ["export", "x", "--to", "pickle"]):
        ended = mirada(*words)
        assert ended.exit_code == 2
        assert ended.stderr


def test_debugging_shows_the_traceback(mirada, monkeypatch):
    monkeypatch.setenv("MIRADA_DEBUG", "1")
    ended = mirada("resume", "nowhere")
    assert ended.exit_code == 2
    assert "Traceback" in ended.stderr
