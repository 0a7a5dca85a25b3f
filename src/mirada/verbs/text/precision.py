"""A trained model of text made ready to write fast, in float32 or in int8; int8 only where it is as good."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterable, Iterator

from mirada.data.batches import Batch
from mirada.errors import MiradaError
from mirada.nn.for_decoding import prepare_for_decoding
from mirada.verbs.evaluate_text import own_texts
from mirada.verbs.text.trained import TrainedText

log = logging.getLogger(__name__)

MOST_WORSE = 0.02  # nats per token of held-out text that int8 may cost: a perplexity 2 % higher
CHECKED = 2048  # tokens: the difference of two precisions on the same tokens varies little


def in_precision(trained: TrainedText, precision: str = "float32") -> TrainedText:
    """The same run, with the model prepared for decoding; made and checked once.

    int8 is compared with float32 on the run's held-out text and refused where it is worse. Where that text is not there
    to compare on, it is used unchecked, and a warning says so.
    """
    kept = trained.__dict__.setdefault("_in_precision", {})
    if precision not in kept:
        prepared = dataclasses.replace(trained, model=prepare_for_decoding(trained.model, precision))
        if precision == "int8":
            _require_as_good(trained, prepared)
        kept[precision] = prepared
    return kept[precision]


def _require_as_good(trained: TrainedText, rounded: TrainedText) -> None:
    try:
        texts = own_texts(trained)
    except MiradaError as error:
        log.warning("int8 could not be checked on held-out text, and is used unchecked: %s", error)
        return
    task = texts.task(trained.config)
    batches = list(evenly(texts.evaluation(texts.held_out), CHECKED))
    before, after = (task.tally(each.model, batches, each.device).nats for each in (trained, rounded))
    if not after - before <= MOST_WORSE:
        raise MiradaError(
            f"{trained.folder.path}: int8 costs {after - before:.3f} nats per token of held-out text ({before:.3f} in "
            f"float32, {after:.3f} in int8), at most {MOST_WORSE} is allowed; use float32."
        )


def evenly(batches: Iterable[Batch], most: int) -> Iterator[Batch]:
    """Every so manieth row, so that they have about `most` tokens together."""
    batches = list(batches)
    step = math.ceil(sum(batch.targets.numel() for batch in batches) / most)
    num_before = 0
    for batch in batches:
        kept = slice(-num_before % step, None, step)
        num_before += len(batch.rows)
        if len(batch.rows[kept]):
            yield Batch(batch.inputs[kept], batch.targets[kept], batch.rows[kept])
