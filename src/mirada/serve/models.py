"""Models in memory: loaded once, loaded again when training wrote a better one, the least recently used goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained, load, model_folder

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class _Kept:
    trained: Trained
    stamp: Stamp


class Models:
    """`get` may be called from many threads; two that want the same model wait for one load."""

    def __init__(self, max_models: int, device: str = "auto") -> None:
        if max_models < 1:
            raise MiradaError(f"max_models is {max_models}, expected at least 1.")
        self.max_models, self.device = max_models, device
        self._kept: OrderedDict[Path, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._loading: dict[Path, threading.Lock] = {}

    def get(self, path: str | Path) -> Trained:
        """The best model of a run as it is on disk now."""
        folder = RunFolder(Path(path).resolve())
        if not folder.path.is_dir():
            raise MiradaError(f"{path}: there is no such folder; give a run made by `mirada train`.")
        with self._lock:
            turn = self._loading.setdefault(folder.path, threading.Lock())
        with turn:
            # Before loading: if the file changes meanwhile, the next caller loads again.
            stamp = _stamp(folder)
            with self._lock:
                kept = self._kept.get(folder.path)
                if kept is not None and kept.stamp == stamp:
                    self._kept.move_to_end(folder.path)
                    return kept.trained
            trained = load(folder, device=self.device)
            trained.model.eval()
            with self._lock:
                self._kept[folder.path] = _Kept(trained, stamp)
                self._kept.move_to_end(folder.path)
                while len(self._kept) > self.max_models:
                    gone, _ = self._kept.popitem(last=False)
                    self._loading.pop(gone, None)
            return trained

    def __len__(self) -> int:
        return len(self._kept)


def _stamp(folder: RunFolder) -> Stamp:
    found = (model_folder(folder) / "model.safetensors").stat()
    return (found.st_mtime_ns, found.st_size, found.st_ino)
