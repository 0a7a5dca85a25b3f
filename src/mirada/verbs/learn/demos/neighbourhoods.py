"""Who may look at whom: strided attention, cells of a grid, and hiding the future."""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.core import Attention, Concatenated, Grid, Neighbours, Strided, causal, full, line, plane, record, window
from mirada.errors import MiradaError
from mirada.verbs.learn.demos.demo import Answer, Demo, Input, Number, Text, matrix
from mirada.verbs.learn.drawing_weights import draw_weights, word_vectors

DIM = 16
WORDS = ("el", "gato", "negro", "salta", "la", "cuerda")


def strided(length: int, stride: int) -> Answer:
    places = line(length)
    past = causal().allowed(places, places)
    masks = {
        "local": (window(stride) & causal()).allowed(places, places),
        "strided": Strided(stride).allowed(places, places),
    }
    steps = {name: mask.float() @ mask.float() > 0 for name, mask in masks.items()}
    missing = {name: int((past & ~two).sum()) for name, two in steps.items()}
    names = range(length)
    return Answer(
        [
            Number(Text("pairs, local half alone", "pares, solo la mitad local"), int(masks["local"].sum()), "wrong"),
            Number(Text("pairs, strided", "pares, strided"), int(masks["strided"].sum()), "right"),
            Number(Text("earlier tokens not reached in two steps, local half alone",
                        "tokens anteriores no alcanzados en dos pasos, solo local"), missing["local"], "wrong"),
            Number(Text("not reached in two steps, strided", "no alcanzados en dos pasos, strided"),
                   missing["strided"], "right"),
        ],
        [
            matrix(Text("as given: the local half", "como está: la mitad local"),
                   masks["local"].int(), names, names, 0),
            matrix(Text("local ∪ every l-th", "local ∪ cada l-ésimo"), masks["strided"].int(), names, names, 0),
            matrix(Text("reached in two steps, as given", "alcanzado en dos pasos, como está"),
                   steps["local"].int(), names, names, 0),
            matrix(Text("reached in two steps, strided", "alcanzado en dos pasos, strided"),
                   steps["strided"].int(), names, names, 0),
        ],
    )  # fmt: skip


def grid(rows: int, columns: int, radius: int) -> Answer:
    places = plane(rows, columns)
    counts = Grid(radius).allowed(places, places).sum(-1).view(rows, columns)
    coords = places.coords_NA
    steps = (coords[:, None] - coords).abs().sum(-1)
    near = (steps <= radius).sum(-1).view(rows, columns)
    middle = rows // 2, columns // 2
    return Answer(
        [
            Number(Text("corner", "esquina"), counts[0, 0].item(), "right"),
            Number(Text("border", "borde"), counts[0, middle[1]].item(), "right"),
            Number(Text("inside", "interior"), counts[middle].item(), "right"),
            Number(Text(f"inside, if “distancia {radius}” meant steps along rows and columns",
                        f"interior, si “distancia {radius}” contara pasos por filas y columnas"),
                   near[middle].item(), "wrong"),
        ],
        [
            matrix(Text("neighbours of each cell, itself included", "vecinos de cada celda, ella incluida"),
                   counts, range(rows), range(columns), 0),
            matrix(Text("counted by steps", "contados por pasos"), near, range(rows), range(columns), 0),
        ],
    )  # fmt: skip


def mask_token(position: int, seed: int) -> Answer:
    if position >= len(WORDS):
        raise MiradaError(f"position {position} is not in the sentence: it has {len(WORDS)} words, from 0")
    layer = Attention(Concatenated(DIM, 1)).eval()
    draw_weights(layer, seed)
    masked = [*WORDS[:position], "[MASK]", *WORDS[position + 1 :]]

    def weights(words: tuple[str, ...] | list[str], neighbours: Neighbours) -> Tensor:
        with torch.no_grad(), record(layer) as maps:
            layer(word_vectors(words, DIM, seed)[None], neighbours=neighbours)
        return maps[0][0, 0]

    hidden, replaced = weights(WORDS, causal()), weights(masked, full())
    before = max(position, 1)
    return Answer(
        [
            Number(Text("weight on later words, causal mask", "peso sobre palabras posteriores, máscara causal"),
                   hidden.triu(1).sum().item(), "right"),
            Number(Text("weight on later words, [MASK] token", "peso sobre palabras posteriores, token [MASK]"),
                   replaced.triu(1).sum().item(), "wrong"),
            Number(Text(f"mean weight of earlier words on position {position}, causal mask",
                        f"peso medio de palabras anteriores sobre la posición {position}, máscara causal"),
                   hidden[:before, position].mean().item() if position else 0.0),
            Number(Text("the same, [MASK] token", "lo mismo, token [MASK]"),
                   replaced[:before, position].mean().item() if position else 0.0),
        ],
        [
            matrix(Text("causal mask: j ≤ i", "máscara causal: j ≤ i"), hidden, WORDS, WORDS),
            matrix(Text("one word replaced, all look at all", "una palabra reemplazada, todas miran a todas"),
                   replaced, masked, masked),
        ],
    )  # fmt: skip


