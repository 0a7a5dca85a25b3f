"""A checkpoint's tensors in a model with other classes, channels, patches or image size, and a row for each change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import BiasTable, Decomposed, Learned
from mirada.errors import MiradaError
from mirada.nn import LinearPatches
from mirada.systems.outline import outline
from mirada.weights.checkpoint import Checkpoint
from mirada.weights.resize import other_channels, other_grid, other_patch

Channels = tuple[int | None, int | None]  # of images before and after; of texts there are none


@dataclass(frozen=True)
class Adapted:
    """One change: which tensor, what the checkpoint has, what the model needs, what was done."""

    name: str
    found: str
    wanted: str
    done: str


@dataclass(frozen=True)
class Resizing:
    found: str
    wanted: str
    done: str
    apply: Callable[[Tensor], Tensor]


def load_adapted(
    model: nn.Module, arguments: Mapping[str, Any], checkpoint: Checkpoint, class_names: tuple[str, ...] = ()
) -> list[Adapted]:
    """Fill `model`, made with `arguments` (all of them), with the checkpoint's tensors; tell what was not just copied.

    The heads keep their random start if the number of classes differs, or their names where both are known.
    """
    taken, rows = adapted(model, arguments, checkpoint, class_names)
    model.load_state_dict(taken, strict=False)
    return rows


def adapted(
    model: nn.Module, arguments: Mapping[str, Any], checkpoint: Checkpoint, class_names: tuple[str, ...] = ()
) -> tuple[dict[str, Tensor], list[Adapted]]:
    """What `load_adapted` loads and tells, without loading it: an outline of the model is enough."""
    is_other = arguments.get("num_classes") is not None and other_classes(checkpoint, arguments, class_names)
    heads = head_names(checkpoint.system, arguments) if is_other else set()
    channels = checkpoint.all_arguments.get("in_channels"), arguments.get("in_channels")
    resizings = dict(_resizings(checkpoint.outline(), model, channels))
    state, rows = dict(checkpoint.state), []
    taken: dict[str, Tensor] = {}
    for name, ours in model.state_dict().items():
        theirs = state.pop(name, None)
        if theirs is None:
            rows.append(Adapted(name, "—", _shape(ours), "started anew: the checkpoint has none"))
        elif name in heads:
            rows.append(Adapted(name, _shape(theirs), _shape(ours), "started anew: other classes"))
        elif name in resizings:
            resizing = resizings[name]
            taken[name] = resizing.apply(theirs)
            rows.append(Adapted(name, resizing.found, resizing.wanted, resizing.done))
        else:
            taken[name] = theirs
        if name in taken and taken[name].shape != ours.shape:
            raise MiradaError(
                f"{checkpoint.start}: {name} is {_shape(taken[name])} there and {_shape(ours)} in the model that is "
                f"asked for; only classes, channels, image size and patch size may differ, so leave out the rest."
            )
    rows += [Adapted(name, _shape(left), "—", "not used: the model has none") for name, left in state.items()]
    if not taken:
        raise MiradaError(f"{checkpoint.start}: has no tensor of the model that is asked for.")
    return taken, rows


def head_names(system: str, arguments: Mapping[str, Any]) -> set[str]:
    """The tensors that would have another shape with one class more."""
    more = {**arguments, "num_classes": arguments["num_classes"] + 1}
    states = [outline(system, **a).state_dict() for a in (dict(arguments), more)]
    return {name for name, tensor in states[0].items() if tensor.shape != states[1][name].shape}


def other_classes(checkpoint: Checkpoint, arguments: Mapping[str, Any], class_names: tuple[str, ...]) -> bool:
    if checkpoint.arguments.get("num_classes") != arguments["num_classes"]:
        return True
    return bool(checkpoint.class_names and class_names) and checkpoint.class_names != class_names


def _resizings(source: nn.Module, model: nn.Module, channels: Channels) -> Iterator[tuple[str, Resizing]]:
    """By tensor, for the parts that both have and whose size differs; `channels` of images before and after."""
    before = dict(source.named_modules())
    for name, part in model.named_modules():
        old = before.get(name)
        if isinstance(part, Learned) and isinstance(old, Learned):
            if (part.size, part.num_extra) != (old.size, old.num_extra):
                yield f"{name}.weight", _positions(old, part)
        elif isinstance(part, LinearPatches) and isinstance(old, LinearPatches):
            sizes = [
                (p.projection.in_features // (p.patch_size[0] * p.patch_size[1]), p.patch_size) for p in (old, part)
            ]
            if sizes[0] != sizes[1]:
                yield f"{name}.projection.weight", _kernel(*sizes)
        elif isinstance(part, nn.Conv2d) and isinstance(old, nn.Conv2d) and part.groups == old.groups == 1:
            yield from _convolution(name, old, part, channels)
        elif isinstance(part, BiasTable) and isinstance(old, BiasTable) and part.size != old.size:
            sides = [tuple(2 * n - 1 for n in table.size) for table in (old, part)]
            yield f"{name}.table", _grid("offsets", sides[0], sides[1])
        elif isinstance(part, Decomposed) and isinstance(old, Decomposed):
            for table in ("row_table", "column_table"):
                before_after = len(getattr(old, table)), len(getattr(part, table))
                if before_after[0] != before_after[1]:
                    yield f"{name}.{table}", _grid("offsets", before_after[:1], before_after[1:])


def _positions(old: Learned, new: Learned) -> Resizing:
    if len(old.size) == len(new.size) == 1:
        return _places_of_text(old, new)
    if new.num_extra == old.num_extra:
        return _grid("positions", old.size, new.size, old.num_extra)
    found, wanted = (f"{p.num_extra} + {_times(p.size)} positions" for p in (old, new))
    kept = min(old.num_extra, new.num_extra)

    def apply(table_ND: Tensor) -> Tensor:
        extra, grid = table_ND[: old.num_extra], table_ND[old.num_extra :]
        zeros = extra.new_zeros(new.num_extra - kept, extra.shape[1])
        return torch.cat([extra[:kept], zeros, other_grid(grid, old.size, new.size)])

    return Resizing(found, wanted, f"{kept} extra kept, others dropped or zero; grid interpolated", apply)


def _places_of_text(old: Learned, new: Learned) -> Resizing:
    """The n-th token stays the n-th: a text is cut, not shrunk as an image is."""
    kept, more = min(old.size, new.size)[0], max(0, new.size[0] - old.size[0])

    def apply(table_ND: Tensor) -> Tensor:
        return torch.cat([table_ND[:kept], table_ND.new_zeros(more, table_ND.shape[1])])

    done = f"the first {kept} kept" + (f", {more} more start at zero" if more else "")
    return Resizing(f"{old.size[0]} positions", f"{new.size[0]} positions", done, apply)


def _grid(what: str, size: tuple[int, ...], new_size: tuple[int, ...], num_extra: int = 0) -> Resizing:
    how = {1: "linear", 2: "bicubic", 3: "trilinear"}[len(size)]
    return Resizing(
        f"{_times(size)} {what}",
        f"{_times(new_size)} {what}",
        f"{how} interpolation" + (f", {num_extra} extra kept" if num_extra else ""),
        partial(other_grid, size=size, new_size=new_size, num_extra=num_extra),
    )


Patches = tuple[int, tuple[int, int]]  # channels, sides of a patch


def _kernel(old: Patches, new: Patches) -> Resizing:
    def apply(weight: Tensor) -> Tensor:
        kernel = weight.reshape(weight.shape[0], old[0], *old[1])
        if old[0] != new[0]:
            kernel = other_channels(kernel, new[0])
        kernel = other_patch(kernel, new[1])
        return kernel.flatten(1) if weight.ndim == 2 else kernel

    done = []
    if old[0] != new[0]:
        done.append(_channels_done(old[0], new[0]))
    if old[1] != new[1]:
        done.append("kernel resized by the pseudo-inverse of bicubic resizing")
    found, wanted = (f"{channels} channels, patches of {_times(sides)}" for channels, sides in (old, new))
    return Resizing(found, wanted, "; ".join(done), apply)


def _convolution(name: str, old: nn.Conv2d, new: nn.Conv2d, channels: Channels) -> Iterator[tuple[str, Resizing]]:
    sides = [(conv.kernel_size[0], conv.kernel_size[1]) for conv in (old, new)]
    sees_images = old.in_channels != new.in_channels and (old.in_channels, new.in_channels) == channels
    # A kernel of another size is known to do the same work only where it cuts patches.
    cuts_patches = sides[0] != sides[1] and all(conv.kernel_size == conv.stride for conv in (old, new))
    if sees_images or cuts_patches:
        yield f"{name}.weight", _kernel((old.in_channels, sides[0]), (new.in_channels, sides[1]))


def _channels_done(old: int, new: int) -> str:
    return f"sum over {old} channels" if new == 1 else f"{old} channels in turn, times {old}/{new}"


def _shape(tensor: Tensor) -> str:
    return _times(tuple(tensor.shape)) or "1"


def _times(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes))
