"""A model in the form in which it writes fastest: few rows at a time go through large matrices.

    float32   y = x Wᵀ + b with W stored in the order in which it is read, and q, k, v of a token from one product
    int8      y_z = s_x s_z (x̂ Ŵᵀ)_z + b_z,    Ŵ_z = round(W_z / s_z),  s_z = max |W_z| / 127 for every row z of W,
              x̂ = round((x − min x) / s_x) with s_x from the numbers that are there, those of all rows of x

So in int8 what is said of a row depends, within the rounding, on the others of its batch; in float32 it does not.
Recurrent cells, norms, positions, attention and all sums stay in float32, and so do matrices that are quickly read.

Shape letters: B batch, N tokens, H heads, K head dim, D width in, Z width out.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from mirada.core import Attention, Concatenated
from mirada.errors import MiradaError
from mirada.nn.decoder import DecoderLayer
from mirada.nn.embedding import TokenEmbedding, TokenMatrices
from mirada.nn.lean import LEAN, Called, can_be_lean

PRECISIONS = ("float32", "int8")
MIN_PACKED = 2**19  # of a matrix in float32; a smaller one stays in the processor's cache, and each call takes longer
PACKED_OPERATORS = ("_reorder_linear_weight", "_linear_pointwise")
MIN_WEIGHTS = 2**16  # of a matrix in int8; a smaller one is read before its input is rounded
DEPRECATED = "torch.quantize_per_tensor, torch.quantize_per_channel"  # a warning; the products are not, nor replaced

Make = Callable[[Tensor, Tensor | None], nn.Module]


def prepare_for_decoding(model: nn.Module, precision: str = "float32") -> nn.Module:
    """The same model, for inference only; the given one is left as it is, and they share what is not stored anew."""
    if precision not in PRECISIONS:
        raise MiradaError(f"precision={precision!r}: must be one of {', '.join(PRECISIONS)}")
    if precision == "int8":
        _require_int8(model)
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    prepared = copy.deepcopy(model, shared).eval()
    make = _in_int8 if precision == "int8" else _in_float32
    for attention in _among_each_other(prepared):
        if _can_be_joined(attention.heads):
            attention.heads = JoinedHeads(attention.heads)  # type: ignore[assignment]
    scoring = set(_scoring(prepared))
    for part in list(prepared.modules()):
        for name, child in part.named_children():
            if type(child) is nn.Linear:
                bias = _taken_bias(part) if child.bias is None else child.bias.detach()
                setattr(part, name, make(child.weight.detach(), bias))
            elif isinstance(child, TokenEmbedding) and child in scoring:
                setattr(part, name, TwoForms(child, make(child.weight.detach(), _taken_bias(part))))
    for part in reversed(list(prepared.modules())):  # what is within first
        for name, child in part.named_children():
            if can_be_lean(child):
                setattr(part, name, LEAN[type(child)](child))
    return prepared


def _require_int8(model: nn.Module) -> None:
    elsewhere = {parameter.device.type for parameter in model.parameters()} - {"cpu"}
    if elsewhere:
        raise MiradaError(f"precision=int8 runs on the CPU, and the model is on {elsewhere.pop()}: use the device cpu")
    if not torch.backends.quantized.supported_engines or not hasattr(torch, "quantize_per_channel"):
        raise MiradaError("precision=int8: torch has no 8-bit products for this processor; use precision=float32")


class Turned(Called):
    """y = x Wᵀ + b, with Wᵀ stored row by row: one row of x then meets it as it lies in memory."""

    def __init__(self, weight_ZD: Tensor, bias_Z: Tensor | None) -> None:
        super().__init__()
        self.weight_DZ: Tensor
        self.bias_Z: Tensor | None
        self.register_buffer("weight_DZ", weight_ZD.T.contiguous())
        self.register_buffer("bias_Z", bias_Z)

    def forward(self, x: Tensor) -> Tensor:
        if self.bias_Z is None:
            return x @ self.weight_DZ
        y_NZ = torch.addmm(self.bias_Z, x.reshape(-1, x.shape[-1]), self.weight_DZ)
        return y_NZ.view(*x.shape[:-1], -1)


class Packed(Called):
    """y = x Wᵀ + b, with W stored in the blocks that oneDNN reads: a few rows take as long as W takes to be read."""

    def __init__(self, weight_ZD: Tensor, bias_Z: Tensor | None) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight_ZD.contiguous())
        self.bias_Z: Tensor | None
        self.register_buffer("bias_Z", bias_Z)

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias_Z, "none", [], "")


class Rounded(Called):
    """y = s_x s_z (x̂ Ŵᵀ)_z + b_z in 8 bits, see above; x is rounded to 7 bits, as sums of two products have 16."""

    def __init__(self, weight_ZD: Tensor, bias_Z: Tensor | None) -> None:
        super().__init__()
        scale_Z = weight_ZD.abs().amax(1).double().clamp(min=torch.finfo(torch.float32).tiny) / 127
        zero_Z = torch.zeros(len(weight_ZD), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", DEPRECATED, UserWarning)
            rounded_ZD = torch.quantize_per_channel(weight_ZD.float(), scale_Z, zero_Z, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(rounded_ZD, bias_Z)

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self.packed, reduce_range=True)


def _in_float32(weight_ZD: Tensor, bias_Z: Tensor | None) -> nn.Module:
    is_plain = weight_ZD.device.type == "cpu" and weight_ZD.dtype == torch.float32
    is_packed = weight_ZD.numel() >= MIN_PACKED and is_plain and _has_packed_products()
    return (Packed if is_packed else Turned)(weight_ZD, bias_Z)


def _has_packed_products() -> bool:
    """These operators, which torch's own compiler calls, are not promised to stay."""
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in PACKED_OPERATORS)


