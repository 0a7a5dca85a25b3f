"""Image GPT through the verbs: train, resume, evaluate, predict, generate, report."""

import csv
import json
import math
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ImageGPTForCausalImageModeling
from typer.testing import CliRunner

import mirada
from mirada.cli.app import app
from mirada.data import Normalisation
from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.prepare_pixels import small_size
from mirada.verbs.train import Watcher, resume, train
from mirada.weights import read_checkpoint
from tests.graphs import make_graph

TINY = ("system.arguments.dim=16", "system.arguments.depth=2", "system.arguments.num_heads=2")
SHORT = (*TINY, "system.arguments.num_colours=16", "train.steps=6", "train.evaluations=3", "train.device=cpu")


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-pixels-")


@cache
def _patterns() -> Path:
    """Two classes of 60 small images: dark above and light above."""
    path = Path(_place().name) / "patterns.npz"
    random = np.random.default_rng(0)
    images = random.integers(0, 80, (60, 6, 4, 3), dtype=np.uint8)
    labels = np.arange(60) % 2
    images[labels == 0, :3] += 150
    images[labels == 1, 3:] += 150
    np.savez(path, images=images, labels=labels)
    return path


@cache
def _run() -> Path:
    return mirada.train(_patterns(), system="image_gpt", settings=SHORT, out=Path(_place().name) / "run").path


@pytest.fixture
def patterns() -> Path:
    return _patterns()


@pytest.fixture
def run() -> Path:
    """Trained and reported: read it, do not change it."""
    return _run()


@pytest.fixture
def own_run(tmp_path) -> Path:
    return Path(shutil.copytree(_run(), tmp_path / "own_run"))


