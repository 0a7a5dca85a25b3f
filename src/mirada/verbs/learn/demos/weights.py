"""Where weights come from: the table of keys and queries, the convex combination, the scale of the logits."""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.core import Attend, Dot, ScaledDot, record
from mirada.errors import MiradaError
from mirada.verbs.learn.demos.demo import Answer, Demo, Input, Mark, Number, Points, Text, lines, matrix, same
from mirada.verbs.learn.drawing_weights import generator

KEYS = ("a", "fluffy", "blue", "creature", "roamed", "the")
QUERIES = ("creature", "roamed", "verdant")
HIDDEN = -90.0

WORDS = ("el", "gato", "negro", "salta", "la", "cuerda")
VALUES = torch.tensor([[0.0, 0.2], [1.0, 3.0], [3.2, 2.6], [4.2, 0.8], [0.6, 1.3], [2.4, -0.4]])

WIDTHS = (4, 16, 64, 256, 512, 1024)
SCALES = {same("q·k"): 0.0, same("q·k / √d_k"): -0.5, same("q·k / d_k"): -1.0}


def weights_of(logits_NM: Tensor) -> Tensor:
    """The core's weights of given logits: a one-hot query meets key j in the entry (i, j)."""
    num_queries = len(logits_NM)
    q, k = torch.eye(num_queries)[None, None], logits_NM.T[None, None].contiguous()
    attend = Attend(Dot())
    with torch.no_grad(), record(attend) as maps:
        attend(q, k, k)
    return maps[0][0, 0]


def key_query_table(gap: float, the: float) -> Answer:
    table_KQ = torch.full((6, 3), HIDDEN)
    for key, query, logit in (("fluffy", 0, 0.0), ("blue", 0, gap), ("creature", 1, 0.0), ("creature", 2, 0.0)):
        table_KQ[KEYS.index(key), query] = logit
    table_KQ[KEYS.index("the"), 1:] = the
    down, across = weights_of(table_KQ.T).T, weights_of(table_KQ)
    return Answer(
        [
            Number(same("creature → fluffy"), down[1, 0].item(), "right"),
            Number(same("creature → blue"), down[2, 0].item(), "right"),
            Number(same("roamed → the"), down[5, 1].item(), "right"),
            Number(same("verdant → creature"), down[3, 2].item(), "right"),
            Number(Text("sum of the column “creature”, softmax down the columns",
                        "suma de la columna “creature”, softmax por columnas"), down[:, 0].sum().item(), "right"),
            Number(Text("the same sum, softmax along the rows", "la misma suma, softmax por filas"),
                   across[:, 0].sum().item(), "wrong"),
        ],
        [
            matrix(Text("down the columns: over the keys", "por columnas: sobre las claves"), down, KEYS, QUERIES, 4),
            matrix(Text("along the rows: over the queries", "por filas: sobre las consultas"),
                   across, KEYS, QUERIES, 4),
        ],
    )  # fmt: skip


def convex_combination(gato: float, negro: float) -> Answer:
    rest = (1 - gato - negro) / 4
    if rest < 0:
        raise MiradaError(f"gato {gato:g} and negro {negro:g} are more than 1 together: the weights sum to one")
    weights = torch.tensor([rest, gato, negro, rest, rest, rest])
    mixed = Attend(Dot())(torch.ones(1, 1, 1, 1), weights.log().reshape(1, 1, 6, 1), VALUES[None, None])[0, 0, 0]
    is_inside = bool((VALUES.amin(0) <= mixed).all() and (mixed <= VALUES.amax(0)).all())
    return Answer(
        [
            Number(Text("sum of the weights", "suma de los pesos"), weights.double().sum().item(), "right"),
            Number(Text("h_negro, first channel", "h_negro, primer canal"), mixed[0].item()),
            Number(Text("h_negro, second channel", "h_negro, segundo canal"), mixed[1].item()),
            Number(Text("between the least and the greatest value (1: yes)",
                        "entre el valor menor y el mayor (1: sí)"), float(is_inside), "right"),
        ],
        [
            matrix(Text("weights of “negro”", "pesos de “negro”"), weights[None], ["negro"], WORDS, 3),
            Points(Text("the mixture lies between the values", "la mezcla queda entre los valores"),
                   [*WORDS, "h_negro"], [*VALUES.tolist(), mixed.tolist()], weights.tolist()),
        ],
    )  # fmt: skip


