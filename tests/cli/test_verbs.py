"""Every verb from the command line, on sixty small images."""

import json
import re
import shutil
import signal
import subprocess
import sys

import pytest
import typer

from mirada import __version__, systems
from mirada.cli.app import app
from mirada.config import load_config
from mirada.train.stopping import Stopped
from mirada.verbs import train as training
from mirada.verbs.systems import size_table
from tests.graphs import make_graph
from tests.verbs.trained_run import TINY

VERBS = (
    "check",
    "train",
    "resume",
    "compare",
    "evaluate",
    "predict",
    "explain",
    "anatomy",
    "segment",
    "map",
    "translate",
    "generate",
    "fill",
    "neighbours",
    "report",
    "export",
    "serve",
    "studio",
    "systems",
    "presets",
)


def test_version(mirada):
    assert mirada("--version").stdout == f"mirada {__version__}\n"


def test_every_verb_is_listed(mirada):
    assert tuple(typer.main.get_command(app).commands) == VERBS
    assert all(re.search(rf"^  {verb} ", mirada("--help").stdout, re.MULTILINE) for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_opens_with_a_sentence_and_has_an_example(mirada, verb):
    text = mirada(verb, "--help").stdout
    opening = text.split("\n\n")[1]
    assert " ".join(opening.split()).endswith((".", "it."))
    assert re.search(rf"Example:\n( +.*\n)*? +(find .* \| )?mirada {verb}\b", text)


def test_train_ends_with_a_table_and_the_report(mirada, photos, empty_folder):
    ended = mirada("train", photos, *TINY, "--steps", 4, "--baseline", "none", "--name", "first", "--seed", 3)
    assert ended.exit_code == 0, ended.stderr
    assert "step 4/4: train loss" in ended.stdout and "val accuracy" in ended.stdout
    assert "95 % interval" in ended.stdout and "most frequent answer" in ended.stdout
    assert "report  runs/first/report.html" in ended.stdout
    assert (empty_folder / "runs" / "first" / "report.html").exists()


@pytest.mark.long
def test_quiet_training_prints_nothing_and_logs_with_levels(mirada, no_report, photos, empty_folder):
    ended = mirada("train", photos, *TINY, "--steps", 2, "--baseline", "none", "-o", "run", "--quiet")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "")
    assert " INFO " in (empty_folder / "run" / "log.txt").read_text()


@pytest.mark.long
def test_flags_beat_settings_beat_file(mirada, no_report, photos, empty_folder):
    (empty_folder / "mine.yaml").write_text(
        "data: {source: nowhere}\nname: from-file\ntrain: {steps: 9, seed: 5, learning_rate: 0.5, weight_decay: 0.25}\n"
    )
    words = ["--steps", 2, "--seed", 7, "train.epochs=3", "train.seed=6", "train.learning_rate=0.125"]
    ended = mirada("train", photos, "--config", "mine.yaml", *TINY, *words, "--baseline", "none", "-q")
    assert ended.exit_code == 0, ended.stderr
    config = load_config(empty_folder / "runs" / "from-file" / "config.yaml")
    assert (config.train.steps, config.train.epochs, config.train.seed) == (2, None, 7)
    assert (config.train.learning_rate, config.train.weight_decay) == (0.125, 0.25)
    assert config.data.source == str(photos)


@pytest.mark.long
def test_saved_configuration_repeats_the_run_without_a_source(mirada, no_report, run, empty_folder):
    ended = mirada("train", "--config", run / "config.yaml", "train.evaluations=2", "--baseline", "none", "-o", "again")
    assert ended.exit_code == 0, ended.stderr
    again, first = (json.loads((folder / "result.json").read_text()) for folder in (empty_folder / "again", run))
    assert again["loss"] == first["loss"]


@pytest.mark.long
def test_resume_of_a_finished_run_shows_it(mirada, no_report, own_run):
    before = (own_run / "result.json").read_text()
    ended = mirada("resume", own_run)
    assert ended.exit_code == 0, ended.stderr
    assert "(baseline)" in ended.stdout
    assert (own_run / "result.json").read_text() == before


def test_evaluate_prints_the_metric_with_its_interval(mirada, own_run):
    ended = mirada("evaluate", own_run)
    assert re.match(r"accuracy 0\.\d{4} \(0\.\d{4} – [01]\.\d{4}, Wilson, 95 %\) on \d+ images", ended.stdout)
    assert (own_run / "evaluation-test.json").exists()


def test_predict_prints_a_row_per_image(mirada, run, photos):
    ended = mirada("predict", run, photos / "dark" / "0.png", photos / "grey")
    assert ended.exit_code == 0, ended.stderr
    assert len(re.findall(r"\d+\.png .*(bright|dark|grey) +[01]\.\d+", ended.stdout)) == 21


def test_predict_reads_paths_from_stdin_and_writes_files(mirada, run, photos, empty_folder):
    names = "".join(f"{path}\n" for path in sorted((photos / "dark").iterdir())[:3])
    for kind in ("csv", "jsonl"):
        ended = mirada("predict", run, "-", "-o", f"answers.{kind}", input=names)
        assert ended.exit_code == 0, ended.stderr
        assert ended.stdout == f"wrote 3 rows to answers.{kind}\n"
    header, *rows = (empty_folder / "answers.csv").read_text().splitlines()
    assert header == "name,predicted,confidence,p_bright,p_dark,p_grey,error"
    lines = [json.loads(line) for line in (empty_folder / "answers.jsonl").read_text().splitlines()]
    assert [row.split(",")[1] for row in rows] == [line["predicted"] for line in lines]


def test_predict_takes_patterns(mirada, run, photos):
    assert mirada("predict", run, photos / "*" / "1?.png").stdout.count(".png") == 30


