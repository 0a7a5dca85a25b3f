"""Keys and values of tokens already seen, so that decoding token t costs O(t) and not O(t²).

Shape letters: B batch, S sentences, H heads, M keys, K head dim, V value dim.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mirada.core.beams import Beams, of_tokens
from mirada.core.places import Places, line

MOST_OF_OTHERS = 64  # times the tokens of a beam that its sentence may store for it to look at


class Cache:
    """One entry per attention layer. Pass the same object to every decoding step; `length` tokens have been seen."""

    def __init__(self) -> None:
        self._seen: dict[nn.Module, _Growing] = {}
        self._memory: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self._beams: Beams | None = None  # None: no two rows share anything
        self._num_last = 0  # tokens that some layers have stored for each sentence, and others not yet
        self._places: dict[nn.Module, Places] = {}
        self._joined: tuple[Places, Places, Places] | None = None  # those seen, those that follow, both

    def length(self, layer: nn.Module) -> int:
        return self._seen[layer].num_tokens if layer in self._seen else 0

    def append(self, layer: nn.Module, k_BHMK: Tensor, v_BHMV: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens of a layer; gives all keys and values so far."""
        if self.width(layer) == 1:
            return self.append_together(layer, k_BHMK, v_BHMV)[:2]
        assert self._beams is not None
        new = (self._beams.together(each) for each in (k_BHMK, v_BHMV))
        k_SHMK, v_SHMV, _ = self.append_together(layer, *new)
        return self._beams.apart(k_SHMK), self._beams.apart(v_SHMV)

    def width(self, layer: nn.Module) -> int:
        """How many beams of a sentence will store their next tokens together in this layer.

        Every row gets its own again where gradients are wanted, where a layer has not as many tokens as others, and
        where beams have so little in common that looking past the others' tokens costs more than copies.
        """
        if self._beams is None:
            return 1
        stored = self._seen[layer].length if layer in self._seen else 0
        is_behind = stored not in (self._beams.num_stored, self._beams.num_stored - self._num_last)
        if is_behind or torch.is_grad_enabled() or self._beams.num_stored > MOST_OF_OTHERS * self.length(layer):
            self._part()
        return 1 if self._beams is None else self._beams.width

    def append_together(self, layer: nn.Module, k_SHXK: Tensor, v_SHXV: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Add new tokens of `width` beams, those of the first beam first; gives all that their sentence stores.

        `hidden_SWM` is 0 where a beam has a token itself and −∞ where only others have it, None if there are no others.
        """
        entry, num_new = self._seen.setdefault(layer, _Growing()), k_SHXK.shape[-2]
        if self._beams is None:
            return *entry.append(k_SHXK, v_SHXV, num_new), None
        if entry.length == self._beams.num_stored:  # the first of the layers
            self._beams, self._num_last = self._beams.longer(num_new), num_new
        assert entry.length + num_new == self._beams.num_stored, "layers of one step have the same new tokens"
        return *entry.append(k_SHXK, v_SHXV, num_new // self._beams.width), self._beams.hidden_SWM

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
            self._part()
            self._memory[layer] = project()
        return self._memory[layer]

    def copy(self) -> Cache:
        """One that goes on by itself from here: a beginning is computed once and continued in several ways."""
        other = Cache()
        other._seen = {layer: entry.copy() for layer, entry in self._seen.items()}
        other._memory, other._places = dict(self._memory), dict(self._places)
        other._beams, other._num_last = self._beams, self._num_last
        return other

    def __deepcopy__(self, memo: dict) -> Cache:
        return self.copy()  # the usual way would copy the layers too, and find nothing for the real ones

    def reorder(self, batch_index_B: Tensor) -> None:
        """Row b becomes the former row batch_index[b]: what beam search does when it keeps, drops or doubles a beam."""
        for layer, places in self._places.items():
            self._places[layer] = places.of_samples(batch_index_B)
        beams = self._shareable()
        found = None if beams is None else beams.reordered(batch_index_B)
        if found is None or (self._beams is None and found[1].width == 1):
            self._part()
            self._select(batch_index_B)
            return
        assert beams is not None
        (sentences, self._beams), self._num_last = found, 0
        if sentences != list(range(len(beams.hidden_SWM))):
            self._select(torch.tensor(sentences, device=batch_index_B.device))
        if self._beams.width == 1:
            self._part()
        elif self._beams.are_crowded:
            index_SM, self._beams = self._beams.without_lost()
            for entry in self._seen.values():
                entry.keep(index_SM)

    def _shareable(self) -> Beams | None:
        """Who shares what, where rows may: without gradients, and with as many tokens in every layer."""
        lengths = {entry.length for entry in self._seen.values()}
        stored = [k for k, _ in self._memory.values()]
        stored += [entry.buffers[0] for entry in self._seen.values() if entry.buffers is not None]
        if torch.is_grad_enabled() or len(lengths) > 1 or not stored:
            return None
        if self._beams is None:
            return Beams.one_each(len(stored[0]), max(lengths, default=0), like=stored[0])
        return self._beams if lengths <= {self._beams.num_stored} else None

    def _part(self) -> None:
        """Every row has its own from now on."""
        if self._beams is None:
            return
        beams, self._beams = self._beams, None
        for entry in self._seen.values():
            entry.part(beams)
        for layer, (k, v) in self._memory.items():
            self._memory[layer] = (k.repeat_interleave(beams.width, 0), v.repeat_interleave(beams.width, 0))

    def _select(self, index_B: Tensor) -> None:
        for entry in self._seen.values():
            entry.select(index_B)
        for layer, (k, v) in self._memory.items():
            self._memory[layer] = (k.index_select(0, index_B), v.index_select(0, index_B))


class _Growing:
    """Two tensors that grow along M; the buffer doubles, so appending copies each token a constant number of times.

    `length` tokens of each row are stored, and of the beams that share a row each has seen `num_tokens`.
    """

    def __init__(self) -> None:
        self.length = self.num_tokens = 0
        self.buffers: tuple[Tensor, Tensor] | None = None

    def append(self, k: Tensor, v: Tensor, num_new: int) -> tuple[Tensor, Tensor]:
        start, self.length = self.length, self.length + k.shape[-2]
        self.num_tokens += num_new
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
        other.length, other.num_tokens = self.length, self.num_tokens
        if self.buffers is not None:
            # Cut to length, so that the next token of either makes a buffer of its own.
            other.buffers = (self.buffers[0][..., : self.length, :], self.buffers[1][..., : self.length, :])
        return other

    def select(self, index_B: Tensor) -> None:
        assert self.buffers is not None
        k, v = self.buffers
        self.buffers = (_of_rows(k, index_B, self.length), _of_rows(v, index_B, self.length))

    def keep(self, index_SM: Tensor) -> None:
        """Of each row these tokens only."""
        self._replace(index_SM.shape[1], lambda stored: of_tokens(stored, index_SM))

    def part(self, beams: Beams) -> None:
        self._replace(self.num_tokens, beams.apart)

    def _replace(self, length: int, change: Callable[[Tensor], Tensor]) -> None:
        assert self.buffers is not None
        k, v = (change(buffer.narrow(-2, 0, self.length)) for buffer in self.buffers)
        self.length, self.buffers = length, (k, v)


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
