"""Without a position attention does not see order."""

from __future__ import annotations

import torch

from mirada.core import Attention, Concatenated, Rotary, Sinusoidal, line, record
from mirada.verbs.learn.demos.demo import Answer, Demo, Input, Mark, Number, Text, matrix, same
from mirada.verbs.learn.drawing_weights import draw_weights, word_vectors

DIM = 16
WORDS = ("el", "perro", "muerde", "al", "hombre")
ORDER = [0, 4, 2, 3, 1]  # el hombre muerde al perro


def order_blindness(position: str, seed: int) -> Answer:
    layer = Attention(Concatenated(DIM, 1), position=Rotary(DIM) if position == "rotary" else None).eval()
    draw_weights(layer, seed)
    x = word_vectors(WORDS, DIM, seed)[None]

    def run(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if position == "sinusoidal":
            tokens = Sinusoidal(DIM)(tokens, line(len(WORDS)))
        with torch.no_grad(), record(layer) as maps:
            return layer(tokens)[0], maps[0][0, 0]

    (out, weights), (other, other_weights) = run(x), run(x[:, ORDER])
    shuffled = [WORDS[i] for i in ORDER]
    mark: Mark = "" if position == "none" else "right"
    return Answer(
        [
            Number(Text("largest difference |f(Px) − P f(x)|", "mayor diferencia |f(Px) − P f(x)|"),
                   (other - out[ORDER]).abs().max().item(), mark),
            Number(Text("“muerde” → “perro” in the first sentence", "“muerde” → “perro” en la primera oración"),
                   weights[2, 1].item()),
            Number(Text("“muerde” → “perro” in the second", "“muerde” → “perro” en la segunda"),
                   other_weights[2, 4].item()),
        ],
        [
            matrix(same("el perro muerde al hombre"), weights, WORDS, WORDS),
            matrix(same("el hombre muerde al perro"), other_weights, shuffled, shuffled),
        ],
    )  # fmt: skip


DEMOS = (
    Demo(
        "order-blindness",
        ("B28",),
        Text("Blind to order without a position", "Ciega al orden sin una posición"),
        "«¡Sin importar el orden!»",
        Text(
            "f(Px) = P f(x) exactly: shuffled words give the shuffled result. Any position breaks this.",
            "f(Px) = P f(x) exactamente: palabras barajadas dan el resultado barajado. Cualquier posición lo rompe.",
        ),
        Text(
            "With no position who bites whom makes no difference: the number is zero but for rounding. Choose a "
            "position and it is not.",
            "Sin posición da igual quién muerde a quién: el número es cero salvo redondeo. Elija una posición y deja"
            " de serlo.",
        ),
        (
            Input("position", Text("position", "posición"), "none", choices=("none", "sinusoidal", "rotary")),
            Input("seed", Text("seed", "semilla"), 0, 0, 999),
        ),
        order_blindness,
    ),
)
