"""Rotary positions, and one wrong sign."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mirada.core.position import rotate
from mirada.verbs.learn.demos.demo import Answer, Demo, Input, Mark, Number, Text, lines, matrix, same
from mirada.verbs.learn.drawing_weights import generator


def block(angle: Tensor, has_wrong_sign: bool = False) -> Tensor:
    """The 2 × 2 block that turns a column (a, b): the core's, or the last row of the lecture."""
    right = rotate(torch.eye(2, dtype=torch.float64), angle.cos()[None, None], angle.sin()[None, None], "interleaved").T
    return right * torch.tensor([[1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64) if has_wrong_sign else right


def rotary_sign(theta: float, position: int, shift: int) -> Answer:
    angle = torch.tensor(theta * position, dtype=torch.float64)
    numbers, pictures = [], []
    for has_wrong_sign in (False, True):
        turn = block(angle, has_wrong_sign)
        mark: Mark = "wrong" if has_wrong_sign else "right"
        name = Text("with −sin", "con −sen") if has_wrong_sign else Text("right", "correcto")
        numbers += [
            Number(Text(f"determinant, {name.en}", f"determinante, {name.es}"), torch.det(turn).item(), mark),
            Number(Text(f"largest entry of RᵀR − I, {name.en}", f"mayor entrada de RᵀR − I, {name.es}"),
                   (turn.T @ turn - torch.eye(2)).abs().max().item(), mark),
            Number(Text(f"change of q_i·k_j when both move by {shift}, {name.en}",
                        f"cambio de q_i·k_j si ambos se mueven {shift}, {name.es}"),
                   _change(theta, position, shift, has_wrong_sign), mark),
        ]  # fmt: skip
        pictures.append(matrix(name, turn, ("a", "b"), ("a", "b"), 3))
    angles = [math.pi * i / 40 for i in range(81)]
    return Answer(
        numbers,
        [
            *pictures,
            lines(Text("determinant against the angle", "determinante según el ángulo"), same("i·θ"), angles, {
                Text("right: 1", "correcto: 1"): [torch.det(block(torch.tensor(a).double())).item() for a in angles],
                Text("with −sin: cos 2iθ", "con −sen: cos 2iθ"):
                    [torch.det(block(torch.tensor(a).double(), True)).item() for a in angles],
            }, marker=float(angle % (2 * math.pi))),
        ],
    )  # fmt: skip


def _change(theta: float, position: int, shift: int, has_wrong_sign: bool) -> float:
    """What should be zero: the score of two tokens depends on their distance alone."""
    q, k = torch.randn(2, 2, generator=generator(0, "rotary"), dtype=torch.float64)

    def score(i: int, j: int) -> Tensor:
        at_i, at_j = (block(torch.tensor(theta * at, dtype=torch.float64), has_wrong_sign) for at in (i, j))
        return (at_i @ q) @ (at_j @ k)

    return (score(position + shift, position + 2 + shift) - score(position, position + 2)).abs().item()


DEMOS = (
    Demo(
        "rotary-sign",
        ("E33", "C9"),
        Text("One sign, and nothing turns", "Un signo, y nada gira"),
        "última fila del bloque: (−sin iθ, cos iθ)",
        Text(
            "(sin iθ, cos iθ). Only then is the block a rotation: determinant 1, RᵀR = I, and q_iᵀk_j depends on j −"
            " i alone. With the sign of the lecture the determinant is cos 2iθ.",
            "(sen iθ, cos iθ). Solo así el bloque es una rotación: determinante 1, RᵀR = I, y q_iᵀk_j depende solo "
            "de j − i. Con el signo de la clase el determinante es cos 2iθ.",
        ),
        Text(
            "At iθ = 0.7 the determinant is 0.170 where it should be 1; and moving both tokens changes their score, "
            "which is what rotary positions are there to prevent.",
            "En iθ = 0,7 el determinante es 0,170 donde debería ser 1; y mover ambos tokens cambia su puntaje, justo"
            " lo que las posiciones rotatorias deben evitar.",
        ),
        (
            Input("theta", same("θ"), 0.7, 0, 3.2, 0.1),
            Input("position", Text("position i", "posición i"), 1, 0, 64),
            Input("shift", Text("move both by", "mover ambos"), 3, 0, 64),
        ),
        rotary_sign,
    ),
)
