"""CvT: parameter counts, equality with transformers through our loader both ways, its stages and its one dead end."""

import json

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForImageClassification, CvtConfig, CvtForImageClassification
from transformers import CvtModel as BareCvt

from mirada.core import record
from mirada.errors import MiradaError
from mirada.systems import CvT, card, create
from mirada.systems.cvt import first_stride
from mirada.systems.registry import all_arguments
from mirada.weights import layout_for, read_checkpoint
from tests.systems.common_checks import images, maker
from tests.weights.references import assert_same, saved, shaken

SHAPE = {"embed_dim": [12, 16, 24], "num_heads": [1, 2, 3], "depth": [1, 2, 3], "mlp_ratio": [2.5] * 3}
OUR_SHAPE = {"dims": (12, 16, 24), "num_heads": (1, 2, 3), "depths": (1, 2, 3), "mlp_ratio": 2.5, "patch_size": 4}


def reference(**config):
    """With random weights and running statistics."""
    model = shaken(CvtForImageClassification(CvtConfig(**{**SHAPE, **config}, num_channels=5, num_labels=7)))
    shake_statistics(model)
    return model


def shake_statistics(model):
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.uniform_(0.5, 1.5)


@pytest.mark.parametrize(("size", "count"), [("13", 19_997_480), ("21", 31_622_696), ("W24", 277_196_392)])
def test_parameters_are_the_published_ones(size, count):
    with torch.device("meta"):
        model = create("cvt", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


@pytest.mark.parametrize("size", [(32, 32), (48, 20), (35, 23)])
def test_equals_transformers_in_output_and_input_gradient(size, tmp_path):
    theirs = reference()
    checkpoint = saved(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("cvt", "transformers")
    assert_same(checkpoint.model(), theirs, torch.randn(2, 5, *size))


def test_training_mode_equals_transformers_too(tmp_path):
    theirs = reference(drop_path_rate=[0.0] * 3).double().train()
    ours = saved(theirs, tmp_path).model().double().train()
    assert_same(ours, theirs, torch.randn(4, 5, 32, 32, dtype=torch.float64))
    after = layout_for("cvt", "transformers").to_ours(theirs.state_dict(), {})
    assert all(torch.allclose(buffer, after[name]) for name, buffer in ours.named_buffers())


def test_what_we_save_transformers_loads(tmp_path):
    arguments = all_arguments("cvt", **OUR_SHAPE, image_size=(32, 20), in_channels=5, num_classes=7)
    ours = shaken(create("cvt", **arguments))
    shake_statistics(ours)
    layout = layout_for("cvt", "transformers")
    config = {**layout.config(arguments), "id2label": {str(i): f"c{i}" for i in range(7)}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    theirs_state = layout.to_theirs(ours.state_dict(), arguments)
    save_file(
        {name: t.contiguous() for name, t in theirs_state.items()}, tmp_path / "model.safetensors", {"format": "pt"}
    )
    theirs, info = AutoModelForImageClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert_same(ours, theirs.eval(), torch.randn(2, 5, 32, 20))


def test_model_without_head_lacks_the_head_and_its_norm_only(tmp_path):
    BareCvt(CvtConfig(**SHAPE)).save_pretrained(tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    assert set(checkpoint.outline().state_dict()) - set(checkpoint.state) == {
        *("norm.weight", "norm.bias", "head.weight", "head.bias")
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"stride_kv": [1, 1, 1]}, r"stride_kv=\[1, 1, 1\].*has \[2, 2, 2\] only"),
        ({"mlp_ratio": [2.0, 2.0, 3.0]}, "one for all"),
    ],
)
def test_variant_that_we_have_not_is_refused(changed, message, tmp_path):
    reference(**changed).save_pretrained(tmp_path)
    with pytest.raises(MiradaError, match=message):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"depths": (1, 1, 3)}, "transformers cannot build"),
        ({"image_size": (30, 32)}, "no whole number of strides"),
    ],
)
def test_what_transformers_has_not_is_refused(changed, message):
    given = {**OUR_SHAPE, "image_size": (32, 32), "in_channels": 3, "num_classes": 2, **changed}
    with pytest.raises(MiradaError, match=message):
        layout_for("cvt", "transformers").config(all_arguments("cvt", **given))


def test_keys_are_on_every_second_row_and_column():
    """At 52 × 36 px with stride 4: 13 × 9, 7 × 5 and 4 × 3 tokens, and half as many rows and columns of keys."""
    model = CvT(image_size=(52, 36), in_channels=3, num_classes=5, **OUR_SHAPE).eval()
    x = torch.randn(2, 3, 52, 36)
    with record(model) as maps:
        model(x)
    shapes = [tuple(maps[name].shape[1:]) for name in maps]
    assert shapes == [(1, 117, 35), *[(2, 35, 12)] * 2, *[(3, 13, 5)] * 3]
    assert model.grid(x) == (2, 2)


def test_only_the_last_query_convolution_learns_nothing():
    model = maker(card("cvt"))().train()
    torch.nn.functional.cross_entropy(model(images()), torch.tensor([0, 1, 2])).backward()
    idle = {name for name, p in model.named_parameters() if not p.grad.any() and not name.endswith("to_k.bias")}
    last = "stages.2.encoder.layers.1.attention.inner.around_q."
    assert idle == {last + "convolution.weight", last + "norm.weight", last + "norm.bias"}


@pytest.mark.parametrize(("size", "stride"), [((8, 8), 1), ((32, 32), 2), ((64, 48), 4), ((224, 224), 16)])
def test_derived_first_stride(size, stride):
    assert first_stride(size) == stride
    model = create("cvt", "nano", image_size=size, in_channels=1, num_classes=2)
    assert model.stages[0].embedding.projection.stride == (stride, stride)
    assert model.stages[0].embedding(torch.zeros(1, 1, *size))[1] == (-(-size[0] // stride), -(-size[1] // stride))


def test_stages_of_different_number_are_refused():
    with pytest.raises(MiradaError, match="as many numbers in each"):
        maker(card("cvt"))(depths=(1, 2))


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_gradient_of_a_batch_of_one_is_right(mode):
    """The gradient of torch's batch norm is not, for some layouts of one image."""
    model = getattr(maker(card("cvt"))().double(), mode)()
    image = images()[:1].double().requires_grad_()
    (gradient,) = torch.autograd.grad(model(image)[0, 1], image)
    place = (0, 1, 3, 4)
    change = torch.zeros_like(image)
    change[place] = 1e-6
    with torch.no_grad():
        slope = (model(image + change)[0, 1] - model(image - change)[0, 1]) / 2e-6
    torch.testing.assert_close(gradient[place], slope, rtol=1e-4, atol=1e-8)
