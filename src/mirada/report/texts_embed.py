"""Words and who is near them, as a table and as a map.

x_w = v_w / ‖v_w‖ along the two axes of largest variance.   Shape letters: W words, D dim.
"""

from __future__ import annotations

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import Row
from mirada.report.style import Drawing, Theme, draw
from mirada.report.texts import tokeniser_of
from mirada.report.wording import percent, shortened
from mirada.tasks.senses import two_axes
from mirada.train.checkpoint import load_model

NUM_WORDS = 40  # in the table
NUM_DRAWN = 150
WIDTH, HEIGHT = 9.6, 7.0  # inches
LETTER, LINE = 0.068, 0.15  # inches of a letter and of a line on the map


def embed_section(run: Contents) -> dict:
    """A table and a picture, or the sentences that say why there are none."""
    section: dict = {"words": [], "drawing": None, "variance": "", "missing": None, "no_map": None}
    if not run.predictions:
        reason = "There are no neighbours of words in this run yet."
        return section | {"missing": reason, "no_map": reason}
    section["words"] = words_of(run)[:NUM_WORDS]
    try:
        section["drawing"], section["variance"] = word_map(run)
    except MiradaError as error:
        section["no_map"] = f"No map is shown: {str(error).rstrip('.')}."
    return section


def words_of(run: Contents) -> list[Row]:
    """The most frequent tokens that have a letter or a digit, the most frequent first."""
    return [row for row in run.predictions if any(map(str.isalnum, row["name"]))]


def word_map(run: Contents) -> tuple[Drawing, str]:
    """The most frequent words, and how much of their variance the map has."""
    tokeniser, model = tokeniser_of(run), load_model(run.folder.best)
    numbered = {row["name"]: tokeniser.encode(row["name"]) for row in words_of(run)[:NUM_DRAWN]}
    tokens = {word: found[0] for word, found in numbered.items() if len(found) == 1}
    if len(tokens) < 3 or not hasattr(model, "vectors"):
        raise MiradaError(f"{run.system} has no vectors of at least three words")
    table_TD: Tensor = model.vectors.detach()  # type: ignore[operator]
    vectors_WD = F.normalize(table_TD[list(tokens.values())], dim=1)  # as neighbours are found by their directions
    plane_W2 = two_axes(vectors_WD)
    centred_WD = (vectors_WD - vectors_WD.mean(0)).double()
    share = float(plane_W2.square().sum() / centred_WD.square().sum().clamp_min(1e-12))
    return draw_map(list(tokens), plane_W2), percent(share)


def draw_map(words: list[str], plane_W2: Tensor) -> Drawing:
    """Words where their vectors point, those for which there is room."""
    low, high = plane_W2.min(0).values, plane_W2.max(0).values
    spread = (high - low).clamp_min(1e-12)
    inches_W2 = (plane_W2 - low) / spread * torch.tensor([WIDTH - 1.2, HEIGHT - 0.8])
    written = with_room(words, inches_W2.tolist())

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for number in sorted(written):
            x, y = inches_W2[number].tolist()
            word = shortened(words[number], 16)
            axes.text(x, y, word, ha="center", va="center", fontsize=8.5, color=theme.ink).set_parse_math(False)
        axes.set(xlim=(-0.6, WIDTH - 0.6), ylim=(-0.4, HEIGHT - 0.4))
        axes.set_xlabel("first principal axis")
        axes.set_ylabel("second principal axis")
        axes.tick_params(labelbottom=False, labelleft=False, length=0)
        axes.grid(visible=False)

    alt = f"Map of the vectors of the {len(words)} most frequent words, {len(written)} of them written out."
    return draw("words", alt, paint, WIDTH, HEIGHT)


def with_room(words: list[str], places: list[list[float]]) -> set[int]:
    """Which words can be written without covering one before them, the most frequent first; sizes in inches."""
    taken: list[tuple[float, float, float]] = []
    written = set()
    for number, (word, (x, y)) in enumerate(zip(words, places, strict=True)):
        half = LETTER * min(len(word), 16) / 2 + 0.03
        if all(abs(x - x0) > half + half0 or abs(y - y0) > LINE for x0, y0, half0 in taken):
            taken.append((x, y, half))
            written.add(number)
    return written
