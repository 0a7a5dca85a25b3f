"""Spanish sentences about three things called "banco": a shoal of fish, a bench, and a bank.

    sentence = frame(noun, two hints),   the hints, before or after the noun, say which sense is meant, the frame never

The noun is "banco" or a word for one of the three only: which of them was hidden, only the hints tell.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

WORD = "banco"
SLOTS = {
    "quien": "Ana Luis Marta Pedro Lucía Jorge Elena Pablo Rosa Andrés Carmen Diego".split(),
    "cuando": "ayer hoy anoche siempre luego antes".split(),
}


@dataclass(frozen=True)
class Sense:
    """Hints that occur in this sense only, and its other nouns; all nouns are masculine."""

    name: str
    hints: tuple[str, ...]
    nouns: tuple[str, ...]


SENSES = (
    Sense(
        "shoal",
        (
            "la red",
            "la ola",
            "el coral",
            "la marea",
            "el anzuelo",
            "el atún",
            "el buzo",
            "la barca",
            "el delfín",
            "la isla",
        ),
        ("cardumen", "arrecife", "pez"),
    ),
    Sense(
        "bench",
        (
            *("el parque", "la fuente", "el árbol", "la paloma", "la sombra", "la madera", "la plaza", "el columpio"),
            *("la estatua", "el césped"),
        ),
        ("asiento", "sillón", "taburete"),
    ),
    Sense(
        "finance",
        (
            *("el crédito", "la hipoteca", "el cajero", "la cuenta", "el cheque", "la bolsa", "el ahorro", "la deuda"),
            *("el gerente", "la nómina"),
        ),
        ("acreedor", "prestamista", "fondo"),
    ),
)
HINTS_BEFORE = (
    "{quien} vio {hint}, {other} y el {noun} {cuando}",
    "con {hint}, {other} y el {noun} soñaba {quien} {cuando}",
)
HINTS_AFTER = (
    "{quien} vio el {noun}, {hint} y {other} {cuando}",
    "con el {noun}, {hint} y {other} soñaba {quien} {cuando}",
)


def sentences(seed: int) -> Iterator[tuple[str, str, str]]:
    """Endless (sentence, noun, sense), every sentence once; the senses take turns."""
    generator, seen = random.Random(seed), set[str]()
    while True:
        for sense in SENSES:
            frame = generator.choice((*HINTS_BEFORE, *HINTS_AFTER))
            hint, other = generator.sample(sense.hints, 2)
            noun = generator.choice((WORD, *sense.nouns))
            slots = {slot: generator.choice(words) for slot, words in SLOTS.items()}
            sentence = frame.format(hint=hint, other=other, noun=noun, **slots)
            if sentence not in seen:
                seen.add(sentence)
                yield sentence, noun, sense.name


def corpus_and_senses(num_lines: int, num_asked: int, seed: int = 0) -> tuple[str, str]:
    """Lines to learn from, and a table of `num_asked` other sentences with WORD per sense (sentence, word, sense)."""
    made = sentences(seed)
    lines = [sentence for sentence, _, _ in (next(made) for _ in range(num_lines))]
    asked: dict[str, list[str]] = {sense.name: [] for sense in SENSES}
    while any(len(each) < num_asked for each in asked.values()):
        sentence, noun, sense = next(made)
        if noun == WORD and len(asked[sense]) < num_asked:
            asked[sense].append(f"{sentence}\t{WORD}\t{sense}\n")
    table = [line for three in zip(*asked.values(), strict=True) for line in three]
    return "".join(f"{line}\n" for line in lines), "".join(table)
