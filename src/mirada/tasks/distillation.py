"""Learning from a teacher beside the labels (Hinton 2015; with a token of its own: Touvron 2021, eqs. 2 and 3).

    hard   (1 − α) CE(ψ(Z), y) + α CE(ψ(Z′), argmax_c Z_t)
    soft   (1 − α) CE(ψ(Z), y) + α τ² KL(ψ(Z_t/τ) ‖ ψ(Z′/τ))

ψ turns logits into shares. Z is the student's output that learns the labels, Z′ the one that learns from the teacher:
the outputs of DeiT's two tokens; any other student has one, Z′ = Z. Z_t is what the teacher says of the same images, as
they are after augmentation and mixing. The paper has α = ½ for hard, and α = 0.1, τ = 3 for soft labels. KL is a mean
over images; the published code divides it by the number of classes too, and so follows the teacher that much less.

Shape letters: B batch, C classes.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.data.normalise import Normalisation
from mirada.tasks.image import Task

Kind = Literal["hard", "soft"]


class Teacher:
    """Logits of a trained model, without gradient and in evaluation, whatever happens around it.

    It sees pixels as it was trained on them: `normalisation` is its own, `given` is that of the images that come.
    """

    def __init__(self, model: nn.Module, normalisation: Normalisation, given: Normalisation) -> None:
        self.model = model.eval().requires_grad_(False)
        own, other = (torch.tensor([n.mean, n.std])[..., None, None] for n in (normalisation, given))
        self.is_used_to_them = torch.equal(own, other)
        self.scale_C11 = other[1] / own[1]
        self.shift_C11 = (other[0] - own[0]) / own[1]

    @torch.no_grad()
    def __call__(self, images_BCHW: Tensor) -> Tensor:
        if not self.is_used_to_them:
            images_BCHW = images_BCHW * self.scale_C11.to(images_BCHW) + self.shift_C11.to(images_BCHW)
        return self.model(images_BCHW)


class Distillation:
    """The objective of a student: the task's own loss and, with the share `weight` = α, what the teacher says."""

    def __init__(
        self, task: Task, teacher: Teacher, *, kind: Kind = "hard", temperature: float = 3.0, weight: float = 0.5
    ) -> None:
        self.task, self.teacher = task, teacher
        self.kind, self.temperature, self.weight = kind, temperature, weight

    def enrol(self, student: nn.Module) -> None:
        """A student with a token for the teacher gives both of its outputs from now on, in training."""
        if hasattr(student, "is_taught"):
            student.is_taught = True  # type: ignore[assignment]

    def __call__(self, student: nn.Module, images_BCHW: Tensor, targets: Tensor) -> Tensor:
        taught_BC = self.teacher(images_BCHW)
        outputs = student(images_BCHW)
        of_labels_BC, of_teacher_BC = outputs if isinstance(outputs, tuple) else (outputs, outputs)
        own = self.task.loss(of_labels_BC, targets)
        follow = hard_loss if self.kind == "hard" else soft_loss
        return (1 - self.weight) * own + self.weight * follow(of_teacher_BC, taught_BC, self.temperature)


def hard_loss(student_BC: Tensor, teacher_BC: Tensor, temperature: float) -> Tensor:
    """CE(ψ(Z′), argmax_c Z_t): the teacher's answer is as good as a label. No temperature changes which one it is."""
    return F.cross_entropy(student_BC, teacher_BC.argmax(-1))


def soft_loss(student_BC: Tensor, teacher_BC: Tensor, temperature: float) -> Tensor:
    """τ² KL(ψ(Z_t/τ) ‖ ψ(Z′/τ)); τ² keeps the gradient as large as that of labels (Hinton 2015, section 2)."""
    log_student, log_teacher = (F.log_softmax(z.float() / temperature, dim=-1) for z in (student_BC, teacher_BC))
    return temperature**2 * F.kl_div(log_student, log_teacher, log_target=True, reduction="batchmean")