def opened(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def test_a_run_has_numbers_pictures_and_a_report(run):
    result = json.loads((run / "result.json").read_text("utf-8"))
    assert (result["metric"], result["task"], result["inputs"]) == ("bits_per_dimension", "pixels", "pixels")
    assert result["value"] == pytest.approx(result["nats_per_pixel"] / (3 * math.log(2)))
    assert 0 < result["majority"] < 1.05 * math.log2(16) / 3 and result["low"] < result["value"] < result["high"]
    assert result["probe_accuracy"] == 1.0 and 0.3 < result["probe_majority"] < 0.7  # the classes are plain to see
    for name, columns in (("samples", 8), ("completions", 6)):
        assert opened(run / "figures" / f"{name}.png").shape[1] % (1 + columns * 5) == 0
    assert not (run / "baseline").exists()
    page = (run / "report.html").read_text("utf-8")
    assert "Completed halves" in page and "Knowing only how frequent each colour is" in page
    data = json.loads((run / "data.json").read_text("utf-8"))
    assert (data["task"], data["labels"], data["image_size"]) == ("pixels", "single-label", [6, 4])


def test_the_fewest_bits_are_the_best_weights(run):
    with (run / "metrics.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    best = min(rows, key=lambda row: float(row["val_loss"]))
    assert json.loads((run / "result.json").read_text("utf-8"))["best_step"] == int(best["step"])
    for row in rows:
        assert float(row["val_bits_per_dimension"]) == pytest.approx(float(row["val_loss"]) / (3 * math.log(2)))


class Interrupter(Watcher):
    def __init__(self, stop: StopRequest, at: int) -> None:
        self.stop, self.at = stop, at

    def advances(self, progress) -> None:
        if progress.step == self.at:
            self.stop.request(15)


def test_a_stopped_run_ends_in_the_same_bits(run, patterns, tmp_path):
    stop = StopRequest()
    with pytest.raises(Stopped):
        train(
            patterns,
            system="image_gpt",
            settings=SHORT,
            out=tmp_path / "run",
            watcher=Interrupter(stop, 3),
            stop=stop,
        )
    assert not RunFolder(tmp_path / "run").is_finished
    resume(tmp_path / "run")
    for name in ("best/model.safetensors", "predictions.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (run / name).read_bytes()


def test_predict_says_how_unusual_an_image_is(run):
    trained = mirada.load(run, device="cpu")
    usual = np.zeros((6, 4, 3), dtype=np.uint8) + 40
    usual[:3] += 150
    noise = np.random.default_rng(1).integers(0, 255, (6, 4, 3), dtype=np.uint8)
    answers = trained.predict([usual, noise])
    assert set(answers[0]) == {"nats_per_pixel", "bits_per_dimension"}
    assert all(math.isfinite(answer["nats_per_pixel"]) for answer in answers)


def test_evaluate_measures_held_out_images_and_others_without_asking_for_classes(own_run, tmp_path):
    own = mirada.evaluate(own_run, device="cpu").result
    saved = json.loads((own_run / "result.json").read_text("utf-8"))
    assert own["value"] == pytest.approx(saved["value"], abs=1e-6)
    others = tmp_path / "others.npz"
    np.savez(others, images=np.full((8, 6, 4, 3), 90, dtype=np.uint8), labels=np.array(list("abcdabcd")))
    assert mirada.evaluate(own_run, others, device="cpu").result["n"] == 8


@pytest.mark.parametrize("given", [(), ("--count", "3", "--temperature", "0.5", "--top-k", "2")])
def test_generate_draws_the_same_for_the_same_seed(run, tmp_path, given):
    pictures = []
    for number, seed in enumerate((1, 1, 2)):
        path = tmp_path / f"{number}.png"
        done = CliRunner().invoke(app, ["generate", str(run), "-o", str(path), "--seed", str(seed), *given])
        assert done.exit_code == 0 and f"wrote {path}" in done.stdout
        pictures.append(opened(path))
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_completion_begins_with_the_image(run, tmp_path):
    image = np.zeros((6, 4, 3), dtype=np.uint8)
    image[:3] = 200
    path = mirada.generate(run, tmp_path / "done.png", complete=image, count=2, device="cpu")
    picture = opened(path)
    times = picture.shape[0] // 8  # one row of images of 6 px, with a line below and above
    small = picture[times // 2 :: times, times // 2 :: times]
    shown, hidden, first, second = (small[1:7, 1 + 5 * n : 5 + 5 * n] for n in range(4))
    assert np.array_equal(shown, image)
    assert (hidden[:3] == 200).all() and (hidden[3:] == 128).all()
    trained = mirada.load(run, device="cpu")
    known = trained.normalisation.undo(
        trained.model.images_of(trained.model.colours_of(trained.normalisation.apply(_batch(image))), (6, 4))
    )
    expected = (known[0, :, :3] * 255).round().byte().numpy().transpose(1, 2, 0)
    assert np.array_equal(first[:3], expected) and np.array_equal(second[:3], expected)


def _batch(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image.transpose(2, 0, 1)[None].copy())


def test_exports_go_on_drawing_and_transformers_reads_them(own_run, tmp_path):
    mirada.export(own_run, out=tmp_path / "plain")
    drawn = mirada.generate(own_run, tmp_path / "a.png", count=2, device="cpu")
    redrawn = mirada.generate(tmp_path / "plain", tmp_path / "b.png", count=2, device="cpu")
    assert drawn.read_bytes() == redrawn.read_bytes()
    mirada.export(own_run, to="transformers", out=tmp_path / "theirs")
    ours = mirada.load(own_run, device="cpu").model
    theirs = ImageGPTForCausalImageModeling.from_pretrained(tmp_path / "theirs").eval()
    read_BN = torch.randint(0, 17, (2, 24))
    torch.testing.assert_close(theirs(read_BN).logits, ours.next_logits(read_BN), atol=1e-5, rtol=1e-5)
    again = read_checkpoint(tmp_path / "theirs")
    images = torch.rand(2, 3, 6, 4)
    own, other = (Normalisation(*n).apply(images) for n in (_statistics(own_run), again.normalisation))
    assert torch.equal(again.model().colours_of(other), ours.colours_of(own))


def _statistics(run: Path) -> tuple:
    saved = json.loads((run / "data.json").read_text("utf-8"))["normalisation"]
    return tuple(saved["mean"]), tuple(saved["std"])


def test_training_goes_on_from_a_run(own_run, patterns, tmp_path):
    path = mirada.train(
        patterns, start=own_run, settings=["train.steps=2", "train.device=cpu"], out=tmp_path / "b"
    ).path
    first, second = (mirada.load(place, device="cpu").model for place in (own_run, path))
    torch.testing.assert_close(first.palette_TC, second.palette_TC)
    moved = (first.embedding.weight - second.embedding.weight).abs().max()
    assert 0 < moved < 0.02  # two small steps from there, not from a new start


@pytest.mark.parametrize(
    ("size", "small"), [((8, 8), (8, 8)), ((28, 28), (16, 16)), ((32, 64), (11, 23)), ((300, 3), (160, 2))]
)
def test_large_images_become_small_unless_a_size_is_chosen(size, small):
    assert small_size(size) == small


def test_a_chosen_size_and_palette_are_kept(patterns, tmp_path):
    settings = (*SHORT, "data.image_size=[3,2]", "system.arguments.num_colours=5")
    path = mirada.train(patterns, system="image_gpt", settings=settings, out=tmp_path / "run").path
    arguments = json.loads((path / "best" / "model.json").read_text("utf-8"))["arguments"]
    assert (arguments["image_size"], arguments["num_colours"]) == ([3, 2], 5)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda run, out: mirada.generate(run, out / "a.jpg"), "ends in .png"),
        (lambda run, out: mirada.generate(run, out / "a.png", count=0), "0 images"),
        (lambda run, out: mirada.generate(run, out / "nowhere" / "a.png"), "cannot be written"),
        (lambda run, out: mirada.generate(run, out / "a.png", complete=[]), "no images to complete"),
        (lambda run, out: mirada.generate(run, out / "a.png", complete=[str(out / "no.png")]), "no.png"),
    ],
)
def test_misuse_is_one_sentence(run, tmp_path, act, message):
    with pytest.raises(MiradaError, match=message):
        act(run, tmp_path)


def test_a_graph_has_no_pixels(tmp_path):
    with pytest.raises(MiradaError, match=r"takes images as pixels, but .* holds a graph"):
        mirada.train(make_graph(tmp_path / "graph"), system="image_gpt", out=tmp_path / "run")
