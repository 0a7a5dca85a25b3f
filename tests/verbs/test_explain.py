"""`mirada explain` on runs of images, masks and texts, and on models of others."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import BertConfig, BertForSequenceClassification, ViTConfig, ViTForImageClassification
from typer.testing import CliRunner

import mirada
from mirada.cli.app import app
from mirada.core import record
from mirada.errors import MiradaError
from mirada.explain.methods import METHODS
from mirada.verbs.explain import SHOWN
from tests import shapes
from tests.verbs.text import texts
from tests.verbs.text.tiny_translator import tiny_run


def on_command_line(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words])
    return found.exit_code, found.output


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("runs") / "translator")


def test_pictures_a_page_and_numbers_are_written(run, photos, tmp_path):
    dark, bright = photos / "dark" / "0.png", photos / "bright" / "0.png"
    code, said = on_command_line("explain", run, dark, bright, "--out", tmp_path / "out")
    assert code == 0, said
    assert f"Look at {tmp_path / 'out' / 'explain.html'}" in " ".join(said.split()) or "explain.html" in said
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"explain.html", "explain.json", "0.png", "0-2.png"}
    numbers = json.loads((tmp_path / "out" / "explain.json").read_text("utf-8"))
    first = numbers["inputs"][0]
    assert first["name"] == str(dark) and set(first["maps"]) == set(SHOWN)
    assert first["target"] == max(first["answers"], key=first["answers"].get)
    faithfulness = first["maps"]["rollout"]["faithfulness"]
    assert faithfulness["baseline"] == "blur" and 0 <= faithfulness["deletion"] <= 1


def test_arrays_are_those_of_the_methods(run, photos):
    found = mirada.explain(run, photos / "grey" / "3.png", method="all", target="dark", faithfulness=False)
    (item,) = found.items
    assert [map.method for map in item.maps] == list(METHODS) and item.target == "dark"
    assert all(map.faithfulness is None for map in item.maps)
    trained = mirada.load(run)
    pixels = np.asarray(Image.open(photos / "grey" / "3.png")).transpose(2, 0, 1)
    image = trained.normalisation.apply(torch.from_numpy(pixels.copy())[None])
    with torch.inference_mode(), record(trained.model) as maps:
        trained.model(image)
    for layer, name in zip(item.layers, maps, strict=True):
        np.testing.assert_allclose(layer.weights_HNM, maps[name][0].numpy(), atol=1e-6)
    raw = next(map for map in item.maps if map.method == "attention")
    np.testing.assert_allclose(raw.relevance_RC.ravel(), maps[-1][0].mean((0, 1)).numpy(), atol=1e-6)


def test_layer_head_and_patch_are_choices(run, photos):
    image = photos / "grey" / "3.png"
    found = mirada.explain(run, image, method="attention", layer=0, head=1, at=(0, 1), faithfulness=False)
    (item,) = found.items
    assert item.maps[0].relevance_RC.ravel() == pytest.approx(item.layers[0].weights_HNM[1, 1], abs=1e-6)
    assert "--layer 0 --head 1 --at 0,1" in found.command


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--target", "drak"), "did you mean 'dark'"),
        (("--method", "cheffer"), "did you mean 'chefer'"),
        (("--layer", "9"), "no layer 9 ran"),
        (("--method", "attention", "--head", "7"), "has no head 7"),
        (("--at", "a,b"), "expected ROW,COLUMN"),
        (("--method", "rollout", "--at", "9,9"), "no token is at (9, 9)"),
        (("--method", "chefer", "--at", "0,1"), "use attention or rollout"),
        (("--layer", "--5"), "no layer '--5' ran"),
    ],
)
def test_choices_that_are_not_there_are_refused_in_a_sentence(run, photos, tmp_path, options, said):
    code, printed = on_command_line("explain", run, photos / "dark" / "0.png", "--out", tmp_path / "out", *options)
    assert code == 2 and said in " ".join(printed.split()) and "Traceback" not in printed
    assert not (tmp_path / "out").exists()


def test_a_patch_is_followed_past_the_query_that_pools(run, photos):
    found = mirada.explain(run, photos / "grey" / "3.png", at=(0, 1), faithfulness=False)
    assert [map.method for map in found[0].maps] == ["rollout", "attention"]
    weights = found[0].layers[0].weights_HNM.mean(0)
    expected = 0.5 * weights[1]
    expected[1] += 0.5
    assert found[0].maps[0].relevance_RC.ravel() == pytest.approx(expected, abs=1e-6)


def test_all_methods_are_those_that_are_defined(translator, tmp_path):
    found = mirada.explain(translator, "one two three", method="all")
    assert "legrad" not in [map.method for map in found[0].relevance] and len(found[0].relevance) == 7
    assert any(note.startswith("legrad is left out") for note in found.notes)
    code, said = on_command_line("explain", translator, "one two", "--method", "all", "--out", tmp_path / "out")
    assert code == 0 and "legrad is left out" in said


def test_layers_that_are_not_there_are_not_left_out_in_silence():
    with pytest.raises(MiradaError, match="no layer 9 ran"):
        mirada.explain(texts.run("labels"), "one two", layer=9)


def test_words_that_the_model_does_not_know_and_places_it_has_not_are_refused(translator):
    with pytest.raises(MiradaError, match="is no token that this model knows"):
        mirada.explain(translator, "one two", target="zzzqqq")
    with pytest.raises(MiradaError, match="leave it out"):
        mirada.explain(texts.run("labels"), "one two", at=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": []}, "no method is named"),
        ({"inputs": torch.zeros(1, 3, 8, 8)}, "tensors are for its model"),
    ],
)
def test_what_a_run_cannot_take_is_refused(run, photos, given, said):
    with pytest.raises(MiradaError, match=said):
        mirada.explain(run, **{"inputs": photos / "dark" / "0.png", **given})


def test_an_image_that_cannot_be_read_does_not_stop_the_others(run, photos, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no image")
    inputs = [tmp_path / "broken.png", photos / "dark" / "0.png"]
    code, said = on_command_line("explain", run, *inputs, "--out", tmp_path / "out", "--no-faithfulness")
    assert code == 2 and "broken.png" in said
    assert (tmp_path / "out" / "0.png").exists()
    with pytest.raises(MiradaError, match=r"broken\.png"):
        mirada.explain(run, tmp_path / "broken.png")


def test_a_model_without_attention_is_explained_by_its_input(run, photos):
    found = mirada.explain(run / "baseline", photos / "dark" / "0.png")
    assert [map.method for map in found[0].maps] == ["integrated_gradients", "occlusion"] and not found[0].layers
    with pytest.raises(MiradaError, match="no attention layer"):
        mirada.explain(run / "baseline", photos / "dark" / "0.png", method="rollout")


def test_masks_are_explained_by_the_pixels_that_are_called_so():
    image = next(shapes.shapes().rglob("images/*"))
    found = mirada.explain(shapes.run(), image, method=["chefer", "occlusion"], target="1")
    assert found[0].target == "1" and found[0].maps[0].faithfulness is None
    assert np.isfinite(found[0].maps[0].relevance_RC).all()


@pytest.mark.long
def test_the_class_of_a_text(tmp_path):
    found = mirada.explain(texts.run("labels"), ["one two six", "three four"], method="all")
    for item, words in zip(found.items, (["one", "two", "six"], ["three", "four"]), strict=True):
        assert item.tokens[1:-1] == words and len(item.tokens) == len(words) + 2
        assert [map.method for map in item.relevance] == list(METHODS)
        assert item.answers[0][0] == item.target
    assert {file.name for file in found.save(tmp_path)} >= {"explain.html", "text-1.png", "text-2.png"}


def test_the_next_and_the_hidden_token():
    after = mirada.explain(texts.run("book"), "one two", method="chefer", at=2)
    assert after[0].target.endswith("at token 2")
    assert not after[0].relevance[0].relevance_N[3:].any(), "what comes later is relevant"
    hidden = mirada.explain(texts.run("lines"), "one ___ three", method="chefer")
    assert hidden[0].target.endswith("at token 2") and hidden[0].tokens[2] == "[mask]"
    with pytest.raises(MiradaError, match="has no blank"):
        mirada.explain(texts.run("lines"), "one two")


def test_a_word_of_a_translation(translator):
    found = mirada.explain(translator, "one two three", method=["chefer", "attention", "occlusion"])
    (item,) = found.items
    assert item.source_tokens is not None and item.source_tokens[:3] == ["one", "two", "three"]
    assert {layer.kind for layer in item.layers} == {"self", "target", "cross"}
    assert item.relevance[0].of_target_N is not None
    with pytest.raises(MiradaError, match="writes token by token"):
        mirada.explain(translator, "one two", method="legrad")


def test_models_of_others_under_their_own_kernels():
    config = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 31}
    vit = ViTForImageClassification(ViTConfig(**config, image_size=20, patch_size=5, num_labels=3)).eval()
    images = torch.randn(2, 3, 20, 20)
    for method in ("attention", "rollout", "gradient_rollout", "chefer", "gradient_attention"):
        found = mirada.explain(vit, images, method=method, target=2)
        assert found.relevance_BRC.shape == (2, 4, 4) and found.relevance_BRC.any()
        assert found.pixels_BHW.shape == (2, 20, 20)
    eager = ViTForImageClassification.from_pretrained(
        None, config=vit.config, state_dict=vit.state_dict(), attn_implementation="eager"
    ).eval()
    with torch.no_grad():
        weights = eager(images, output_attentions=True).attentions[-1]
    raw = mirada.explain(vit, images, method="attention")
    torch.testing.assert_close(raw.relevance_BRC.flatten(1), weights.mean(1)[:, 0, 1:], atol=1e-5, rtol=1e-4)
    with pytest.raises(MiradaError, match="legrad needs more of ViTForImageClassification"):
        mirada.explain(vit, images, method="legrad")
    with pytest.raises(MiradaError, match=r"call model\.eval"):
        mirada.explain(vit.train(), images)


def test_layers_of_torch_itself():
    layer = torch.nn.MultiheadAttention(12, 3, batch_first=True).eval()
    x_BND = torch.randn(2, 5, 12)
    found = mirada.explain(layer, x_BND, method="rollout", reads="mean")
    _, weights_BNM = layer(x_BND, x_BND, x_BND)
    expected = (0.5 * weights_BNM.detach() + 0.5 * torch.eye(5)).mean(1)
    torch.testing.assert_close(found.relevance_BN, expected)
    with pytest.raises(MiradaError, match="no logits"):
        mirada.explain(layer, x_BND, method="chefer", reads="mean")


@pytest.mark.parametrize(
    ("inputs", "options", "said"),
    [
        (torch.zeros(2, 3, 20, 20), {"target": "cat"}, "must be classes from 0 to 2"),
        (torch.zeros(2, 3, 20, 20), {"target": torch.tensor([0, 1, 2])}, "one or 2 of them"),
        ("cat.png", {}, "is given str"),
        (torch.zeros(2, 3, 20, 20), {"method": ["chefer", "rollout"]}, "one method at a time"),
    ],
)
def test_what_a_model_of_others_cannot_take_is_refused(inputs, options, said):
    config = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 31}
    vit = ViTForImageClassification(ViTConfig(**config, image_size=20, patch_size=5, num_labels=3)).eval()
    with pytest.raises(MiradaError, match=said):
        mirada.explain(vit, inputs, **options)


def test_gradients_are_not_to_be_had_in_inference_mode(run):
    model = mirada.load(run).model.eval()
    with torch.inference_mode(), pytest.raises(MiradaError, match="call it outside"):
        mirada.explain(model, torch.zeros(1, 3, 8, 8), method="chefer")


def test_a_text_model_of_others_leaves_padding_out():
    config = BertConfig(vocab_size=31, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=29)
    bert = BertForSequenceClassification(config).eval()
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    found = mirada.explain(bert, {"input_ids": torch.randint(1, 31, (2, 5)), "attention_mask": mask})
    relevance_BN = found.relevance_BN
    assert relevance_BN.shape == (2, 5) and relevance_BN[1, :3].any() and not relevance_BN[1, 3:].any()
