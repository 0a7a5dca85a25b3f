"""Spanish sentences about three things called "banco": a shoal of fish, a bench, and a bank.

    sentence = before + noun + after,   one of the two sides says which sense is meant, the other fits all of them

The noun is "banco" or, in half of the sentences, a word for one of the three only: to know which of them was hidden,
the context has to be read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

WORD = "banco"
SLOTS = {
    "quien": "Ana Luis Marta Pedro Lucía Jorge Elena Pablo Rosa Andrés Carmen Diego Julia Mateo Sara Tomás".split(),
    "dia": "lunes martes miércoles jueves viernes sábado domingo".split(),
    "momento": ["por la mañana", "por la tarde", "al amanecer", "al anochecer", "a mediodía", "hace poco"],
    "pez": "sardinas atunes anchoas arenques merluzas caballas peces bonitos".split(),
    "mar": ["la costa", "la isla", "la bahía", "la playa", "la barrera de coral", "la ría"],
    "cazador": "tiburón delfín pelícano pescador calamar".split(),
    "parque": "parque jardín paseo patio andén bulevar".split(),
    "material": "madera piedra hierro mármol mimbre roble".split(),
    "sentado": ["leer el periódico", "descansar", "comer pipas", "dar de comer a las palomas", "esperar el tren"],
    "dinero": "préstamo crédito depósito cheque pagaré seguro".split(),
    "oficio": "director cajero gerente economista abogado empleado".split(),
    "cantidad": ["cien euros", "mil euros", "sus ahorros", "la nómina", "la herencia"],
}


@dataclass(frozen=True)
class Sense:
    """What can stand before and after the noun in this sense only, and its other nouns, all masculine."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    nouns: tuple[str, ...]


SENSES = (
    Sense(
        "shoal",
        (
            "los buzos siguieron bajo el agua al",
            "las redes rodearon cerca de {mar} al",
            "el {cazador} persiguió por el mar al",
            "el sonar del barco mostró un",
            "junto a {mar} nadaba un",
        ),
        (
            "de {pez} que nadaba junto a {mar}",
            "de {pez} que huyó del {cazador}",
            "que giró de golpe bajo las olas",
            "que se hundió hacia aguas más frías",
            "de {pez} que cayó en las redes",
        ),
        ("cardumen", "grupo"),
    ),
    Sense(
        "bench",
        (
            "{quien} se sentó a {sentado} en el",
            "los niños pintaron de verde en el {parque} un",
            "la abuela quería {sentado} en el",
            "el carpintero lijó las patas de {material} del",
            "bajo los árboles del {parque} había un",
        ),
        (
            "de {material} que tenía una pata rota",
            "del {parque} que estaba recién pintado",
            "que era incómodo para {sentado}",
            "de {material} que crujió al sentarse {quien}",
            "que quedó vacío a la sombra del {parque}",
        ),
        ("asiento", "sillón"),
    ),
    Sense(
        "finance",
        (
            "{quien} pidió un {dinero} al",
            "el {oficio} devolvió {cantidad} con intereses al",
            "subieron las acciones en bolsa del",
            "{quien} ingresó {cantidad} en el",
            "los inspectores revisaron las cuentas del",
        ),
        (
            "que aprobó el {dinero} de {quien}",
            "que subió los tipos del {dinero}",
            "que cobró una comisión por {cantidad}",
            "que despidió al {oficio} de la sucursal",
            "que guardó {cantidad} en la caja fuerte",
        ),
        ("acreedor", "prestamista"),
    ),
)
ANY_BEFORE = (
    "{quien} vio el {dia} el",
    "ayer {momento} {quien} habló del",
    "todos conocían muy bien el",
    "{quien} nos contó algo sobre el",
    "en la foto de {quien} salía un",
    "por fin {quien} encontró el",
)
ANY_AFTER = (
    "y {quien} se alegró mucho",
    "que {quien} buscaba desde el {dia}",
    "y nadie dijo nada {momento}",
    "del que hablaba {quien}",
    "y {quien} volvió a casa {momento}",
    "como cada {dia} {momento}",
)


def sentences(seed: int) -> Iterator[tuple[str, str, str]]:
    """Endless (sentence, noun, sense), every sentence once; the senses take turns."""
    generator, seen = random.Random(seed), set[str]()
    while True:
        for sense in SENSES:
            noun = generator.choice((WORD, WORD, *sense.nouns))
            sides = [(sense.before, ANY_AFTER), (ANY_BEFORE, sense.after)]
            before, after = (_filled(generator.choice(side), generator) for side in generator.choice(sides))
            sentence = f"{before} {noun} {after}."
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


def _filled(template: str, generator: random.Random) -> str:
    return template.format(**{slot: generator.choice(words) for slot, words in SLOTS.items()})
