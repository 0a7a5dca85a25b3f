"""Spanish sentences with known relations of words: which one agrees with which.

    sentence = group verb group,   group = determiner [adverb] noun [que verb-phrase] [adverb] [adjective]

Determiners and adjectives have the gender and number of their noun, verbs the number of their subject; adverbs and
relative clauses stand between, so that partners are at no fixed distance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

Form = tuple[str, str]  # gender, number
FORMS: tuple[Form, ...] = (("m", "s"), ("m", "p"), ("f", "s"), ("f", "p"))
DETERMINERS = {
    ("m", "s"): ("el", "un", "este"),
    ("m", "p"): ("los", "unos", "estos"),
    ("f", "s"): ("la", "una", "esta"),
    ("f", "p"): ("las", "unas", "estas"),
}
STEMS = {
    "m": "niñ gat perr abuel médic camarer vecin maestr".split(),
    "f": "niñ gat perr abuel médic camarer vecin maestr".split(),
}
ADJECTIVES = "alt baj roj negr blanc vie sabi list guap tímid".split()
VERBS = {"s": "mira sigue busca ayuda llama saluda".split(), "p": "miran siguen buscan ayudan llaman saludan".split()}
RESTING = {"s": "duerme canta corre espera".split(), "p": "duermen cantan corren esperan".split()}
ADVERBS = "muy casi siempre bastante tan hoy".split()
ENDINGS = {("m", "s"): "o", ("m", "p"): "os", ("f", "s"): "a", ("f", "p"): "as"}
RELATIONS = ("determiner to noun", "adjective to noun", "verb to subject")


@dataclass
class Sentence:
    words: list[str] = field(default_factory=list)
    links: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: {name: [] for name in RELATIONS})

    def add(self, word: str) -> int:
        self.words.append(word)
        return len(self.words) - 1


def sentences(count: int, seed: int) -> Iterator[Sentence]:
    """Who looks, and at which word, by relation; words are counted from 0."""
    draw = random.Random(seed)
    for _ in range(count):
        made = Sentence()
        form, subject = _group(made, draw)
        verb = made.add(draw.choice(VERBS[form[1]]))
        made.links["verb to subject"].append((verb, subject))
        _group(made, draw)
        yield made


def _group(made: Sentence, draw: random.Random) -> tuple[Form, int]:
    """Its form and the place of its noun."""
    form = draw.choice(FORMS)
    determiner = made.add(draw.choice(DETERMINERS[form]))
    if draw.random() < 0.3:
        made.add(draw.choice(ADVERBS))
    noun = made.add(draw.choice(STEMS[form[0]]) + ENDINGS[form])
    made.links["determiner to noun"].append((determiner, noun))
    if draw.random() < 0.4:
        made.add("que")
        made.links["verb to subject"].append((made.add(draw.choice(RESTING[form[1]])), noun))
    if draw.random() < 0.6:
        if draw.random() < 0.5:
            made.add(draw.choice(ADVERBS))
        made.links["adjective to noun"].append((made.add(draw.choice(ADJECTIVES) + ENDINGS[form]), noun))
    return form, noun
