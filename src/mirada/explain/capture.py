"""The weights of any `nn.Module`, under its own kernels: `with capture(model) as captured: model(x)`.

    α = softmax(s q·kᵀ + mask),   out = α v

A fused kernel never forms α. Inside the block every call of torch's fused attention by the model is computed as above,
and α is kept: it is the tensor that the output is computed from, so gradients with respect to it exist. A model that
writes its own softmax is seen, too: the softmax's result is kept as α if it goes on to multiply values, and if it goes
elsewhere the model is refused, since part of its attention would be missing.

torch's calls are taken over by a `TorchFunctionMode`, which belongs to one thread; nothing of torch or of the model is
changed, so other threads run as always. As long as it is open `nn.MultiheadAttention` and `nn.TransformerEncoder`
leave their fast path, which has no α either.

Shape letters: B batch, H heads, N queries, M keys, K head dim.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import FrameType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from mirada.errors import MiradaError

SOFTMAXES = (F.softmax, torch.softmax, torch.Tensor.softmax, torch.special.softmax)
PRODUCTS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.bmm, torch.Tensor.bmm, torch.einsum)
# What leaves weights what they are: they are followed through these until they multiply the values.
FOLLOWED = (
    *(F.dropout, torch.dropout, torch.Tensor.to, torch.Tensor.type, torch.Tensor.type_as, torch.Tensor.float),
    *(torch.Tensor.half, torch.Tensor.bfloat16),
    *(torch.Tensor.contiguous, torch.Tensor.view, torch.Tensor.reshape, torch.Tensor.masked_fill),
)


@dataclass(frozen=True)
class CapturedMap:
    """α of one call: (B, H, N, M), or as many dimensions as the model's own softmax has."""

    name: str  # of the innermost module that ran
    layer: str  # its class
    weights_BHNM: Tensor
    is_cross: bool = False  # known to look at other tokens than those that look


class Captured:
    """What a model's attention did in the block, in the order in which it ran."""

    def __init__(self, model: nn.Module) -> None:
        self.model_class = type(model).__name__
        self._maps: list[CapturedMap] = []
        self._unused: dict[int, tuple[str, str, Tensor]] = {}  # own softmaxes that have not multiplied anything

    @property
    def maps(self) -> list[CapturedMap]:
        """All of them; a layer that runs again is called "name (run 2)". Never a part of them, and never none."""
        for name, layer, weights in self._unused.values():
            raise MiradaError(
                f"{self.model_class} cannot be captured: its layer {name!r} ({layer}) has a softmax of its own, of "
                f"shape {tuple(weights.shape)}, that does not go straight on to multiply values"
            )
        if not self._maps:
            raise MiradaError(
                f"{self.model_class} ran no attention inside the block: neither torch's scaled_dot_product_attention "
                "nor a softmax over keys; it may be no attention model, or may not have run"
            )
        return self._maps

    def _add(self, name: str, layer: str, weights: Tensor, is_cross: bool = False) -> None:
        runs = Counter(seen.name.split(" (run ")[0] for seen in self._maps)[name]
        self._maps.append(CapturedMap(f"{name} (run {runs + 1})" if runs else name, layer, weights, is_cross))


@contextmanager
def capture(model: nn.Module, *, differentiable: bool = False) -> Iterator[Captured]:
    """Keep the attention weights of `model` while it runs in this block and this thread.

    With `differentiable`, gradients are on and reach every map, also if all parameters are frozen; else maps are
    detached. The output is the fused kernel's to rounding.
    """
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule) or _is_compiled(module):
            raise MiradaError(
                f"{type(model).__name__} is compiled ({name or 'the whole of it'}), so that its attention cannot be "
                "seen: give the model as it was before torch.compile or torch.jit"
            )
    if differentiable and torch.is_inference_mode_enabled():
        raise MiradaError("torch.inference_mode is on, and has no gradients: capture outside of it")
    recorder = _Recorder(model, differentiable)
    with torch.enable_grad() if differentiable else nullcontext(), recorder:
        try:
            yield recorder.captured
        finally:
            recorder.aliases.clear()  # else they, and the graph they hang on, wait for the garbage collector


def _is_compiled(module: nn.Module) -> bool:
    return getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod")