def scale(width: int, num_keys: int) -> Answer:
    numbers, entropies, spreads = [], {}, {}
    for label, power in SCALES.items():
        measured = {d: _spread_and_entropy(d, d**power, num_keys) for d in sorted({*WIDTHS, width})}
        spreads[label], entropies[label] = ([measured[d][which] for d in WIDTHS] for which in (0, 1))
        mark: Mark = "right" if power == -0.5 else "wrong"
        std, entropy = measured[width][:2]
        numbers += [
            Number(Text(f"std of the logits, {label.en}", f"desviación de los logits, {label.es}"), std, mark),
            Number(Text(f"entropy of the weights, {label.en}", f"entropía de los pesos, {label.es}"), entropy, mark),
        ]
    uniform = Number(Text("entropy of equal weights", "entropía de pesos iguales"), torch.tensor(num_keys).log().item())
    axis = same("d_k")
    return Answer(
        [*numbers, uniform],
        [
            lines(Text("std of the logits", "desviación de los logits"), axis, WIDTHS, spreads,
                  log_x=True, log_y=True, marker=width),
            lines(Text("entropy of the weights", "entropía de los pesos"), axis, WIDTHS, entropies,
                  log_x=True, marker=width),
        ],
    )  # fmt: skip


def _spread_and_entropy(width: int, factor: float, num_keys: int) -> tuple[float, float]:
    """Of 256 random queries; the spread is that of all their logits with 256 keys, whatever number is looked at."""
    own = generator(width, "scale")
    q, k = (torch.randn(1, 1, 256, width, generator=own) for _ in range(2))
    score = ScaledDot(factor)
    attend = Attend(score)
    with torch.no_grad(), record(attend) as maps:
        attend(q, k[:, :, :num_keys], k[:, :, :num_keys])
    weights = maps[0]
    return score(q, k).std().item(), torch.special.entr(weights).sum(-1).mean().item()


DEMOS = (
    Demo(
        "key-query-table",
        ("B15", "E16"),
        Text("Which way the softmax runs", "En qué sentido va el softmax"),
        "Tabla K·Q de «a fluffy blue creature roamed the verdant forest»: claves en las filas, consultas en las "
        "columnas (faltan las filas «verdant» y «forest»)",
        Text(
            "The table is the transpose of the usual picture. Both are right as long as the softmax runs over the "
            "keys: down the columns here. The logits were chosen to give the weights of the lecture in three of its "
            "columns.",
            "La tabla es la transpuesta de la figura usual. Ambas valen mientras el softmax vaya sobre las claves: "
            "aquí por columnas. Los logits se eligieron para dar los pesos de la clase en tres de sus columnas.",
        ),
        Text(
            "A gap of 0.4 between two logits makes 0.4013 against 0.5987. Along the rows the column no longer sums "
            "to one, so it is no average.",
            "Una diferencia de 0,4 entre dos logits da 0,4013 contra 0,5987. Por filas la columna ya no suma uno: no"
            " es un promedio.",
        ),
        (
            Input("gap", Text("logit of “blue” above “fluffy”", "logit de “blue” sobre “fluffy”"), 0.4, -5, 5, 0.1),
            Input("the", Text("logit of “the” above “creature”", "logit de “the” sobre “creature”"), 4.9, -10, 10, 0.1),
        ),
        key_query_table,
    ),
    Demo(
        "convex-combination",
        ("B16",),
        Text("A mixture lies between what it mixes", "Una mezcla queda entre lo que mezcla"),
        "h_negro = 0.025 v_el + 0.4 v_gato + 0.5 v_negro + 0.025 v_salta + 0.025 v_la + 0.025 v_cuerda",
        Text(
            "Right as given: the weights are positive and sum to one, so the result lies in the convex hull of the "
            "values. The four other words share what is left.",
            "Correcto tal como está: los pesos son positivos y suman uno, así que el resultado está en la envolvente"
            " convexa de los valores. Las otras cuatro palabras comparten el resto.",
        ),
        Text(
            "Move the weights: the mixture moves, and never leaves the area that the values span.",
            "Mueva los pesos: la mezcla se mueve y nunca sale del área que abarcan los valores.",
        ),
        (
            Input("gato", Text("weight of gato", "peso de gato"), 0.4, 0, 0.95, 0.05),
            Input("negro", Text("weight of negro", "peso de negro"), 0.5, 0, 0.95, 0.05),
        ),
        convex_combination,
    ),
    Demo(
        "scale",
        ("E11", "B10", "B23"),
        Text("Divide by √d_k, not by d_k", "Dividir por √d_k, no por d_k"),
        "softmax(QKᵀ / d_k)",
        Text(
            "softmax(QKᵀ / √d_k). A dot product of d_k random terms spreads like √d_k: dividing by its root keeps "
            "the spread at one, at every width.",
            "softmax(QKᵀ / √d_k). Un producto punto de d_k términos aleatorios se dispersa como √d_k: dividir por su"
            " raíz mantiene la dispersión en uno, con cualquier ancho.",
        ),
        Text(
            "Without a scale one key takes nearly all (entropy falls to zero, and with it the gradient). Divided by "
            "d_k all keys get the same, so attention looks at nothing.",
            "Sin escala una clave se lleva casi todo (la entropía cae a cero, y con ella el gradiente). Dividido por"
            " d_k todas las claves reciben lo mismo: la atención no mira nada.",
        ),
        (
            Input("width", same("d_k"), 64, 2, 1024),
            Input("num_keys", Text("keys", "claves"), 24, 2, 128),
        ),
        scale,
    ),
)