def test_broken_images_are_reported_in_their_rows(mirada, run, photos, empty_folder):
    (empty_folder / "text.jpg").write_text("this is no image")
    ended = mirada("predict", run, "text.jpg", photos / "dark" / "0.png", "missing [x].png", "-o", "answers.jsonl")
    assert ended.exit_code == 0
    assert "2 of 3 images could not be read" in ended.stderr and "it holds text" in ended.stderr
    rows = [json.loads(line) for line in (empty_folder / "answers.jsonl").read_text().splitlines()]
    assert [row["error"] is None for row in rows] == [False, True, False]
    assert rows[0]["predicted"] is None and rows[0].keys() == rows[1].keys()
    shown = mirada("predict", run, "text.jpg", photos / "dark" / "0.png")
    assert "cannot be read" in shown.stdout


def test_report_writes_the_page_again(mirada, own_run):
    (own_run / "report.html").unlink()
    ended = mirada("report", own_run)
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.strip() == str(own_run / "report.html")
    assert (own_run / "report.html").exists()


def test_check_says_whether_one_can_train(mirada, photos, tmp_path):
    assert "ready to train at 8 x 8" in mirada("check", photos).stdout
    assert json.loads(mirada("check", photos, "--json").stdout)["num_images"] == 60
    shutil.copytree(photos / "dark", tmp_path / "single" / "dark")
    ended = mirada("check", tmp_path / "single")
    assert ended.exit_code == 2
    assert "problem:" in ended.stdout


def test_systems_lists_and_shows(mirada):
    listed = mirada("systems").stdout
    assert all(re.search(rf"^ {name} ", listed, re.MULTILINE) for name in ("vit", "cnn", "resnet"))
    shown = mirada("systems", "vit", "--image-size", "224", "--classes", 1000).stdout
    assert "86,567,656" in shown  # ViT-B/16 of the paper
    assert "124,439,808" in mirada("systems", "gpt", "--tokens", 50_257).stdout  # GPT-2 small
    shown = mirada("systems", "spatioformer_paper", "--channels", 6).stdout
    assert "at 6 bands" in shown and "1,450,546" in shown and "139,826" in shown  # the paper's, at 9 and 1 pixels


@pytest.mark.parametrize("name", list(systems.cards()))
def test_every_size_of_a_system_can_be_counted(name):
    _, sizes = size_table(name, image_size=(224, 224))
    assert all(row["num_parameters"] for row in sizes), [row["reason"] for row in sizes]


def test_presets_lists_and_shows(mirada):
    assert [line.split()[0] for line in mirada("presets").stdout.splitlines()] == [
        "graph",
        "language",
        "large-images",
        "maps",
        "maps-paper",
        "masked-text",
        "masks",
        "medium-data",
        "pixels",
        "small-data",
        "text-classes",
        "tiny-images",
        "translation",
        "word-vectors",
    ]
    assert "system:" in mirada("presets", "small-data").stdout


def test_export_lists_its_files(mirada, run):
    ended = mirada("export", run, "-o", "model")
    assert ended.stdout.splitlines() == [
        "wrote model/model.safetensors",
        "wrote model/model.json",
        "wrote model/data.json",
    ]


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (Stopped("Stopped. Nothing is lost.", 143), 143, "mirada: Stopped. Nothing is lost.\n"),
        (KeyboardInterrupt(), 130, "mirada: Stopped.\n"),
        (ValueError("a\nb"), 1, "mirada: unexpected ValueError (a b); the details are in "),
    ],
)
def test_how_a_command_ends_badly(mirada, run, monkeypatch, raised, code, words):
    def fail(*args, **kwargs):
        raise raised

    monkeypatch.setattr(training, "resume", fail)
    ended = mirada("resume", run)
    assert ended.exit_code == code
    assert ended.stderr.startswith(words) and ended.stderr.count("\n") == 1
    if code == 1:
        details = ended.stderr.rstrip(".\n").rpartition(" ")[2]
        with open(details) as file:
            assert "Traceback" in file.read()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_with_its_code_and_the_way_on(photos, tmp_path, number):
    words = ["train", photos, *TINY, "--steps", "1000000", "--baseline", "none", "-o", tmp_path / "run"]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "mirada", *map(str, words), "train.evaluations=100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("step"):
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "mirada resume" in errors and "Traceback" not in errors


@pytest.mark.long
def test_a_graph_goes_through_the_verbs(mirada, no_report, empty_folder):
    make_graph(empty_folder / "friends")
    checked = mirada("check", "friends")
    assert checked.exit_code == 0 and "61 nodes" in checked.stdout and "ready to train" in checked.stdout
    assert json.loads(mirada("check", "friends", "--json").stdout)["num_features"] == 3
    trained = mirada("train", "friends", "--epochs", 6, "train.evaluations=2")
    assert trained.exit_code == 0, trained.stderr
    assert "Preset graph: a graph of 61 nodes" in trained.stdout and "test nodes" in trained.stdout
    assert "mlp (baseline)" in trained.stdout and "images" not in trained.stdout
    measured = mirada("evaluate", "runs/gat-friends")
    assert "nodes of friends (test nodes)" in measured.stdout
    assert (
        mirada("predict", "runs/gat-friends", "friends", "-o", "answers.csv").stdout == "wrote 61 rows to answers.csv\n"
    )
    assert mirada("resume", "runs/gat-friends").exit_code == 0
    assert mirada("export", "runs/gat-friends", "-o", "model").exit_code == 0
    refused = mirada("export", "runs/gat-friends", "--to", "onnx")
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1
    (empty_folder / "friends" / "edges.csv").write_text("source,target\nn1,n99\n")
    refused = mirada("check", "friends")
    assert refused.exit_code == 2 and "edge to the node 'n99'" in refused.stderr