class _Recorder(TorchFunctionMode):
    def __init__(self, model: nn.Module, differentiable: bool) -> None:
        super().__init__()
        self.names = {module: name or type(model).__name__ for name, module in model.named_modules()}
        self.captured, self.differentiable = Captured(model), differentiable
        self.aliases: dict[int, tuple[Tensor, int]] = {}  # tensor and the softmax it comes from, by the tensor's id
        self.handlers: dict[Callable, Callable] = {
            F.scaled_dot_product_attention: self.fused,
            F.multi_head_attention_forward: self.multi_head,
            **dict.fromkeys(SOFTMAXES, self.own_softmax),
            **dict.fromkeys(FOLLOWED, self.follow),
            **dict.fromkeys(PRODUCTS, self.product),
        }

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        handler = self.handlers.get(func)
        return func(*args, **(kwargs or {})) if handler is None else handler(func, *args, **(kwargs or {}))

    def layer(self) -> tuple[str, str] | None:
        """Name and class of the model's module that runs, as the call stack tells: no hook is left on the model."""
        frame: FrameType | None = inspect.currentframe()
        while frame is not None:
            code = frame.f_code
            first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if isinstance(first, nn.Module) and not isinstance(first, nn.Softmax) and first in self.names:
                return self.names[first], type(first).__name__
            frame = frame.f_back
        return None

    def keep(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The weights to compute with, and what is kept of them."""
        if not self.differentiable:
            return weights, weights.detach()
        if not weights.requires_grad:
            weights = weights.detach().requires_grad_()
        return weights, weights

    def fused(self, func: Callable, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if (layer := self.layer()) is None:
            return func(query, key, value, *args, **kwargs)
        return self.attend(layer, query, key, value, *args, **kwargs)

    def attend(
        self,
        layer: tuple[str, str],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
        is_cross: bool = False,
    ) -> Tensor:
        """out of one call with the arguments of torch's fused attention."""
        if query.is_nested or type(attn_mask) not in (type(None), Tensor, nn.Parameter):
            what = "nested tensors" if query.is_nested else f"a mask of type {type(attn_mask).__name__}"
            raise MiradaError(f"{layer[1]} ({layer[0]!r}) attends with {what}: capture knows plain tensors only")
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(groups, dim=-3), value.repeat_interleave(groups, dim=-3)
        if is_causal:
            attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        found = weights_of(query, key, attn_mask, scale)
        batch_and_heads = {2: (1, 1), 3: (len(found), 1)}.get(found.ndim, found.shape[:-2])
        weights, kept = self.keep(found.reshape(*batch_and_heads, *found.shape[-2:]))
        self.captured._add(*layer, kept, is_cross)
        dropped = F.dropout(weights, dropout_p) if dropout_p else weights
        return dropped.reshape(found.shape).to(value.dtype) @ value

    def multi_head(self, func: Callable, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """torch's own function, but for the fused attention in it; asked for weights it would take another way."""
        if (layer := self.layer()) is None:
            return func(*args, **kwargs)
        given = inspect.signature(func).bind(*args, **kwargs)
        given.apply_defaults()
        asked = given.arguments
        need_weights, average = asked["need_weights"], asked["average_attn_weights"]
        asked["need_weights"] = False
        if need_weights:
            asked["is_causal"] = False  # a hint, beside the mask; with weights torch follows the mask
        attend = partial(self.attend, layer, is_cross=asked["query"] is not asked["key"])
        replaced = {"scaled_dot_product_attention": attend, "has_torch_function": lambda _: False}
        assert isinstance(func, FunctionType)
        same = FunctionType(func.__code__, {**func.__globals__, **replaced}, argdefs=func.__defaults__)
        out, _ = same(*given.args, **given.kwargs)
        if not need_weights:
            return out, None
        weights_BHNM = self.captured._maps[-1].weights_BHNM
        weights = weights_BHNM.mean(dim=1) if average else weights_BHNM
        return out, weights if asked["query"].ndim == 3 else weights[0]

    def own_softmax(self, func: Callable, *args: Any, **kwargs: Any) -> Tensor:
        found = func(*args, **kwargs)
        layer = self.layer() if found.ndim > 2 else None  # of two dimensions are classes and experts
        if layer is None:
            return found
        weights, kept = self.keep(found)
        number = id(weights)
        self.captured._unused[number] = (*layer, kept)
        if kwargs.get("dim", args[1] if len(args) > 1 else None) in (-1, found.ndim - 1):
            self.aliases[number] = (weights, number)
        return weights

    def follow(self, func: Callable, *args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        if args and id(args[0]) in self.aliases:
            weights, number = self.aliases[id(args[0])]
            if isinstance(result, Tensor) and result.shape[-2:] == weights.shape[-2:]:
                self.aliases[id(result)] = (result, number)
        return result

    def product(self, func: Callable, *args: Any, **kwargs: Any) -> Tensor:
        result = func(*args, **kwargs)
        if not self.aliases:
            return result
        operands = args[1:] if func is torch.einsum else args[:1]
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = tuple(operands[0])
        for operand in operands:
            if id(operand) in self.aliases:
                number = self.aliases[id(operand)][1]
                if number in self.captured._unused:
                    self.captured._add(*self.captured._unused.pop(number))
        return result


def weights_of(query: Tensor, key: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """softmax(s q·kᵀ + mask) over the keys, with s = 1/√K if None; a row that may look nowhere is zero, as in torch."""
    scores = query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale) @ key.mT
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    if mask is None:
        return scores.softmax(dim=-1)
    scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    nowhere = (scores == -torch.inf).all(dim=-1, keepdim=True)
    return scores.masked_fill(nowhere, 0.0).softmax(dim=-1).masked_fill(nowhere, 0.0)
