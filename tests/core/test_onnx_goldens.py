"""Our parts reproduce the arrays that the ONNX project publishes for its operators, on every kernel that serves them.

`pytest -s` prints how many; docs/kernels.md says it too.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Places, Rotary, line
from mirada.core.heads import split
from mirada.core.kernels import TABLE, forced
from mirada.core.kernels.reference import masked_softmax
from tests.core.onnx_cases import NOT_EXPRESSED, Case, OnnxAttention, cases, count


def each(module: str) -> pytest.MarkDecorator:
    """One test per case. A case that our parts cannot express must go on failing, or leave the list."""
    params = [
        pytest.param(
            case,
            id=case.name,
            marks=[pytest.mark.xfail(reason=NOT_EXPRESSED[case.name])] if case.name in NOT_EXPRESSED else [],
        )
        for case in cases(module)
    ]
    return pytest.mark.parametrize("case", params)


@pytest.mark.parametrize(
    ("module", "number"), [("attention", 93), ("rotaryembedding", 8)], ids=["attention", "rotaryembedding"]
)
def test_number_of_expressed_cases(module, number):
    expressed, total, line_of_text = count(module)
    print(f"\n{line_of_text}")
    assert expressed == number, "fewer than there were: a case was added to NOT_EXPRESSED or left ONNX"
    assert total == expressed + len(NOT_EXPRESSED.keys() & {case.name for case in cases(module)})


def test_reasons_speak_of_cases_that_exist():
    names = {case.name for module in ("attention", "rotaryembedding") for case in cases(module)}
    assert NOT_EXPRESSED.keys() <= names


@each("attention")
def test_attention(case):
    node = OnnxAttention(case)
    node.outputs()
    serving = [kernel.name for kernel in TABLE if kernel.refuses(node.call) is None]
    assert "reference" in serving
    for kernel in serving:
        with forced(kernel):
            outputs = node.outputs()
        for name, expected in case.outputs.items():
            torch.testing.assert_close(
                outputs[name], expected, **case.tolerance, msg=lambda m, k=kernel, n=name: f"{n}, {k} kernel: {m}"
            )


class GivenAngles(Rotary):
    """Rotary positions whose cosines and sines are given: one row per position, or one per sample and token."""

    def __init__(self, case: Case, head_dim: int) -> None:
        convention = "interleaved" if case.attributes.get("interleaved") else "half"
        super().__init__(
            head_dim, convention=convention, rotary_dim=case.attributes.get("rotary_embedding_dim", head_dim)
        )
        self.cos, self.sin = case.inputs["cos_cache"], case.inputs["sin_cache"]

    def cos_sin(self, coords: Tensor) -> tuple[Tensor, Tensor]:
        if self.cos.ndim == 3:
            return self.cos[:, None], self.sin[:, None]
        return self.cos[coords], self.sin[coords]


@each("rotaryembedding")
def test_rotary_embedding(case):
    x = case.inputs["input"]
    x_BHNK = split(x, case.attributes["num_heads"]) if x.ndim == 3 else x
    places = line(x_BHNK.shape[-2])
    if "position_ids" in case.inputs:
        index_B1N = case.inputs["position_ids"][:, None]
        places = Places(index_B1N, index_B1N[..., None], (50,))
    out = GivenAngles(case, x_BHNK.shape[-1])(x_BHNK, places)
    out = out.transpose(1, 2).flatten(2) if x.ndim == 3 else out
    torch.testing.assert_close(out, case.outputs["output"], **case.tolerance)


@each("layernormalization")
def test_layer_norm(case):
    weight, bias = case.inputs["W"], case.inputs["B"]
    norm = nn.LayerNorm(weight.shape, eps=case.attributes.get("epsilon", 1e-5))
    norm.load_state_dict({"weight": weight, "bias": bias})
    torch.testing.assert_close(norm(case.inputs["X"]), case.outputs["Y"], **case.tolerance)


@each("rmsnormalization")
def test_rms_norm(case):
    weight = case.inputs["W"]
    norm = nn.RMSNorm(weight.shape, eps=case.attributes.get("epsilon", 1e-5))
    norm.load_state_dict({"weight": weight})
    torch.testing.assert_close(norm(case.inputs["X"]), case.outputs["Y"], **case.tolerance)


@each("gelu")
def test_gelu(case):
    approximate = case.attributes.get("approximate", b"none").decode()
    torch.testing.assert_close(F.gelu(case.inputs["x"], approximate=approximate), case.outputs["y"], **case.tolerance)


@each("softmax")
def test_softmax_under_a_mask_that_hides_nothing(case):
    axis = case.attributes.get("axis", -1)
    logits = case.inputs["x"].movedim(axis, -1)
    out = masked_softmax(logits, torch.ones_like(logits, dtype=torch.bool)).movedim(-1, axis)
    torch.testing.assert_close(out, case.outputs["y"], **case.tolerance)
