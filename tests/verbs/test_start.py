"""Training that starts from trained weights: of a run, of transformers; adapted, told, resumed without them."""

import json
import shutil

import pytest
import torch
from transformers import ViTConfig, ViTForImageClassification

import mirada
from mirada.config.load import load_config
from mirada.errors import MiradaError
from mirada.train.checkpoint import load_model
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.stages import Watcher
from tests.verbs.trained_run import make_photos

FEW = ("train.steps=2", "train.evaluations=1", "train.batch_size=8", "baseline.name=none")
STILL = (*FEW, "train.learning_rate=1e-12", "train.average=0", "train.weight_decay=0")


class Heard(Watcher):
    def __init__(self):
        self.sentences = []

    def says(self, sentence):
        self.sentences.append(sentence)


@pytest.fixture
def other_photos(tmp_path):
    return make_photos(tmp_path / "other", classes=("dark", "bright"), per_class=10, seed=3)


@pytest.fixture
def foreign(tmp_path):
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
    torch.manual_seed(3)
    ViTForImageClassification(ViTConfig(**shape, image_size=16, patch_size=4)).save_pretrained(tmp_path / "foreign")
    processor = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.1]}
    (tmp_path / "foreign" / "preprocessor_config.json").write_text(json.dumps(processor))
    return tmp_path / "foreign"


def test_a_run_starts_from_another_with_all_but_its_head(run, other_photos, tmp_path):
    heard = Heard()
    folder = mirada.train(other_photos, start=run, settings=STILL, out=tmp_path / "new", watcher=heard)
    before, after = load_model(run / "best"), load_model(folder.best)
    start = json.loads((folder.path / "start.json").read_text())
    told = {row["name"]: row for row in start["adapted"]}
    assert set(told) == {"head.weight", "head.bias"} and start["origin"] == "mirada"
    assert told["head.weight"] == {
        "name": "head.weight", "found": "3 × 8", "wanted": "2 × 8", "done": "started anew: other classes",
    }  # fmt: skip
    assert start["num_copied"] == start["num_tensors"] - 2
    for name, tensor in before.state_dict().items():
        if name not in told:
            assert torch.allclose(after.state_dict()[name], tensor, atol=1e-6), name
    assert any("Starting from" in sentence and "head.weight" in sentence for sentence in heard.sentences)


@pytest.mark.long
def test_system_size_and_pixels_come_from_the_checkpoint_and_the_rate_is_lower(foreign, photos, tmp_path):
    folder = mirada.train(photos, start=foreign, settings=FEW, preset="small-data", out=tmp_path / "new")
    config = load_config(folder.config)
    assert config.start == str(foreign) and config.system.name == "vit"
    arguments = config.system.arguments
    assert (arguments["dim"], arguments["depth"], arguments["stem"], arguments["patch_size"]) == (24, 2, "linear", 4)
    assert (config.train.learning_rate, config.train.optimiser) == (1e-3, "adamw")
    assert folder.read_data()["normalisation"] == {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.2, 0.1]}
    told = {row["name"]: row["found"] for row in json.loads((folder.path / "start.json").read_text())["adapted"]}
    assert told == {"head.weight": "2 × 24", "head.bias": "2", "position.weight": "4 × 4 positions"}
    assert "Started from" in folder.report.read_text() and "4 × 4 positions" in folder.report.read_text()
    assert "--from" in folder.report.read_text()


@pytest.mark.long
def test_another_patch_size_can_be_asked_for(foreign, photos, tmp_path):
    settings = (*FEW, "system.arguments.patch_size=2", "train.learning_rate=0.003")
    folder = mirada.train(photos, start=foreign, settings=settings, out=tmp_path / "new")
    told = {row["name"] for row in json.loads((folder.path / "start.json").read_text())["adapted"]}
    assert "patches.projection.weight" in told
    assert load_config(folder.config).train.learning_rate == 0.003


@pytest.mark.long
def test_resuming_needs_the_checkpoint_no_more(foreign, photos, tmp_path):
    class StopSoon(Watcher):
        def __init__(self, stop):
            self.stop = stop

        def advances(self, progress):
            if progress.step == 2:
                self.stop.request()

    settings = ("train.steps=6", "train.evaluations=3", "train.batch_size=8", "baseline.name=cnn", "baseline.size=nano")
    whole = mirada.train(photos, start=foreign, settings=settings, out=tmp_path / "whole")
    stop = StopRequest()
    with pytest.raises(Stopped):
        mirada.train(photos, start=foreign, settings=settings, out=tmp_path / "new", stop=stop, watcher=StopSoon(stop))
    shutil.rmtree(foreign)
    again = mirada.resume(tmp_path / "new")
    for name, tensor in load_model(whole.best).state_dict().items():
        assert torch.equal(tensor, load_model(again.best).state_dict()[name]), name
    assert load_config(again.baseline.config).start is None and not (again.baseline.path / "start.json").exists()


def test_another_system_is_refused_before_anything_is_written(run, photos, tmp_path):
    with pytest.raises(MiradaError, match="holds a vit, but system 'cnn' is asked for"):
        mirada.train(photos, start=run, system="cnn", settings=FEW, out=tmp_path / "new")
    with pytest.raises(MiradaError, match="only classes, channels, image size and patch size may differ"):
        mirada.train(photos, start=run, settings=(*FEW, "system.arguments.dim=16"), out=tmp_path / "new")
    with pytest.raises(MiradaError, match="there is no such file"):
        mirada.train(photos, start=tmp_path / "none", settings=FEW, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_model_of_pixels_starts_from_another_with_its_palette(photos, other_photos, tmp_path):
    settings = ("train.steps=2", "train.evaluations=1", "train.batch_size=8", "data.image_size=[4, 4]")
    small = ("system.arguments.dim=8", "system.arguments.depth=1", "system.arguments.num_colours=8")
    first = mirada.train(photos, system="image_gpt", settings=(*settings, *small), out=tmp_path / "first")
    second = mirada.train(other_photos, start=first.path, settings=settings, out=tmp_path / "second")
    assert json.loads(second.start.read_text())["adapted"] == []
    palettes = [load_model(run.best).palette_TC for run in (first, second)]
    assert torch.equal(*palettes)