DEMOS = (
    Demo(
        "strided",
        ("E22", "B25"),
        Text("Strided attention has two halves", "La atención strided tiene dos mitades"),
        "N_i = {j : máx(0, i−k) ≤ j ≤ i}",
        Text(
            "This is only the local half. Strided attention (Child 2019) adds every l-th token before: {j ≤ i : (i −"
            " j) mod l = 0}. With l ≈ √N two steps then reach all that came before.",
            "Esto es solo la mitad local. La atención strided (Child 2019) agrega cada l-ésimo token anterior: {j ≤ "
            "i : (i − j) mod l = 0}. Con l ≈ √N dos pasos alcanzan entonces todo lo anterior.",
        ),
        Text(
            "Compare the two matrices of what is reached in two steps: the local half leaves a triangle empty.",
            "Compare las dos matrices de lo alcanzado en dos pasos: la mitad local deja un triángulo vacío.",
        ),
        (
            Input("length", Text("tokens N", "tokens N"), 16, 2, 32),
            Input("stride", Text("stride l", "paso l"), 4, 1, 32),
        ),
        strided,
    ),
    Demo(
        "grid",
        ("E18", "B19"),
        Text("Neighbours on a grid: 4, 6 or 9", "Vecinos en una cuadrícula: 4, 6 o 9"),
        "«conectados si están a distancia 1», N_{i,j} = {x_{i+h, j+w} : h, w ∈ {−1, 0, 1}}",
        Text(
            "The set has nine elements: the cell itself and the diagonals too. Its distance is the larger of the two"
            " offsets (Chebyshev), at most 1. Cells at the border have 6 and at a corner 4.",
            "El conjunto tiene nueve elementos: también la propia celda y las diagonales. Su distancia es el mayor "
            "de los dos desplazamientos (Chebyshev), a lo sumo 1. En el borde hay 6 y en una esquina 4.",
        ),
        Text(
            "Each number is the size of the neighbourhood of that cell.",
            "Cada número es el tamaño de la vecindad de esa celda.",
        ),
        (
            Input("rows", Text("rows", "filas"), 4, 3, 12),
            Input("columns", Text("columns", "columnas"), 5, 3, 12),
            Input("radius", Text("radius", "radio"), 1, 0, 5),
        ),
        grid,
    ),
    Demo(
        "mask-token",
        ("E45", "F1", "F2"),
        Text("Hiding the future is not the MASK token", "Ocultar el futuro no es el token MASK"),
        "«reemplaza un tóken por una etiqueta MASK…»",
        Text(
            "Two different things. A decoder hides the future by its neighbourhood: later words have weight zero, "
            "exactly. The MASK token is BERT's: a word is replaced, and all still look at it and at what follows.",
            "Dos cosas distintas. Un decodificador oculta el futuro con su vecindad: las palabras posteriores tienen"
            " peso cero, exactamente. El token MASK es de BERT: se reemplaza una palabra, y todas la siguen mirando "
            "a ella y a lo que sigue.",
        ),
        Text(
            "The first matrix is empty above the diagonal. In the second nothing is empty; only the column of the "
            "replaced word belongs to another vector.",
            "La primera matriz está vacía sobre la diagonal. En la segunda nada está vacío; solo la columna de la "
            "palabra reemplazada es de otro vector.",
        ),
        (
            Input("position", Text("word, from 0", "palabra, desde 0"), 4, 0, len(WORDS) - 1),
            Input("seed", Text("seed", "semilla"), 0, 0, 999),
        ),
        mask_token,
    ),
)