def _in_int8(weight_ZD: Tensor, bias_Z: Tensor | None) -> nn.Module:
    return Rounded(weight_ZD, bias_Z) if weight_ZD.numel() >= MIN_WEIGHTS else _in_float32(weight_ZD, bias_Z)


class JoinedHeads(nn.Module):
    """Concatenated heads of tokens that look at each other: [q, k, v] = x [W^Q, W^K, W^V] is one product."""

    def __init__(self, heads: Concatenated) -> None:
        super().__init__()
        projections = (heads.to_q, heads.to_k, heads.to_v)
        self.num_heads, self.head_dim = heads.num_heads, heads.head_dim
        self.of_each = [heads.num_heads, heads.num_key_heads, heads.num_key_heads]
        self.to_qkv = nn.Linear(heads.to_q.in_features, sum(self.of_each) * heads.head_dim, heads.to_q.bias is not None)
        self.to_qkv.weight = nn.Parameter(torch.cat([each.weight.detach() for each in projections]))
        if heads.to_q.bias is not None:
            self.to_qkv.bias = nn.Parameter(torch.cat([each.bias.detach() for each in projections]))
        self.to_out = heads.to_out

    def project(self, x_BND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        all_BHNK = self.to_qkv(x_BND).view(*x_BND.shape[:2], -1, self.head_dim).transpose(1, 2)
        q_BHNK, k_BHNK, v_BHNK = all_BHNK.split(self.of_each, dim=1)
        return q_BHNK, k_BHNK, v_BHNK

    def join(self, heads_BHNK: Tensor) -> Tensor:
        return self.to_out(heads_BHNK.transpose(1, 2).flatten(2))


class TwoForms(nn.Module):
    """x_i = e_{t_i} from the rows of E, and logits = h Eᵀ from E as it is stored for products."""

    def __init__(self, embedding: TokenEmbedding, output: nn.Module) -> None:
        super().__init__()
        self.embedding, self.output = embedding, output

    @property
    def weight(self) -> Tensor:
        return self.embedding.weight

    def forward(self, token_BN: Tensor) -> Tensor:
        return self.embedding(token_BN)

    def unembed(self, h_BND: Tensor) -> Tensor:
        return self.output(h_BND)


def _among_each_other(model: nn.Module) -> Iterator[Attention]:
    """Layers without a memory."""
    with_memory = {part.cross.get_submodule("inner") for part in model.modules() if isinstance(part, DecoderLayer)}
    for part in model.modules():
        if isinstance(part, Attention) and part not in with_memory:
            yield part


def _can_be_joined(heads: nn.Module) -> bool:
    """Not those that mix or share in another way, as subclasses do."""
    return (
        type(heads) is Concatenated
        and heads.head_dim == heads.value_dim
        and heads.to_q.in_features == heads.to_k.in_features
    )


def _taken_bias(part: nn.Module) -> Tensor | None:
    """The b of matrices of tokens, which the product of one of them adds from now on."""
    if not isinstance(part, TokenMatrices) or part.bias is None:
        return None
    bias, part.bias = part.bias.detach(), None
    return bias


def _scoring(model: nn.Module) -> Iterator[TokenEmbedding]:
    """Embeddings whose matrix gives the scores of tokens, too."""
    only_read: set[nn.Module | None] = set()
    for part in model.modules():
        if isinstance(part, TokenMatrices):
            only_read |= {part.source, part.own_target} - ({part.target} if part.own_output is None else set())
    for part in model.modules():
        if isinstance(part, TokenEmbedding) and part not in only_read:
            yield part
