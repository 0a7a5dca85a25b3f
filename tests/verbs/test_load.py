"""A trained model answers about images however they are given."""

import numpy as np
import pytest
import torch
from PIL import Image

import mirada
from mirada.errors import MiradaError


@pytest.fixture
def trained(run):
    return mirada.load(run)


def test_answers_have_the_class_names_and_shares_that_sum_to_one(trained, photos):
    answers = trained.predict(photos / "dark")
    assert len(answers) == 20
    for answer in answers:
        shares = {name: answer[f"p_{name}"] for name in ("bright", "dark", "grey")}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
        assert answer["predicted"] == max(shares, key=shares.get)


def test_every_form_of_an_image_gives_the_same_outputs(trained, photos):
    paths = [photos / "dark" / "3.png", photos / "grey" / "5.png"]
    pillow = [Image.open(path) for path in paths]
    arrays = [np.asarray(image) for image in pillow]
    expected = trained.outputs([str(path) for path in paths])
    assert expected.shape == (2, 3)
    for images in (paths, pillow, arrays, np.stack(arrays)):
        torch.testing.assert_close(trained.outputs(images), expected, rtol=0, atol=1e-6)
    for one in (paths[0], pillow[0], arrays[0]):
        torch.testing.assert_close(trained.outputs(one), expected[:1], rtol=0, atol=1e-6)


def test_batches_do_not_change_outputs(trained, photos):
    whole, parts = (trained.outputs(photos / "grey", batch_size=size) for size in (64, 7))
    torch.testing.assert_close(whole, parts, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "F"])
def test_pillow_images_of_any_mode_are_read_as_from_a_file(trained, tmp_path, mode):
    image = Image.fromarray(np.arange(99, dtype=np.uint8).reshape(9, 11)).convert("RGB").convert("L")
    image = image.convert(mode)
    path = tmp_path / ("image.tif" if mode in ("CMYK", "F") else "image.png")
    image.save(path)
    torch.testing.assert_close(trained.outputs(image), trained.outputs(path), rtol=0, atol=1e-6)


def test_run_describes_itself(trained):
    assert trained.config.system.name == "vit"
    assert trained.result["metric"] == "accuracy"
    assert not trained.model.training


def test_baseline_is_a_model_too(run, photos):
    baseline = mirada.load(run / "baseline")
    assert type(baseline.model).__name__ == "CNN"
    assert len(baseline.predict(photos / "grey")) == 20


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ("nowhere.png", "nowhere.png: the file does not exist."),
        ("nowhere/*.png", "no file matches"),
        ([], "no images are given"),
        (3, "int is not an image"),
        (np.zeros((8, 8, 3)), "float64"),
        (np.zeros((2, 8, 8, 7), np.uint8), "7 channels where 3 are expected"),
    ],
)
def test_what_is_no_image_is_refused_in_a_sentence(trained, images, words):
    with pytest.raises(MiradaError, match=r"^[^\n]+$") as refused:
        trained.predict(images)
    assert words in str(refused.value)


def test_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(MiradaError, match="is not the folder of a run"):
        mirada.load(tmp_path)
    with pytest.raises(MiradaError, match="there is no such folder"):
        mirada.load(tmp_path / "nowhere")


def test_run_without_a_model_yet_says_how_to_go_on(own_run):
    (own_run / "best" / "model.safetensors").unlink()
    with pytest.raises(MiradaError, match="mirada resume"):
        mirada.load(own_run)


def test_damaged_weights_are_refused(own_run):
    weights = own_run / "best" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(MiradaError, match="not a readable safetensors file"):
        mirada.load(own_run)
