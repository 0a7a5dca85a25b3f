"""`mirada translate`: sentences of one language into those of the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mirada.tasks.length_penalty import LengthPenalty
from mirada.tasks.translation import Translation
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained
from mirada.verbs.text.precision import in_precision
from mirada.verbs.text.trained import text_run


def translate(
    run: str | Path | RunFolder | Trained,
    texts: str | Sequence[str],
    *,
    beam: int = 4,
    penalty: str = "gnmt",
    alpha: float = 0.6,
    n_best: int = 1,
    max_length: int | None = None,
    batch_size: int = 32,
    precision: str = "float32",
    device: str = "auto",
) -> list[list[Translation]]:
    """For every sentence its `n_best` translations, best first; `beam=1` is greedy.

    penalty: how the length is weighed, "none", "length" (|Y|^α) or "gnmt" (((5 + |Y|)/6)^α). An empty line has an
    empty translation. precision: "float32", or "int8", which is faster, refused where held-out text says that it is
    worse, and with which a translation may depend on its batch.
    """
    trained = text_run(run, device)
    trained.require("translate")
    trained = in_precision(trained, precision)
    given = [texts] if isinstance(texts, str) else list(texts)
    return trained.translator.translate(
        given,
        beam=beam,
        penalty=LengthPenalty(penalty, alpha),
        n_best=n_best,
        max_length=max_length,
        batch_size=batch_size,
    )
