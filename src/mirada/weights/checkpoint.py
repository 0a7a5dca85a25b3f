"""A stored model under our names: which system, with which arguments, and its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from mirada import systems
from mirada.errors import MiradaError
from mirada.systems.outline import outline
from mirada.systems.registry import all_arguments

# What the data decides of a system.
FROM_DATA = ("image_size", "in_channels", "num_classes", "num_tokens", "num_target_tokens", "pad")


@dataclass(frozen=True)
class Checkpoint:
    """`arguments` make our system the stored model; `state` may lack a head. `origin` is the library that wrote it."""

    start: str
    origin: str
    system: str
    arguments: Mapping[str, Any]
    state: Mapping[str, Tensor] = field(repr=False)
    size: str | None = None
    class_names: tuple[str, ...] = ()
    normalisation: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # mean and std of pixels in [0, 1]
    folder: Path | None = None  # where its files lie

    def __post_init__(self) -> None:
        if self.system not in systems.cards():
            raise MiradaError(f"{self.start}: is of system {self.system!r}, which this version of Mirada has not.")

    @property
    def all_arguments(self) -> dict[str, Any]:
        """With a patch size that was derived from the image size written out, as the image size may change."""
        resolved = all_arguments(self.system, self.size, **self.arguments)
        if "patch_size" in resolved and resolved["patch_size"] is None:
            resolved["patch_size"] = getattr(self.outline(), "patch_size", None)
        return resolved

    @property
    def settings(self) -> dict[str, Any]:
        """The `system` section of a configuration: the size that it is, and what differs from it."""
        everything = self.all_arguments
        sizes = systems.card(self.system).sizes
        needed = {name: everything[name] for name in FROM_DATA if name in everything}
        resolved = {name: all_arguments(self.system, name, **needed) for name in sizes}
        shape = ("dim", "depth", "num_heads", "patch_size", "stem")
        same = [name for name in sizes if all(resolved[name].get(s) == everything.get(s) for s in shape)]
        size = self.size or next(iter(same), None) or systems.card(self.system).default_size
        differing = {n: v for n, v in everything.items() if n not in FROM_DATA and resolved[size][n] != v}
        return {"name": self.system, "size": size, "arguments": differing}

    def outline(self) -> nn.Module:
        """The model's shapes, without numbers."""
        return outline(self.system, self.size, **self.arguments)

    def model(self) -> nn.Module:
        """The stored model itself, ready to predict."""
        model = systems.create(self.system, self.size, **self.arguments)
        missing, unexpected = model.load_state_dict(dict(self.state), strict=False)
        if self.origin != "mirada":
            # All have a place in the system, perhaps with other arguments: BERT's pooler waits for classes.
            unexpected = []
        if missing or unexpected:
            raise MiradaError(
                f"{self.start}: is no whole model of system {self.system!r}, {(missing or unexpected)[0]!r} is "
                f"{'missing' if missing else 'too much'}; train from it instead."
            )
        return model.eval()
