"""Keys and values of tokens already seen, so that decoding token t costs O(t) and not O(t²).

Shape letters: B batch, H heads, M keys, K head dim, V value dim.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mirada.core.places import Places, line


class Cache:
    """One entry per attention layer. Pass the same object to every decoding step; `length` tokens have been seen."""

    def __init__(self) -> None:
        self._seen: dict[nn.Module, _Growing] = {}
        self._memory: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self._source_B: Tensor | None = None  # the row of the memory that each row looks at
        self._places: dict[nn.Module, Places] = {}
        self._joined: tuple[Places, Places, Places] | None = None  # those seen, those that follow, both

    def length(self, layer: nn.Module) -> int:
        return self._seen[layer].length if layer in self._seen else 0

    def append(self, layer: nn.Module, k_BHMK: Tensor, v_BHMV: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens of a layer; gives all keys and values so far."""
        if layer not in self._seen:
            self._seen[layer] = _Growing()
        return self._seen[layer].append(k_BHMK, v_BHMV)

    def continues(self, layer: nn.Module, places: Places | None) -> bool:
        """Its tokens stand one after the other from 0 on, and the one at `places`, if they are given, is the next."""
        seen = self._places.get(layer)
        if seen is not None and not (seen.is_stretch and seen.is_whole):
            return False
        return places is None or (places.is_stretch and places.size == (self.length(layer) + 1,))

    def place(self, layer: nn.Module, places: Places) -> Places:
        """Add the places of the new tokens of a layer, which are appended; gives those of all so far."""
        seen, length = self._places.get(layer), self.length(layer) - len(places)
        if length and (seen is None or len(seen) != length):
            seen = line(length, device=places.index_N.device)  # the last of a line may be appended without a place
        self._places[layer] = places if seen is None else self._followed(seen, places)
        return self._places[layer]

    def _followed(self, seen: Places, places: Places) -> Places:
        """All layers are asked the same in turn, and share the answer."""
        if self._joined is None or self._joined[0] is not seen or self._joined[1] is not places:
            self._joined = (seen, places, seen.followed_by(places))
        return self._joined[2]

    def memory(self, layer: nn.Module, project: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values of an unchanging memory, projected at the first step only.

        Where each has the same number of beams, one after the other, these have one row together.
        """
        if layer not in self._memory:
            self._memory[layer] = project()
        return self._memory[layer]

    def copy(self) -> Cache:
        """One that goes on by itself from here: a beginning is computed once and continued in several ways."""
        other = Cache()
        other._seen = {layer: entry.copy() for layer, entry in self._seen.items()}
        other._memory, other._places = dict(self._memory), dict(self._places)
        other._source_B = self._source_B
        return other

    def __deepcopy__(self, memo: dict) -> Cache:
        return self.copy()  # the usual way would copy the layers too, and find nothing for the real ones

    def reorder(self, batch_index_B: Tensor) -> None:
        """Row b becomes the former row batch_index[b]: what beam search does when it keeps, drops or doubles a beam."""
        for entry in self._seen.values():
            entry.reorder(batch_index_B)
        self._reorder_memory(batch_index_B)
        for layer, places in self._places.items():
            self._places[layer] = places.of_samples(batch_index_B)

    def _reorder_memory(self, batch_index_B: Tensor) -> None:
        """Beams of one sentence have one memory: as long as only they change places, there is nothing to copy."""
        if not self._memory:
            return
        if self._source_B is None:
            num_rows = len(next(iter(self._memory.values()))[0])
            self._source_B = torch.arange(num_rows, device=batch_index_B.device)
        before_B, self._source_B = self._source_B, self._source_B.index_select(0, batch_index_B)
        if torch.equal(self._source_B, before_B):
            return
        kept_S, beams_S = self._source_B.unique_consecutive(return_counts=True)
        num_beams = len(batch_index_B) // max(1, len(kept_S))
        if not bool((beams_S == num_beams).all()):
            kept_S, num_beams = self._source_B, 1
        for layer, (k, v) in self._memory.items():
            self._memory[layer] = (k.index_select(0, kept_S), v.index_select(0, kept_S))
        self._source_B = torch.arange(len(kept_S), device=kept_S.device).repeat_interleave(num_beams)


class _Growing:
    """Two tensors that grow along M; the buffer doubles, so appending copies each token a constant number of times."""

    def __init__(self) -> None:
        self.length = 0
        self.buffers: tuple[Tensor, Tensor] | None = None

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        start, self.length = self.length, self.length + k.shape[-2]
        if self.buffers is None:
            self.buffers = (k, v)
        elif torch.is_grad_enabled():
            # Earlier steps keep their keys and values for the backward pass: writing into the buffer would break it.
            old_k, old_v = (buffer[..., :start, :] for buffer in self.buffers)
            self.buffers = (torch.cat([old_k, k], dim=-2), torch.cat([old_v, v], dim=-2))
        else:
            if self.buffers[0].shape[-2] < self.length:
                self.buffers = (_larger(self.buffers[0], start, k), _larger(self.buffers[1], start, v))
            for buffer, new in zip(self.buffers, (k, v), strict=True):
                buffer.narrow(-2, start, new.shape[-2]).copy_(new)
        return self.buffers[0].narrow(-2, 0, self.length), self.buffers[1].narrow(-2, 0, self.length)

    def copy(self) -> _Growing:
        other = _Growing()
        other.length = self.length
        if self.buffers is not None:
            # Cut to length, so that the next token of either makes a buffer of its own.
            other.buffers = (self.buffers[0][..., : self.length, :], self.buffers[1][..., : self.length, :])
        return other

    def reorder(self, batch_index_B: Tensor) -> None:
        assert self.buffers is not None
        k, v = self.buffers
        self.buffers = (_of_rows(k, batch_index_B, self.length), _of_rows(v, batch_index_B, self.length))


def _of_rows(buffer: Tensor, index_B: Tensor, length: int) -> Tensor:
    """Other rows of it, with as much room; only the `length` tokens that are there are copied."""
    filled = buffer.narrow(-2, 0, length)
    if torch.is_grad_enabled():
        return filled.index_select(0, index_B)
    room = buffer.new_empty(len(index_B), *buffer.shape[1:])
    torch.index_select(filled, 0, index_B, out=room.narrow(-2, 0, length))
    return room


def _larger(buffer: Tensor, length: int, more: Tensor) -> Tensor:
    """Its first `length` tokens, with room for as many again and twice what comes."""
    room = more.new_empty(*more.shape[:-2], 2 * (length + more.shape[-2]), more.shape[-1])
    room.narrow(-2, 0, length).copy_(buffer.narrow(-2, 0, length))
    return room
