"""Which kernel computes a call: the first row of TABLE that does not refuse its parts.

    edge list      Edges              any score          no relative position             cost O(E)
    block local    narrow bands       any score          any bias on the logits           cost O(N · width)
    block sparse   Strided, Fixed     any score          any bias on the logits           cost O(N · √N) at l = √N
    block grid     Grid, Windows      any score          any bias on the logits           cost O(N · window)
    features       full               random features    none                             cost O(N + M)
    distances      full               distances          none, and no gradient            cost O(N · M), memory O(M)
    fused          any                dot products       any bias on the logits           cost O(N · M), memory O(N)
    reference      any                any                any, Shaw's values, mixing       cost and memory O(N · M)

Rotary and added positions act before the kernel, so every row serves them.
A mask or a bias takes the fused kernel N · M numbers of memory besides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from mirada.core.kernels import block_grid, block_local, block_sparse, distances, edge_list, features, fused, reference
from mirada.core.kernels.call import Call
from mirada.core.scoped import Scoped
from mirada.errors import MiradaError

log = logging.getLogger(__name__)


def _always(call: Call) -> bool:
    return True


@dataclass(frozen=True)
class Kernel:
    """`refuses` says why a call cannot run here, None if it can; `is_worthwhile` whether it would be the faster one."""

    name: str
    run: Callable[[Call], Tensor]
    refuses: Callable[[Call], str | None]
    is_worthwhile: Callable[[Call], bool] = _always


TABLE = (
    Kernel("edge list", edge_list.run, edge_list.refuses),
    Kernel("block local", block_local.run, block_local.refuses, block_local.is_worthwhile),
    Kernel("block sparse", block_sparse.run, block_sparse.refuses),
    Kernel("block grid", block_grid.run, block_grid.refuses),
    Kernel("features", features.run, features.refuses),
    Kernel("distances", distances.run, distances.refuses),
    Kernel("fused", fused.run, fused.refuses),
    Kernel("reference", reference.run, reference.refuses),
)

_forced: Scoped[str | None] = Scoped("forced kernel", None)


def choose(call: Call) -> Kernel:
    """The first kernel of the table that serves the call and is worth it."""
    forced = _forced.get()
    if forced is not None:
        kernel = next(kernel for kernel in TABLE if kernel.name == forced)
        if reason := kernel.refuses(call):
            raise MiradaError(f"the {forced} kernel does not serve this call: {reason}")
        return kernel
    for kernel in TABLE:
        if kernel.refuses(call) is None and kernel.is_worthwhile(call):
            break
    if kernel.name == "reference" and not torch.compiler.is_compiling() and log.isEnabledFor(logging.DEBUG):
        reasons = "; ".join(f"{other.name}: {other.refuses(call)}" for other in TABLE[:-1])
        log.debug("attention runs on the reference kernel (%s)", reasons)
    return kernel


def run(call: Call) -> Tensor:
    return choose(call).run(call)


@contextmanager
def forced(name: str) -> Iterator[None]:
    """Within this context every call runs on the named kernel, or raises: for tests and measurements."""
    if name not in {kernel.name for kernel in TABLE}:
        raise MiradaError(f"no kernel is called {name!r}: there are {', '.join(kernel.name for kernel in TABLE)}")
    with _forced.of(name):
        yield
