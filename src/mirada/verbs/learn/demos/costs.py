"""What attention and training cost: windows against all pairs, and the learning rate over the steps."""

from __future__ import annotations

from mirada.core import attention_flops
from mirada.errors import MiradaError
from mirada.train.schedule import learning_rate, noam_peak
from mirada.verbs.learn.demos.demo import Answer, Demo, Input, Number, Text, lines, same

STEPS = (1, 100, 100_000)


def as_given(step: int, dim: int, warmup: int) -> float:
    """η = 1/√d · min{1/√t, t/√(ω³)}: the lecture's formula, t from 1."""
    return dim**-0.5 * min(step**-0.5, step / (warmup**3) ** 0.5)


def noam(dim: int, warmup: int) -> Answer:
    def rate(step: int) -> float:
        return learning_rate(step - 1, peak=noam_peak(dim, warmup), total=10**6, warmup=warmup, schedule="noam")

    steps = sorted({max(1, round(10 ** (power / 8))) for power in range(49)} | {warmup})
    difference = max(abs(rate(step) / as_given(step, dim, warmup) - 1) for step in steps)
    return Answer(
        [
            *(Number(Text(f"rate at step {step}", f"tasa en el paso {step}"), rate(step)) for step in STEPS),
            Number(Text(f"rate at the end of the warm-up, step {warmup}: the peak",
                        f"tasa al final del calentamiento, paso {warmup}: el máximo"), rate(warmup), "right"),
            Number(Text("step of the highest rate", "paso de la tasa mayor"), max(steps, key=rate), "right"),
            Number(Text("largest relative difference to the lecture's formula",
                        "mayor diferencia relativa con la fórmula de la clase"), difference, "right"),
        ],
        [lines(Text("learning rate", "tasa de aprendizaje"), Text("step t", "paso t"), steps,
               {same("Noam"): [rate(step) for step in steps]}, log_x=True, log_y=True, marker=warmup)],
    )  # fmt: skip


def windows_cost(height: int, width: int, channels: int, window: int) -> Answer:
    if height % window or width % window:
        raise MiradaError(
            f"{height} × {width} cells are not whole windows of {window}: choose sides that {window} divides"
        )
    num_tokens = height * width
    everyone = attention_flops(num_tokens, channels) // 2
    within = attention_flops(num_tokens, channels, window=window) // 2
    sides = [window * factor for factor in (1, 2, 4, 8, 16, 32, 64)]
    return Answer(
        [
            Number(same("Ω(MSA) = 4hwC² + 2(hw)²C"), everyone),
            Number(same("Ω(W-MSA) = 4hwC² + 2M²hwC"), within),
            Number(Text("times cheaper", "veces más barato"), everyone / within),
            Number(Text("share of the projections in MSA", "parte de las proyecciones en MSA"),
                   4 * num_tokens * channels**2 / everyone),
        ],
        [lines(Text("multiplications of one layer", "multiplicaciones de una capa"),
               Text("side of the image in cells, h = w", "lado de la imagen en celdas, h = w"), sides, {
                   Text("all pairs (MSA)", "todos los pares (MSA)"):
                       [attention_flops(side**2, channels) // 2 for side in sides],
                   Text("windows (W-MSA)", "ventanas (W-MSA)"):
                       [attention_flops(side**2, channels, window=window) // 2 for side in sides],
               }, log_x=True, log_y=True, marker=height if height == width else None)],
    )  # fmt: skip


DEMOS = (
    Demo(
        "windows-cost",
        ("B22", "E21"),
        Text("All pairs against windows", "Todos los pares contra ventanas"),
        "Ω(MSA) = 4hwC² + 2(hw)²C «(Height, Weight, Channel)»",
        Text(
            "The formula is right (Swin, eq. 1; the softmax is left out); it is Width, not Weight. Its companion for"
            " windows of M × M is Ω(W-MSA) = 4hwC² + 2M²hwC: linear in the number of cells.",
            "La fórmula es correcta (Swin, ec. 1; sin contar el softmax); es Width, no Weight. Su compañera para "
            "ventanas de M × M es Ω(W-MSA) = 4hwC² + 2M²hwC: lineal en el número de celdas.",
        ),
        Text(
            "On log scales the slopes tell: four in the side for all pairs, two for windows.",
            "En escalas logarítmicas hablan las pendientes: cuatro en el lado para todos los pares, dos para ventanas.",
        ),
        (
            Input("height", Text("height h", "alto h"), 56, 1, 512),
            Input("width", Text("width w", "ancho w"), 56, 1, 512),
            Input("channels", Text("channels C", "canales C"), 96, 1, 2048),
            Input("window", Text("window M", "ventana M"), 7, 1, 64),
        ),
        windows_cost,
    ),
    Demo(
        "noam",
        ("H5", "E48", "E29"),
        Text("Noam is a schedule, with its peak at the warm-up", "Noam es un plan, con su máximo al calentar"),
        "«optimizador Noam»: η = 1/√d · mín{1/√t, t/√(ω³)}",
        Text(
            "The formula is the paper's. But it is a schedule of the learning rate for Adam(0.9, 0.98, 1e-9), not an"
            " optimiser; and ω, the warm-up, has nothing to do with the base 10000 of the sinusoidal positions.",
            "La fórmula es la del artículo. Pero es un plan de la tasa de aprendizaje para Adam(0,9, 0,98, 1e-9), no"
            " un optimizador; y ω, el calentamiento, no tiene que ver con la base 10000 de las posiciones "
            "sinusoidales.",
        ),
        Text(
            "A straight rise to step ω, then a fall like 1/√t. Wider models and longer warm-ups have a lower peak.",
            "Una subida recta hasta el paso ω, luego una caída como 1/√t. Modelos más anchos y calentamientos más "
            "largos tienen un máximo menor.",
        ),
        (
            Input("dim", Text("width d", "ancho d"), 512, 1, 8192),
            Input("warmup", Text("warm-up ω", "calentamiento ω"), 4000, 1, 100_000),
        ),
        noam,
    ),
)
