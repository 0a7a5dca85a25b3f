"""What a trained model is asked when it is measured, and what must hold for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch import nn

from mirada.data.batches import Batch
from mirada.errors import MiradaError
from mirada.verbs.load import Trained


@dataclass(frozen=True)
class Questions:
    """Labelled batches, and the model that takes them."""

    model: nn.Module
    batches: Iterable[Batch]
    name: Callable[[int], str]  # of a row
    title: str
    side: str  # of the run's own split; empty for other data
    broken: Callable[[], list[dict]]  # known when all batches were read


def require_own_data(trained: Trained) -> None:
    if "split" not in trained.data:
        what = {"graph": "graph", "text": "texts", "pairs": "texts", "plots": "plots"}.get(
            trained.data.get("inputs", ""), "images"
        )
        raise MiradaError(f"{trained.folder.path}: is an exported model; give the {what} to evaluate it on.")


def require_other_data(checksum: str, trained: Trained, source: str) -> None:
    if checksum == trained.data["checksum"]:
        raise MiradaError(
            f"{source}: is the data this model was trained on; leave it out to measure on the held-out part."
        )


def positions(names: Sequence[str], known: Sequence[str], source: str, what: str) -> list[int]:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise MiradaError(
            f"{source}: has {what} the model was not trained on ({_some(unknown)}), it knows {_some(known)}; rename or "
            "remove them."
        )
    return [list(known).index(name) for name in names]


def _some(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
