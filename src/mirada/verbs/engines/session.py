"""An ONNX file as a function from inputs to outputs, on the CPU, without torch."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mirada.errors import MiradaError, nearest

Session = Callable[[np.ndarray], np.ndarray]  # may be called from many threads

PACKAGES = {"onnx": "onnxruntime", "openvino": "openvino"}
ENGINES = ("torch", *PACKAGES)
PRECISIONS = ("float32", "int8")


def open_session(path: Path, engine: str, threads: int, calls: int = 1) -> Session:
    """The model of a file; each call uses so many threads, and so many calls come at once."""
    require_package(engine)
    try:
        return {"onnx": _by_onnx_runtime, "openvino": _by_openvino}[engine](path, threads, calls)
    except Exception as error:  # both raise many types
        reason = " ".join(str(error).split())[:200]
        raise MiradaError(
            f"{path}: {PACKAGES[engine]} cannot open this model ({reason}); export the run again."
        ) from error


def require_package(engine: str) -> None:
    if importlib.util.find_spec(PACKAGES[engine]) is None:
        raise MiradaError(f"--engine {engine} needs {PACKAGES[engine]}: pip install {PACKAGES[engine]}.")


def require_names(engine: str, precision: str) -> None:
    """Known names that fit together."""
    for name, names, what in ((engine, ENGINES, "engine"), (precision, PRECISIONS, "precision")):
        if name not in names:
            raise MiradaError(f"{what} {name!r}{nearest(name, names)}: expected one of {', '.join(names)}.")
    if precision == "int8" and engine != "onnx":
        raise MiradaError(f"precision int8 is for the engine onnx, not for {engine}; choose one of them.")


def _by_onnx_runtime(path: Path, threads: int, calls: int) -> Session:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait sleep. Spinning ones are a little faster alone, and slow down whoever shares the machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda inputs: session.run(None, {name: inputs})[0]


def _by_openvino(path: Path, threads: int, calls: int) -> Session:
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads * calls,
        "NUM_STREAMS": calls,  # with one, calls of several threads would wait for each other
        "ENABLE_CPU_PINNING": False,
        # Cores that know bfloat16 would compute in it unasked.
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = openvino.Core().compile_model(str(path), "CPU", settings)
    # Its first sight of an array prepares something, and two threads that both come first wait for each other for ever.
    assert openvino.Tensor(np.zeros(1, np.float32)).data is not None
    own = threading.local()  # a request is for one thread at a time

    def run(inputs: np.ndarray) -> np.ndarray:
        if not hasattr(own, "request"):
            own.request = model.create_infer_request()
        return own.request.infer([inputs])[0].copy()

    return run
