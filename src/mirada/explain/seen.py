"""What passes through modules of a model while it runs, in this thread only: others may run the same model too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import TypeVar

from torch import Tensor, nn

from mirada.errors import MiradaError

Moment = TypeVar("Moment")


@contextmanager
def outputs_of(layers: Sequence[nn.Module], moment: Callable[[], Moment]) -> Iterator[list[tuple[Tensor, Moment]]]:
    """(output, what `moment` says then) each time one of the layers has run."""
    seen: list[tuple[Tensor, Moment]] = []
    me = get_ident()

    def keep(module: nn.Module, inputs: object, output: object) -> None:
        if get_ident() == me:
            assert isinstance(output, Tensor)
            seen.append((output, moment()))

    handles = [layer.register_forward_hook(keep) for layer in layers]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def input_of(module: nn.Module) -> Iterator[list[Tensor]]:
    """The first argument, each time the module runs."""
    seen: list[Tensor] = []
    me = get_ident()

    def keep(module: nn.Module, inputs: tuple) -> None:
        if get_ident() == me:
            if not inputs or not isinstance(inputs[0], Tensor):
                raise MiradaError(
                    f"{type(module).__name__} got no tensor by place, so nothing can be seen of its input"
                )
            seen.append(inputs[0])

    handle = module.register_forward_pre_hook(keep)
    try:
        yield seen
    finally:
        handle.remove()


@contextmanager
def first_output_replaced(module: nn.Module, replace: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """The first time the module runs, it gives `replace(output)`."""
    me, has_run = get_ident(), False

    def give(module: nn.Module, inputs: object, output: Tensor) -> Tensor | None:
        nonlocal has_run
        if get_ident() != me or has_run:
            return None
        has_run = True
        return replace(output)

    handle = module.register_forward_hook(give)
    try:
        yield
    finally:
        handle.remove()
