"""What was explained lately, so that one can go on asking: by ids that cannot be guessed, as much as memory allows.

Shape letters: H heads, N queries, M keys.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from mirada.serve.refusals import Refused
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained
from mirada.verbs.looks import LookedAt, num_bytes, weights_of, without_weights

MAX_BYTES = 512 * 2**20  # of all together
MAX_WHOLE = 64 * 2**20  # of the weights of one input; more are computed again, layer by layer
MAX_LOOKS = 500
OVERHEAD = 2**20  # of one without its weights: pixels, pictures, tokens
Stamp = tuple[int, int]


@dataclass
class Kept:
    """`stamp` tells whether the run has other weights now; `latest` is the layer that was computed again last."""

    run: RunFolder
    looked: LookedAt
    stamp: Stamp
    is_whole: bool
    latest: tuple[int, np.ndarray] | None = None
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = OVERHEAD + (num_bytes(self.looked) if self.is_whole else 0)

    def weights(self, trained: Trained, layer: int) -> np.ndarray:
        """(H, N, M) of one layer."""
        if self.is_whole:
            return self.looked.item.layers[layer].weights_HNM
        if self.latest is None or self.latest[0] != layer:
            found = weights_of(trained, self.looked, layer)
            self.latest = (layer, found) if found.nbytes <= MAX_WHOLE else None
            return found
        return self.latest[1]


class KeptLooks:
    """The least recently asked goes first; the newest is always kept."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_whole: int = MAX_WHOLE) -> None:
        self.max_bytes, self.max_whole = max_bytes, max_whole
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, run: RunFolder, looked: LookedAt) -> str:
        is_whole = num_bytes(looked) <= self.max_whole
        kept = Kept(run, looked if is_whole else without_weights(looked), stamp_of(run), is_whole)
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._kept[name] = kept
            while len(self._kept) > 1 and (self._num_bytes() > self.max_bytes or len(self._kept) > MAX_LOOKS):
                self._kept.popitem(last=False)
        return name

    def get(self, name: str) -> Kept:
        with self._lock:
            kept = self._kept.get(name)
            if kept is None:
                raise Refused(404, "the studio no longer keeps this input; look at it again.")
            self._kept.move_to_end(name)
        if stamp_of(kept.run) != kept.stamp:
            raise Refused(409, f"{kept.run.path.name} has other weights by now; look at this input again.")
        return kept

    def _num_bytes(self) -> int:
        latest = (0 if kept.latest is None else kept.latest[1].nbytes for kept in self._kept.values())
        return sum(kept.size for kept in self._kept.values()) + sum(latest)


def stamp_of(run: RunFolder) -> Stamp:
    try:
        found = (run.best / "model.safetensors").stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
