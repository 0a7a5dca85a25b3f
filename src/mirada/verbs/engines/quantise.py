"""Weights of matrix products in int8, if the score on the held-out samples of the run stays.

    W_kc ≈ s_c Q_kc,   Q in −64 … 63,   and inputs in 0 … 255 with a scale of their own for every batch

Each column c of a weight has its scale. Seven bits, so that two products of them and eight bits fit into the 16 bits
that a CPU without VNNI adds them in: the model gives the same on every machine. Convolutions stay float32.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from torch import nn

from mirada.errors import MiradaError
from mirada.machine.threads import num_cores
from mirada.train.outputs import outputs_of
from mirada.verbs.engines.session import open_session
from mirada.verbs.export_onnx import SessionModel
from mirada.verbs.load import Trained
from mirada.verbs.masks.prepare import PreparedMasks
from mirada.verbs.prepare import AnyPrepared, prepare_data
from mirada.verbs.questions import require_own_data

MOST_POINTS = 0.005  # of accuracy
MOST_SHARE = 0.01  # of any other score
FEWER_IS_BETTER = ("bits_per_dimension",)


def quantise(trained: Trained, whole: Path, made: Path) -> dict:
    """Write `made` from the float32 model `whole`; returns what was measured of both, or refuses."""
    prepared = _held_out(trained)
    save_quantised(whole, made)
    quantised = SessionModel(open_session(made, "onnx", num_cores()))
    metric = trained.task.metric
    before, outputs = _score(trained, trained.model, prepared)
    after, of_quantised = _score(trained, quantised, prepared)
    num = len(prepared.split.rows(prepared.held_out))  # type: ignore[union-attr]
    require_score(f"{trained.folder.path}", metric, before, after, num)
    found = {"metric": metric, "float32": before, "int8": after, "num_held_out": num}
    if outputs is not None and of_quantised is not None:
        found["root_mean_square_difference"] = ((of_quantised - outputs).norm() / outputs.norm()).item()
    return {"held_out": found}


def require_score(name: str, metric: str, before: float, after: float, num: int) -> None:
    """At most half a point of accuracy may be lost, or a hundredth of any other score."""
    lost = after - before if metric in FEWER_IS_BETTER else before - after
    is_accuracy = metric == "accuracy"
    most = MOST_POINTS if is_accuracy else MOST_SHARE * abs(before)
    if not lost <= most + 1e-9:
        told = f"{100 * lost:.2f} points, more than {100 * most:g}" if is_accuracy else f"{lost:.4f}, over {most:.4f}"
        raise MiradaError(
            f"{name}: int8 loses too much: {metric.replace('_', ' ')} on the {num:,} held-out samples goes from "
            f"{before:.4f} to {after:.4f} ({told}), so it was not written; use --precision float32."
        )


def _held_out(trained: Trained) -> AnyPrepared:
    try:
        require_own_data(trained)
        config = trained.config
        return prepare_data(config.data, config.system, saved=trained.data)
    except MiradaError as error:
        raise MiradaError(
            f"{trained.folder.path}: int8 is written only if the score on the held-out data stays, and this data "
            f"cannot be had ({str(error).rstrip('.')}); use --precision float32."
        ) from error


def _score(trained: Trained, model: nn.Module, prepared: AnyPrepared) -> tuple[float, torch.Tensor | None]:
    """The score on the held-out side, and the outputs where they are not as many as pixels."""
    metric = trained.task.metric
    batches = prepared.evaluation(prepared.held_out)
    if isinstance(prepared, PreparedMasks):
        from mirada.verbs.masks.judge import watch

        return watch(model, trained.task, batches, trained.device)[metric], None  # type: ignore[arg-type]
    outputs, targets, _ = outputs_of(model, batches, trained.device)
    return trained.task.quick(outputs, targets)[metric], outputs


def save_quantised(whole: Path, made: Path) -> None:
    """The float32 model `whole` in int8, unchecked."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(whole)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    # torch notes shapes in its own words for the free batch, which the shape inference of the quantiser disputes.
    del model.graph.value_info[:]
    plain = made.with_name("plain.onnx")
    onnx.save(model, plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)  # it recommends a step that these models do not need
        try:
            quantize_dynamic(
                plain,
                made,
                op_types_to_quantize=["MatMul", "Gemm"],
                per_channel=True,
                reduce_range=True,
                weight_type=QuantType.QInt8,
            )
        finally:
            logging.disable(logging.NOTSET)
    model = onnx.load(made)
    onnx.helper.set_model_props(model, metadata)
    onnx.save(model, made)
