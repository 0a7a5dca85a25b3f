"""Names and forms of the tensors of other libraries: theirs ↔ ours, both ways by one list of entries.

    Entry("vit.layers.{i}.attention.q_proj.{p}", "encoder.layers.{i}.attention.inner.heads.to_q.{p}")

A template's `{p}` stands for one name without dots, every other placeholder (`{i}`, `{s}`, …) for a whole number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mirada.errors import MiradaError

Arguments = Mapping[str, Any]  # of our system, as `systems.create` takes them
Shapes = Mapping[str, tuple[int, ...]]  # of their tensors, by their names


@dataclass(frozen=True)
class Change:
    """A tensor whose form differs: `load` makes ours of theirs, `save` makes theirs of ours."""

    load: Callable[[Tensor, Arguments], Tensor]
    save: Callable[[Tensor, Arguments], Tensor]


SAME = Change(lambda theirs, _: theirs, lambda ours, _: ours)
# (1, N, D) ↔ (N, D): a table with an axis for the batch
TABLE = Change(lambda theirs, _: theirs[0], lambda ours, _: ours[None])
# (X, 1, D) ↔ (X, D): extra tokens with an axis for the batch, one token in each of their tensors
TOKENS = Change(lambda theirs, _: theirs.reshape(-1, theirs.shape[-1]), lambda ours, _: ours[:, None])
# (D, C, P, P) ↔ (D, C·P·P): a convolution over patches ↔ the matrix of LinearPatches, whose patches are square
KERNEL = Change(
    lambda theirs, _: theirs.flatten(1),
    lambda ours, arguments: ours.unflatten(
        1, (arguments["in_channels"], *2 * (math.isqrt(ours.shape[1] // arguments["in_channels"]),))
    ),
)
# (in, out) ↔ (out, in): GPT's Conv1D ↔ Linear
TRANSPOSED = Change(lambda theirs, _: theirs.mT, lambda ours, _: ours.mT)


@dataclass(frozen=True)
class Entry:
    """One tensor of theirs is one of ours, `theirs` and `ours` being templates with the same placeholders.

    Several `theirs` are joined along axis 0 before the change; several `ours` are the equal shares along axis 0 after
    it, as in a fused qkv. Where two entries lead to the same tensor of ours, the first is used for saving.
    """

    theirs: str | tuple[str, ...]
    ours: str | tuple[str, ...]
    change: Change = SAME


@dataclass(frozen=True)
class Layout:
    """How one library names the tensors of one of our systems.

    entries     of every tensor; or a function that gives them for the arguments of our system
    recognises  is a checkpoint with this config.json ({} if there is none) and these tensor names of this layout?
    arguments   of our system that make it the checkpoint's model, from config.json and the shapes: image_size,
                in_channels and num_classes among them (num_classes=1 where it has no head)
    config      what config.json says of a model with these arguments; None where that library reads no such file
    prefix      begins their names, but not in a file of the model without its head; templates have it
    ignored     templates of tensors that are no weights of ours
    """

    system: str
    origin: str
    entries: tuple[Entry, ...] | Callable[[Arguments], tuple[Entry, ...]]
    recognises: Callable[[Mapping[str, Any], Iterable[str]], bool]
    arguments: Callable[[Mapping[str, Any], Shapes], dict[str, Any]]
    config: Callable[[Arguments], dict[str, Any]] | None = None
    prefix: str = ""
    ignored: tuple[str, ...] = ()

    def with_prefix(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """By names as the templates have them."""
        has_it = any(name.startswith(self.prefix) for name in tensors)
        return {name if has_it else self.prefix + name: value for name, value in tensors.items()}

    def to_ours(self, theirs: Mapping[str, Tensor], arguments: Arguments) -> dict[str, Tensor]:
        """A state of our system, perhaps without a head; a tensor that has no place in it is refused."""
        patterns = [_pattern(template) for template in self.ignored]
        theirs = {n: t for n, t in self.with_prefix(theirs).items() if not any(p.fullmatch(n) for p in patterns)}
        found, left = _translated(
            theirs, [(_pieces(e.theirs), _pieces(e.ours), e.change.load) for e in self._entries(arguments)], arguments
        )
        if left:
            raise MiradaError(
                f"the checkpoint's tensor {left[0]!r}{_and_others(left)} has no place in system {self.system!r}: "
                f"it is of a variant of this model that Mirada does not have"
            )
        return found

    def to_theirs(self, ours: Mapping[str, Tensor], arguments: Arguments) -> dict[str, Tensor]:
        """The way back: every tensor of ours has a place in theirs, else the model is refused."""
        found, left = _translated(
            ours, [(_pieces(e.ours), _pieces(e.theirs), e.change.save) for e in self._entries(arguments)], arguments
        )
        if left:
            raise MiradaError(
                f"system {self.system!r} with these arguments has {left[0]!r}{_and_others(left)}, which the layout of "
                f"{self.origin} does not know: export it as safetensors instead"
            )
        return found

    def _entries(self, arguments: Arguments) -> tuple[Entry, ...]:
        return self.entries if isinstance(self.entries, tuple) else self.entries(arguments)


Step = tuple[tuple[str, ...], tuple[str, ...], Callable[[Tensor, Arguments], Tensor]]


def _translated(
    tensors: Mapping[str, Tensor], steps: list[Step], arguments: Arguments
) -> tuple[dict[str, Tensor], list[str]]:
    """The tensors under their new names, and the names that no step took."""
    found: dict[str, Tensor] = {}
    left = dict(tensors)
    for sources, targets, change in steps:
        pattern = _pattern(sources[0])
        for places in [m.groupdict() for m in map(pattern.fullmatch, list(left)) if m]:
            names = [template.format(**places) for template in sources]
            if not all(name in left for name in names):
                continue
            pieces = [left.pop(name) for name in names]
            whole = change(pieces[0] if len(pieces) == 1 else torch.cat(pieces), arguments)
            shares = whole.chunk(len(targets)) if len(targets) > 1 else (whole,)
            found |= {target.format(**places): share for target, share in zip(targets, shares, strict=True)}
    return found, list(left)


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    seen: set[str] = set()
    for index in range(1, len(parts), 2):
        name, parts[index] = parts[index], f"(?P={parts[index]})"
        if name not in seen:
            parts[index] = f"(?P<{name}>{'[^.]+' if name == 'p' else '[0-9]+'})"
            seen.add(name)
    parts[::2] = map(re.escape, parts[::2])
    return re.compile("".join(parts))


def _pieces(templates: str | tuple[str, ...]) -> tuple[str, ...]:
    return (templates,) if isinstance(templates, str) else templates


def _and_others(names: list[str]) -> str:
    return f" (and {len(names) - 1} others)" if len(names) > 1 else ""
