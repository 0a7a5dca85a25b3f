"""DeiT: parameter counts, its two tokens and heads, and what training gives with and without a teacher."""

import pytest
import torch
from transformers import DeiTConfig, DeiTForImageClassificationWithTeacher

from mirada.core import record
from mirada.errors import MiradaError
from mirada.systems import card, create
from tests.systems.common_checks import CHECKS, CLASSES, images, maker
from tests.weights.references import saved, shaken

PLAIN = {"Ti/16": 5_717_416, "S/16": 22_050_664, "B/16": 86_567_656}
DISTILLED = {"Ti/16-distilled": 5_910_800, "S/16-distilled": 22_436_432, "B/16-distilled": 87_338_192}


@pytest.mark.parametrize(("size", "count"), [*PLAIN.items(), *DISTILLED.items()])
def test_parameters_are_the_published_ones(size, count):
    with torch.device("meta"):
        model = create("deit", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_answer_is_the_mean_of_both_heads_and_training_with_a_teacher_gives_both():
    model = maker(card("deit"), stem="linear")().train()
    untaught = model(images())
    model.is_taught = True
    of_class, of_teacher = model(images())
    assert of_class.shape == of_teacher.shape == (3, CLASSES) and not torch.allclose(of_class, of_teacher)
    for answer in (untaught, model.eval()(images())):
        torch.testing.assert_close(answer, (of_class + of_teacher) / 2)


def test_heads_see_the_first_two_tokens():
    model = maker(card("deit"), stem="linear")().eval()
    tokens = []
    model.encoder.register_forward_hook(lambda module, args, output: tokens.append(output))
    features = model.features(images())
    torch.testing.assert_close(features, torch.cat([tokens[0][:, 0], tokens[0][:, 1]], dim=-1))
    model.is_taught = True
    of_class, of_teacher = model.train()(images())
    torch.testing.assert_close(of_class, model.head(features[:, :24]))
    torch.testing.assert_close(of_teacher, model.distillation_head(features[:, 24:]))


def test_both_tokens_are_in_front_of_the_patches():
    model = maker(card("deit"))().eval()
    rows, columns = model.grid(images())
    with record(model) as maps:
        model(images())
    assert model.num_extra == 2
    assert maps[0].shape[-2:] == (2 + rows * columns,) * 2
    assert model.position.weight.shape == (2 + rows * columns, 24)


def test_both_outputs_in_training_equal_transformers(tmp_path):
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    size = {"image_size": 20, "patch_size": 4, "num_channels": 5, "num_labels": 7}
    theirs = shaken(DeiTForImageClassificationWithTeacher(DeiTConfig(**shape, **size, hidden_dropout_prob=0.0)))
    ours = saved(theirs, tmp_path).model().train()
    ours.is_taught = True
    x = torch.randn(3, 5, 20, 20)
    found, expected = ours(x), theirs(x)
    torch.testing.assert_close(found, (expected.cls_logits, expected.distillation_logits), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("check", ["learns_with_every_parameter", "recording", "saves_and_loads"])
def test_plain_deit_passes_the_common_checks(check):
    CHECKS[check](maker(card("deit"), distillation="none"))


def test_plain_deit_has_one_output_even_if_taught():
    model = maker(card("deit"), distillation="none")().train()
    model.is_taught = True
    assert model(images()).shape == (3, CLASSES)


def test_starts_with_small_weights_as_published():
    model = create("deit", "S/16-distilled", image_size=(32, 32), in_channels=3, num_classes=101)
    for layer in (model.encoder.layers[0].mlp.inner.expand, model.encoder.layers[1].attention.inner.heads.to_q):
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.02) and not layer.bias.any()
    assert model.distillation_head.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_unknown_distillation_is_refused():
    with pytest.raises(MiradaError, match=r"distillation='tokens'.*did you mean 'token'"):
        maker(card("deit"))(distillation="tokens")
