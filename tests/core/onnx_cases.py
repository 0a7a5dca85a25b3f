"""The golden cases that the ONNX project ships with its operators, and its `Attention` operator written with our parts.

Shape letters: B batch, H heads, N queries, M keys, K head dim.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
import torch
from onnx.backend.test.case import node as onnx_node
from torch import Tensor

from mirada.core import (
    Attend,
    Band,
    Cache,
    GivenBias,
    Mask,
    Neighbours,
    Places,
    ScaledDot,
    Score,
    SoftCapped,
    kernels,
    line,
)
from mirada.core.attention import stand_ins
from mirada.core.heads import split
from mirada.core.kernels import reference
from mirada.core.kernels.call import Call

# Cases that our parts cannot express, by name, with the reason. None, at onnx 1.23.
NOT_EXPRESSED: dict[str, str] = {}

OPERATORS = {
    "attention": "Attention",
    "rotaryembedding": "RotaryEmbedding",
    "layernormalization": "LayerNormalization",
    "rmsnormalization": "RMSNormalization",
    "gelu": "Gelu",
    "softmax": "Softmax",
}


@dataclass(frozen=True)
class Case:
    name: str
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    attributes: dict[str, Any]

    @property
    def tolerance(self) -> dict[str, float]:
        """Half precision: a few units in the last place, as ONNX rounds after every operator and we do not."""
        dtype = next(iter(self.outputs.values())).dtype
        if dtype in (torch.float16, torch.bfloat16):
            return {"rtol": 4 * torch.finfo(dtype).eps, "atol": torch.finfo(dtype).eps}
        return {"rtol": 1e-5, "atol": 1e-6}


@cache
def cases(module: str) -> tuple[Case, ...]:
    """All cases of one operator; `collect_testcases` of ONNX would make those of every operator, which takes long."""
    importlib.import_module(f"onnx.backend.test.case.node.{module}")
    # A case called "…_expanded" repeats the arrays of another with the operator written as a graph of simpler ones.
    found = [case for case in onnx_node._NodeTestCases if "_expanded" not in case.name]
    operator = OPERATORS[module]
    return tuple(_read(case) for case in found if case.model.graph.node[0].op_type == operator)


def count(module: str) -> tuple[int, int, str]:
    """How many cases of an operator our parts express, of how many, and that as a sentence."""
    total = len(cases(module))
    expressed = total - sum(case.name in NOT_EXPRESSED for case in cases(module))
    return expressed, total, f"ONNX `{OPERATORS[module]}`: {expressed} of {total} golden cases"


def _read(case: Any) -> Case:
    node = case.model.graph.node[0]
    (inputs, outputs), *_ = case.data_sets
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    return Case(case.name.removeprefix("test_"), _named(node.input, inputs), _named(node.output, outputs), attributes)


def _named(names: Any, arrays: Any) -> dict[str, Tensor]:
    return {name: _tensor(array) for name, array in zip(filter(None, names), arrays, strict=True)}


def _tensor(array: np.ndarray) -> Tensor:
    if str(array.dtype) == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(np.array(array))


class OnnxAttention:
    """One `Attention` node as a call of `Attend`; `outputs` gives what the node gives."""

    def __init__(self, case: Case) -> None:
        given = case.attributes
        q, k, v = (case.inputs[name] for name in "QKV")
        self.is_flat = q.ndim == 3
        if self.is_flat:
            q, k, v = split(q, given["q_num_heads"]), split(k, given["kv_num_heads"]), split(v, given["kv_num_heads"])
        num_past = 0
        if "past_key" in case.inputs:
            num_past = case.inputs["past_key"].shape[-2]
            seen, layer = Cache(), torch.nn.Identity()
            seen.append(layer, case.inputs["past_key"], case.inputs["past_value"])
            k, v = seen.append(layer, k, v)
        self.q, self.k, self.v = q, k, v
        num_queries, num_keys = q.shape[-2], k.shape[-2]
        self.valid_BM, self.queries = None, line(num_queries, start=num_past)
        if "nonpad_kv_seqlen" in case.inputs:
            length_B = case.inputs["nonpad_kv_seqlen"]
            self.valid_BM = torch.arange(num_keys) < length_B[:, None]
            # The last query stands at the last real key, so every sample has its own places.
            index_B1N = (length_B[:, None] - num_queries + torch.arange(num_queries))[:, None]
            self.queries = Places(index_B1N, index_B1N[..., None], (num_keys,))
        self.keys = line(num_keys)
        neighbours, position = self._band(given), None
        if (mask := case.inputs.get("attn_mask")) is not None:
            # The operator numbers the rows of its mask by query; our rules number them by place. So the band is written
            # out too, and both speak of query 0, 1, …
            neighbours = Mask(neighbours.allowed(self.queries, self.keys))
            self.queries = line(num_queries)
            mask = _to_all_keys(mask, num_keys).expand(*mask.shape[:-2], num_queries, num_keys)
            if mask.dtype == torch.bool:
                neighbours = neighbours & Mask(mask)
            else:
                position = GivenBias(mask)
        self.mode = given.get("qk_matmul_output_mode", 0)
        self.attend = Attend(_score(given), neighbours, position)

    @staticmethod
    def _band(given: dict[str, Any]) -> Neighbours:
        before, after = (given.get(f"{side}_window_size", -1) for side in ("left", "right"))
        band = Band(None if before < 0 else before, None if after < 0 else after)
        return band & Band(after=0) if given.get("is_causal") else band

    def outputs(self) -> dict[str, Tensor]:
        with stand_ins.of({self.attend: self._keep_call}):
            out = self.attend(self.q, self.k, self.v, valid_BM=self.valid_BM, queries=self.queries, keys=self.keys)
        return {
            "Y": out.transpose(1, 2).flatten(2) if self.is_flat else out,
            "present_key": self.k,
            "present_value": self.v,
            "qk_matmul_output": self._inside(self.call),
        }

    def _keep_call(self, call: Call) -> Tensor:
        self.call = call
        return kernels.run(call)

    def _inside(self, call: Call) -> Tensor:
        """Mode 0: scores; 1: scores under the cap; 2: with bias and mask; 3: weights."""
        if self.mode == 3:
            return reference.weights(call)
        if self.mode == 2:
            allowed, logits = reference.allowed_pairs(call), reference.biased_logits(call)
            return logits if allowed is None else logits.masked_fill(~allowed, -torch.inf)
        return call.score(call.q_BHNK, call.k_BHMK)


def _to_all_keys(mask: Tensor, num_keys: int) -> Tensor:
    """A mask may end early: nobody looks at the keys after its end."""
    nobody = False if mask.dtype == torch.bool else -torch.inf
    mask = torch.nn.functional.pad(mask, (0, num_keys - mask.shape[-1]), value=nobody)
    return mask[None] if mask.ndim == 1 else mask


def _score(given: dict[str, Any]) -> Score:
    score = ScaledDot(given.get("scale"))
    return SoftCapped(score, given["softcap"]) if given.get("softcap") else score
