"""Codes of positions: those that lectures start from, and the one of the paper."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mirada.core import Sinusoidal, line
from mirada.core.position import didactic, sinusoidal_table
from mirada.errors import MiradaError
from mirada.verbs.learn.demos.demo import Answer, Demo, Input, Number, Text, lines, matrix, same

ROBOT = ("I", "am", "a", "Robot")
WARM_UP = 4000  # steps of the paper's schedule


def sinusoidal(dim: int, base: float, length: int) -> Answer:
    if dim % 2:
        raise MiradaError(f"dim is {dim}: must be even, a sine and a cosine for each wavelength")
    table = Sinusoidal(dim, base=base).table(line(length))
    words = [ROBOT[i] if i < len(ROBOT) else str(i) for i in range(length)]
    return Answer(
        [
            Number(Text("squared length of every code (d/2)", "longitud al cuadrado de cada código (d/2)"),
                   table.square().sum(-1).mean().item(), "right"),
            Number(Text("largest error of PE(pos + 3) = R₃ PE(pos)", "mayor error de PE(pos + 3) = R₃ PE(pos)"),
                   _shift_error(dim, base, 3), "right"),
            Number(Text(f"longest wave, base {base:g}", f"onda más larga, base {base:g}"),
                   _longest(dim, base), "right"),
            Number(Text("longest wave if the base were the warm-up (4000)",
                        "onda más larga si la base fuera el calentamiento (4000)"), _longest(dim, WARM_UP), "wrong"),
        ],
        [matrix(Text("PE(pos, channel)", "PE(pos, canal)"), table, words, range(dim))],
    )  # fmt: skip


def _longest(dim: int, base: float) -> float:
    """Wavelength of the last pair of channels, in positions."""
    return 2 * math.pi * base ** ((dim - 2) / dim)


def _shift_error(dim: int, base: float, step: int) -> float:
    """Moving by `step` is the same rotation at every position: R has the angles step · base^{−2m/D}."""
    table = sinusoidal_table(torch.arange(50), dim, base)
    angle = step * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    sin, cos = table[:-step, 0::2], table[:-step, 1::2]
    turned = torch.stack([sin * angle.cos() + cos * angle.sin(), cos * angle.cos() - sin * angle.sin()], dim=-1)
    return (turned.flatten(1) - table[step:]).abs().max().item()


def collision(position: int, length: int, other_position: int, other_length: int) -> Answer:
    if position > length or other_position > other_length:
        raise MiradaError(
            f"position {position} of {length} and {other_position} of {other_length}: a sentence ends there"
        )
    codes = [didactic.normalised(torch.tensor([pos]), n).item()
             for pos, n in ((position, length), (other_position, other_length))]  # fmt: skip
    waves = sinusoidal_table(torch.tensor([position, other_position]), 16)
    steps = range(max(length, other_length) + 1)
    return Answer(
        [
            Number(Text(f"pos/N of position {position} of {length}", f"pos/N de la posición {position} de {length}"),
                   codes[0], "wrong"),
            Number(Text(f"pos/N of position {other_position} of {other_length}",
                        f"pos/N de la posición {other_position} de {other_length}"), codes[1], "wrong"),
            Number(Text("difference of the two codes", "diferencia de los dos códigos"),
                   abs(codes[0] - codes[1]), "wrong"),
            Number(Text("distance of their sinusoidal codes, d = 16", "distancia de sus códigos sinusoidales, d = 16"),
                   (waves[0] - waves[1]).norm().item(), "right"),
        ],
        [lines(Text("the code of each position", "el código de cada posición"), Text("position", "posición"), steps,
               {same(f"N = {n}"): didactic.normalised(torch.arange(len(steps)), n)[:, 0].tolist()
                for n in dict.fromkeys((length, other_length))})],
    )  # fmt: skip


def binary(position: int, num_bits: int) -> Answer:
    if position >= 2**num_bits:
        raise MiradaError(f"position {position} needs more than {num_bits} bits: give more bits or a smaller position")
    shown, num_shown = torch.arange(16), max(4, min(num_bits, 6))
    code = didactic.binary(torch.tensor([position]), num_bits)
    table = didactic.binary(torch.arange(2**num_bits), num_bits)
    flips = (table[1:] != table[:-1]).sum(0)
    return Answer(
        [
            Number(Text(f"flips of the last bit over {2**num_bits} positions",
                        f"cambios del último bit en {2**num_bits} posiciones"), flips[-1].item()),
            Number(Text("flips of the first bit", "cambios del primer bit"), flips[0].item()),
            Number(Text("channels that change from 7 to 8", "canales que cambian de 7 a 8"),
                   (didactic.binary(torch.tensor([7]), 16) != didactic.binary(torch.tensor([8]), 16)).sum().item(),
                   "wrong"),
        ],
        [
            matrix(Text(f"code of position {position}", f"código de la posición {position}"),
                   code, [position], _bits(num_bits), 0),
            matrix(Text("bit b flips every 2^b positions", "el bit b cambia cada 2^b posiciones"),
                   didactic.binary(shown, num_shown), shown.tolist(), _bits(num_shown), 0),
        ],
    )  # fmt: skip


def _bits(num_bits: int) -> list[str]:
    return [f"2^{bit}" for bit in range(num_bits - 1, -1, -1)]


def harmonic(dim: int, length: int) -> Answer:
    position = torch.arange(length)
    toy, paper = didactic.harmonic(position, dim).double(), sinusoidal_table(position, dim)
    waves = {Text(f"sin(pos/{m})", f"sen(pos/{m})"): toy[:, m - 1].tolist() for m in range(1, min(dim, 4) + 1)}
    return Answer(
        [
            Number(Text("longest wave of the toy code (2π·d)", "onda más larga del código de juguete (2π·d)"),
                   2 * math.pi * dim, "wrong"),
            Number(Text("longest wave of the paper's code", "onda más larga del código del artículo"),
                   2 * math.pi * 10_000 ** (2 * ((dim - 1) // 2) / dim), "right"),
            Number(Text("least distance of two positions, toy code", "menor distancia de dos posiciones, de juguete"),
                   _least_distance(toy), "wrong"),
            Number(Text("least distance of two positions, paper's code",
                        "menor distancia de dos posiciones, del artículo"), _least_distance(paper), "right"),
        ],
        [lines(Text("the first channels of the toy code", "los primeros canales del código de juguete"),
               Text("position", "posición"), position.tolist(), waves)],
    )  # fmt: skip


def _least_distance(codes_ND: Tensor) -> float:
    return torch.pdist(codes_ND).min().item()


DEMOS = (
    Demo(
        "sinusoidal-table",
        ("C5", "E29", "E30"),
        Text("Sines and cosines: the base is no warm-up", "Senos y cosenos: la base no es el calentamiento"),
        "pe_{2t} = sin(t / warm^{2t/d}),  pe_{2t+1} = cos(t / warm^{2t/d})",
        Text(
            "PE(pos, 2i) = sin(pos / n^{2i/d}), PE(pos, 2i+1) = cos(pos / n^{2i/d}): position and channel are two "
            "letters, and n = 10000 is the base of the wavelengths. The warm-up (4000 steps) belongs to the learning"
            " rate. The other lecture's table has n = 100, which is fine: n is a parameter.",
            "PE(pos, 2i) = sen(pos / n^{2i/d}), PE(pos, 2i+1) = cos(pos / n^{2i/d}): posición y canal son dos "
            "letras, y n = 10000 es la base de las longitudes de onda. El calentamiento (4000 pasos) es de la tasa "
            "de aprendizaje. La tabla de la otra clase usa n = 100, y está bien: n es un parámetro.",
        ),
        Text(
            "With d = 4 and n = 100 this is the table of “I am a Robot”. Each code has the same length, and a step "
            "is the same rotation everywhere.",
            "Con d = 4 y n = 100 es la tabla de “I am a Robot”. Todos los códigos tienen la misma longitud, y un "
            "paso es la misma rotación en todas partes.",
        ),
        (
            Input("dim", same("d"), 4, 2, 32, 2),
            Input("base", Text("base n", "base n"), 100, 2, 100_000),
            Input("length", Text("positions", "posiciones"), 4, 1, 24),
        ),
        sinusoidal,
    ),
    Demo(
        "normalised-position",
        ("C2",),
        Text("pos/N: two places, one code", "pos/N: dos lugares, un código"),
        "4/6 = 0,66 = 2/3 «¿posición 2 o 4?»",
        Text(
            "The lecture's own objection, computed: position 4 of 6 and position 2 of 3 have the same code, so "
            "distance between words depends on the length of the sentence.",
            "La propia objeción de la clase, calculada: la posición 4 de 6 y la 2 de 3 tienen el mismo código, así "
            "que la distancia entre palabras depende del largo de la oración.",
        ),
        Text(
            "The difference is zero where the two fractions agree; the sinusoidal codes of the two places stay apart.",
            "La diferencia es cero donde las dos fracciones coinciden; los códigos sinusoidales de los dos lugares "
            "quedan separados.",
        ),
        (
            Input("position", Text("position", "posición"), 4, 0, 64),
            Input("length", Text("of", "de"), 6, 1, 64),
            Input("other_position", Text("other position", "otra posición"), 2, 0, 64),
            Input("other_length", Text("of", "de"), 3, 1, 64),
        ),
        collision,
    ),
    Demo(
        "binary-code",
        ("C3", "E27"),
        Text("Positions in binary", "Posiciones en binario"),
        "3 → 0 0 0 … 0 1 1",
        Text(
            "A way to explain, not the usual method: sinusoids are used, and they are computed, not learned. Bits "
            "jump: from 7 to 8 four channels change at once, where sines change a little.",
            "Un modo de explicar, no el método usual: se usan sinusoides, y se calculan, no se aprenden. Los bits "
            "saltan: de 7 a 8 cambian cuatro canales a la vez, donde los senos cambian poco.",
        ),
        Text(
            "Bit b flips every 2^b positions: fast channels on the right, slow ones on the left, as with the "
            "sinusoids.",
            "El bit b cambia cada 2^b posiciones: canales rápidos a la derecha, lentos a la izquierda, como en las "
            "sinusoides.",
        ),
        (
            Input("position", Text("position", "posición"), 3, 0, 255),
            Input("num_bits", Text("bits", "bits"), 8, 1, 8),
        ),
        binary,
    ),
    Demo(
        "harmonic-code",
        ("C4", "E28"),
        Text("Harmonic waves are not the paper's", "Ondas armónicas no son las del artículo"),
        "Sen(1/1·pos), Sen(1/2·pos), Sen(1/3·pos)",
        Text(
            "A toy: its wavelengths grow by a fixed amount (2π, 4π, 6π …). Those of the paper grow by a factor, "
            "10000^{2/d}, and come in pairs of sine and cosine.",
            "Un juguete: sus longitudes de onda crecen en una cantidad fija (2π, 4π, 6π …). Las del artículo crecen "
            "por un factor, 10000^{2/d}, y vienen en pares de seno y coseno.",
        ),
        Text(
            "With few channels the toy code soon comes back near a code it had before: the least distance is small.",
            "Con pocos canales el código de juguete pronto vuelve cerca de un código anterior: la menor distancia es"
            " pequeña.",
        ),
        (
            Input("dim", Text("channels", "canales"), 3, 2, 32),
            Input("length", Text("positions", "posiciones"), 100, 2, 400),
        ),
        harmonic,
    ),
)
