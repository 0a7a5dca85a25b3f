"""A trained run goes to transformers and comes back: the same logits on the way and after it."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification, DeiTForImageClassificationWithTeacher

import mirada
from mirada.errors import MiradaError
from mirada.train.checkpoint import load_model
from mirada.weights import read_checkpoint
from tests.verbs.trained_run import make_photos

PLAIN = (
    *("train.steps=4", "train.evaluations=2", "train.batch_size=8", "baseline.name=none"),
    *("system.arguments.dim=24", "system.arguments.depth=2", "system.arguments.num_heads=3"),
    *("system.arguments.stem=linear", "system.arguments.patch_size=4"),
)


@pytest.mark.parametrize("system", ["vit", pytest.param("deit", marks=pytest.mark.long)])
def test_round_trip(system, photos, tmp_path):
    settings = [*PLAIN, *(["system.arguments.pooling=class"] if system == "vit" else [])]
    run = mirada.train(photos, system=system, settings=settings, out=tmp_path / "run")
    files = mirada.export(run, to="transformers", out=tmp_path / "theirs")
    assert {file.name for file in files} == {
        *("config.json", "model.safetensors", "preprocessor_config.json", "data.json"),
    }
    # The automatic class takes a DeiT's class token only; the model that was trained is the one with both.
    kind = AutoModelForImageClassification if system == "vit" else DeiTForImageClassificationWithTeacher
    theirs, info = kind.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert theirs.config.id2label == {0: "bright", 1: "dark", 2: "grey"}

    path = next((photos / "grey").iterdir())
    pixels = AutoImageProcessor.from_pretrained(tmp_path / "theirs")(Image.open(path), return_tensors="pt")
    with torch.no_grad():
        logits = theirs.eval()(pixels["pixel_values"]).logits
    torch.testing.assert_close(logits, mirada.load(run).outputs([path]), rtol=1e-5, atol=1e-5)

    checkpoint = read_checkpoint(tmp_path / "theirs")
    back, ours = checkpoint.model().state_dict(), load_model(run.best).state_dict()
    assert set(back) == set(ours) and all(torch.equal(back[name], ours[name]) for name in ours)
    assert checkpoint.class_names == ("bright", "dark", "grey")


@pytest.mark.long
def test_fine_tuned_from_transformers_goes_back_to_it(photos, tmp_path):
    settings = [*PLAIN, "system.arguments.pooling=class", "data.fit=squash"]
    first = mirada.train(photos, system="vit", settings=settings, out=tmp_path / "first")
    mirada.export(first, to="transformers", out=tmp_path / "theirs")
    theirs = AutoModelForImageClassification.from_pretrained(tmp_path / "theirs")
    theirs.save_pretrained(tmp_path / "saved")  # as that library writes it
    other = make_photos(tmp_path / "other", classes=("dark", "bright"), per_class=10, seed=3)
    second = mirada.train(other, start=tmp_path / "saved", settings=PLAIN[:4], out=tmp_path / "second")
    assert json.loads(second.start.read_text())["origin"] == "transformers"
    mirada.export(second, to="transformers", out=tmp_path / "again")
    again = AutoModelForImageClassification.from_pretrained(tmp_path / "again").eval()
    images = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(again(images).logits, load_model(second.best)(images), rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_processor_squashes_as_training_did(photos, tmp_path):
    settings = [*PLAIN, "system.arguments.pooling=class", "data.fit=squash"]
    run = mirada.train(photos, system="vit", settings=settings, out=tmp_path / "run")
    mirada.export(run, to="transformers", out=tmp_path / "theirs")
    wide = Image.fromarray(np.random.default_rng(0).integers(0, 256, (14, 20, 3), dtype=np.uint8))
    pixels = AutoImageProcessor.from_pretrained(tmp_path / "theirs")(wide, return_tensors="pt")["pixel_values"]
    theirs = AutoModelForImageClassification.from_pretrained(tmp_path / "theirs").eval()
    torch.testing.assert_close(theirs(pixels).logits, mirada.load(run).outputs([wide]), rtol=1e-4, atol=1e-4)


def test_what_transformers_has_not_is_refused_without_a_file(run, tmp_path):
    with pytest.raises(MiradaError, match=r"no part of the vit of transformers.*system.arguments"):
        mirada.export(run, to="transformers", out=tmp_path / "theirs")
    with pytest.raises(MiradaError, match="transformers has no layout for system 'cnn'; there is one for"):
        mirada.export(run / "baseline", to="transformers", out=tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_the_two_layouts_do_not_share_a_folder(run, tmp_path):
    mirada.export(run, out=tmp_path / "ours")
    with pytest.raises(MiradaError, match="holds an exported model of Mirada"):
        mirada.export(run, to="transformers", out=tmp_path / "ours")
