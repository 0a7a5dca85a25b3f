"""Processes that train together, started by `torchrun`: which one this is, its share, and what they tell each other.

Outside torchrun there is one process, every share is the whole, and torch.distributed is not touched.
"""

from __future__ import annotations

import math
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from mirada.errors import MiradaError

if TYPE_CHECKING:
    from torch import Tensor

# A process that ended is noticed at once, as its connections close; this is for one that hangs, or a cable.
PATIENCE = timedelta(minutes=10)
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_AFTER_A_SIGNAL = 20.0  # torchrun kills what is left 30 s after its signal: time to say why

Some = TypeVar("Some")


class Lost(MiradaError):
    """Another process of this training ended, or cannot be reached."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"another process of this training ended or cannot be reached ({reason}).")
        self.reason = reason


@dataclass(frozen=True)
class Processes:
    """`count` processes, of which this one has the number `rank`; the first one writes and speaks."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, items: Iterable[Some]) -> Iterator[Some]:
        """Dealt like cards."""
        return islice(items, self.rank, None, self.count)

    def gathered(self, dealt: list[Some]) -> list[Some]:
        """What all processes made of their shares, in the order before they were dealt."""
        if self.count == 1:
            return dealt
        import torch.distributed as dist

        hands: list[Any] = [None] * self.count
        with others_needed():
            dist.all_gather_object(hands, dealt)
        longest = max(map(len, hands))
        return [hand[turn] for turn in range(longest) for hand in hands if turn < len(hand)]

    def sums(self, *numbers: float) -> tuple[float, ...]:
        """Over all processes."""
        if self.count == 1:
            return numbers
        import torch

        total = torch.tensor(numbers, dtype=torch.float64)
        with others_needed():
            torch.distributed.all_reduce(total)
        return tuple(total.tolist())

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Whether one of them says so."""
        return tuple(number > 0 for number in self.sums(*map(float, flags)))

    def as_first(self, value: Some) -> Some:
        """The value of the first process: numbers of another kind of processor differ in their last bits."""
        if self.count == 1:
            return value
        import torch.distributed as dist

        box = [value]
        with others_needed():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Gives all processes the tensors of the first."""
        if self.count > 1:
            import torch.distributed as dist

            with others_needed():
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def divided(self, work: Callable[[Tensor], Tensor], stacks: Iterable[Tensor]) -> Iterator[Tensor]:
        """work(stack) of each, of whose rows each process computes some; a result has the shape of its row.

        The results of one stack travel while the next is worked on.
        """
        if self.count == 1:
            yield from map(work, stacks)
            return
        import torch.distributed as dist

        travelling: tuple[Tensor, list] | None = None
        with others_needed():
            for rows in stacks:
                shares = rows.tensor_split(self.count)
                if len(shares[self.rank]):
                    shares[self.rank].copy_(work(shares[self.rank]))
                sent = enumerate(shares)
                works = [dist.broadcast(share, src=rank, async_op=True) for rank, share in sent if len(share)]
                if travelling is not None:
                    yield _arrived(*travelling)
                travelling = rows, works
            if travelling is not None:
                yield _arrived(*travelling)

    def by_first(self, work: Callable[[], Some], is_asked_to_stop: Callable[[], bool] = bool) -> Some:
        """What the first process makes, however long it takes; meanwhile the others wait."""
        if self.count == 1:
            return work()
        assert _group.store is not None
        key = f"work {_group.next_number()}"
        if self.is_first:
            with alone():
                made = work()
            _group.store.set(key, pickle.dumps(made))
            return made
        until = math.inf
        with others_needed():
            while not _group.store.check([key]):
                if is_asked_to_stop():
                    until = min(until, time.monotonic() + SECONDS_AFTER_A_SIGNAL)
                if time.monotonic() > until:
                    raise Lost("the first process does not answer")
                time.sleep(SECONDS_BETWEEN_LOOKS)
            return pickle.loads(_group.store.get(key))


def _arrived(rows: Tensor, works: list) -> Tensor:
    for each in works:
        each.wait()
    return rows


class _Group:
    """What this process knows of its group."""

    def __init__(self) -> None:
        self.here = Processes()
        self.store: Any = None
        self.number = 0

    def next_number(self) -> int:
        self.number += 1
        return self.number


_group = _Group()


def together() -> Processes:
    """Those that work together now."""
    return _group.here


def started() -> Processes:
    """As torchrun started them, also before they have joined."""
    return Processes(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


@contextmanager
def joined() -> Iterator[Processes]:
    """Within this context the processes of torchrun work together."""
    if started().count == 1 or together().count > 1:
        yield together()
        return
    import torch
    import torch.distributed as dist

    with others_needed():
        store, rank, count = next(dist.rendezvous("env://", timeout=PATIENCE))
        backend = "gloo"
        if torch.cuda.is_available():
            backend = "cpu:gloo,cuda:nccl"
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        group_store = dist.PrefixStore("mirada", store)
        dist.init_process_group(backend, store=group_store, rank=rank, world_size=count, timeout=PATIENCE)
    _group.store, _group.here = store, Processes(rank, count)
    try:
        yield together()
        _leave()
    finally:
        _group.here = Processes()
        dist.destroy_process_group()


def _leave() -> None:
    """The first process goes last: without torchrun's own, the store in which the others look is in it."""
    left = _group.store.add("left", 1)
    until = time.monotonic() + SECONDS_AFTER_A_SIGNAL
    while together().is_first and left < together().count and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        left = _group.store.add("left", 0)


@contextmanager
def alone() -> Iterator[None]:
    """Within this context this process works for itself."""
    former, _group.here = _group.here, Processes()
    try:
        yield
    finally:
        _group.here = former


@contextmanager
def others_needed() -> Iterator[None]:
    """What fails in here for want of another process is told as that."""
    try:
        yield
    except RuntimeError as error:
        if started().count > 1 and is_about_others(error):
            raise Lost(" ".join(str(error).split())[:160]) from error
        raise


def is_about_others(error: BaseException) -> bool:
    """Gloo and NCCL have errors of their own, but not always; their words tell."""
    import torch.distributed as dist

    said = str(error).lower()
    words = ("gloo", "nccl", "connection closed by peer", "connection reset by peer", "timed out waiting")
    return isinstance(error, dist.DistError) or any(word in said for word in words)


def is_to_tell() -> bool:
    """Whether this process is the one of all that says what went wrong: the first to fail, whose reason is the cause.

    Before they have joined all fail alike, and the first one tells.
    """
    if started().count == 1:
        return True
    if _group.store is None:
        return started().is_first
    try:
        return _group.store.add("told", 1) == 1
    except RuntimeError:  # the machine of the store is gone
        return True


def require_one(what: str) -> None:
    """Refuses where torchrun started several."""
    if (count := started().count) > 1:
        raise MiradaError(f"{what} is for one process, but torchrun started {count}; call it without torchrun.")
