"""Distillation: losses by hand, both outputs or one, a teacher that never learns and sees its own pixels."""

import math

import pytest
import torch
from torch import nn

from mirada.data.normalise import Normalisation
from mirada.systems import card
from mirada.tasks.distillation import Distillation, Teacher, hard_loss, soft_loss
from mirada.tasks.single_label import SingleLabel
from tests.systems.common_checks import maker

SAME = Normalisation((0.5,), (0.25,))
NAMES = ("a", "b", "c")


class Fixed(nn.Module):
    """The same outputs whatever comes."""

    def __init__(self, *outputs):
        super().__init__()
        self.outputs = nn.ParameterList([torch.tensor(output) for output in outputs])

    def forward(self, images):
        return self.outputs[0] if len(self.outputs) == 1 else tuple(self.outputs)


def log_shares(logits):
    total = sum(math.exp(z) for z in logits)
    return [z - math.log(total) for z in logits]


def teacher_of(*rows):
    return Teacher(Fixed([list(row) for row in rows]), SAME, SAME)


def test_hard_loss_is_the_cross_entropy_of_the_teachers_answer():
    student, teacher = [0.5, -1.0, 2.0], [1.0, 4.0, 3.0]
    found = hard_loss(torch.tensor([student]), torch.tensor([teacher]), temperature=3.0)
    assert found.item() == pytest.approx(-log_shares(student)[1])


def test_soft_loss_is_the_divergence_at_a_temperature():
    student, teacher, t = [0.5, -1.0, 2.0], [1.0, 4.0, 3.0], 3.0
    p, q = (log_shares([z / t for z in logits]) for logits in (teacher, student))
    divergence = sum(math.exp(a) * (a - b) for a, b in zip(p, q, strict=True))
    rows = torch.tensor([student, teacher]), torch.tensor([teacher, teacher])
    found = soft_loss(*rows, temperature=t)
    assert found.item() == pytest.approx(t**2 * divergence / 2)  # the second image adds nothing


def test_two_outputs_learn_from_labels_and_teacher():
    of_labels, of_teacher, taught = [0.5, -1.0, 2.0], [0.0, 1.0, -2.0], [3.0, 1.0, 1.0]
    objective = Distillation(SingleLabel(NAMES), teacher_of(taught), kind="hard", weight=0.5)
    loss = objective(Fixed([of_labels], [of_teacher]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
    assert loss.item() == pytest.approx(0.5 * -log_shares(of_labels)[2] + 0.5 * -log_shares(of_teacher)[0])


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_one_output_takes_both_losses(kind):
    output, taught = [0.5, -1.0, 2.0], [3.0, 1.0, 1.0]
    student = Fixed([output])
    objective = Distillation(SingleLabel(NAMES), teacher_of(taught), kind=kind, temperature=2.0, weight=0.3)
    loss = objective(student, torch.zeros(1, 1, 2, 2), torch.tensor([2]))
    rows = torch.tensor([output]), torch.tensor([taught])
    followed = (hard_loss if kind == "hard" else soft_loss)(*rows, 2.0).item()
    assert loss.item() == pytest.approx(0.7 * -log_shares(output)[2] + 0.3 * followed)
    loss.backward()
    assert student.outputs[0].grad.any()


def test_label_smoothing_and_mixed_labels_are_for_the_labels_only():
    output = torch.tensor([[0.5, -1.0, 2.0]])
    task = SingleLabel(NAMES, label_smoothing=0.1)
    objective = Distillation(task, teacher_of([3.0, 1.0, 1.0]), weight=0.5)
    shares = torch.tensor([[0.7, 0.3, 0.0]])
    expected = 0.5 * task.loss(output, shares) + 0.5 * hard_loss(output, torch.tensor([[3.0, 1.0, 1.0]]), 1.0)
    torch.testing.assert_close(objective(Fixed(output.tolist()), torch.zeros(1, 1, 2, 2), shares), expected)


def test_without_weight_it_is_the_task():
    output = [[0.5, -1.0, 2.0]]
    objective = Distillation(SingleLabel(NAMES), teacher_of([3.0, 1.0, 1.0]), weight=0.0)
    expected = SingleLabel(NAMES).loss(torch.tensor(output), torch.tensor([1]))
    torch.testing.assert_close(objective(Fixed(output), torch.zeros(1, 1, 2, 2), torch.tensor([1])), expected)


def test_teacher_sees_the_pixels_it_was_trained_on():
    own, given = Normalisation((0.1, 0.7), (0.5, 0.2)), Normalisation((0.3, 0.4), (0.25, 0.3))
    seen = []
    model = nn.Identity()
    model.register_forward_hook(lambda module, args, output: seen.append(args[0]))
    pixels = torch.rand(3, 2, 5, 7)
    for normalisation in (own, given):
        Teacher(model, own, normalisation)(normalisation.apply(pixels))
        torch.testing.assert_close(seen.pop(), own.apply(pixels))


def test_teacher_never_learns_and_stays_in_evaluation():
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 3)).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    student = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    objective = Distillation(SingleLabel(NAMES), Teacher(model, SAME, SAME), kind="soft")
    images = torch.randn(5, 1, 2, 2)
    state = torch.get_rng_state()
    objective(student.train(), images, torch.zeros(5, dtype=torch.long)).backward()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(parameter.grad.any() for parameter in student.parameters())


def test_deit_gives_both_outputs_once_enrolled_and_each_head_learns_from_its_own():
    student = maker(card("deit"))().train()
    taught = [[0.0, 0.0, 9.0, 0.0, 0.0]] * 3
    for weight, idle in ((0.0, "distillation_head.weight"), (1.0, "head.weight")):
        objective = Distillation(SingleLabel("abcde"), teacher_of(*taught), weight=weight)
        objective.enrol(student)
        student.zero_grad()
        objective(student, torch.randn(3, 2, 13, 17), torch.tensor([0, 1, 2])).backward()
        heads = {name: p.grad.any().item() for name, p in student.named_parameters() if "head.weight" in name}
        assert heads == {name: name != idle for name in ("head.weight", "distillation_head.weight")}
