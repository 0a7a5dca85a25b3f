"""The model of a run as model.onnx: written only if it gives what the model gives, and in int8 only if it scores so."""

from __future__ import annotations

import importlib.util
import json
import logging
import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.machine.threads import num_cores
from mirada.train.files import read_json, write_atomically, write_json
from mirada.train.folder import model_folder
from mirada.verbs.engines.exported import MODEL, TOLERANCE, difference
from mirada.verbs.engines.session import Session, open_session
from mirada.verbs.load import Trained

BATCHES = (1, 5)  # numbers of images at which the exported model is compared with the model itself
INPUT, OUTPUT = "images", "outputs"
BY_SAFETENSORS = {
    "graph": "models of graphs are exported to safetensors only",
    "plots": "models of plots are exported to safetensors only",
    "text": "models of text are not exported to ONNX",
    "pairs": "models of text are not exported to ONNX",
}


def write_onnx(trained: Trained, described: dict, folder: Path, precision: str = "float32") -> list[Path]:
    """model.onnx and data.json, which has what was measured under `onnx`."""
    if why := BY_SAFETENSORS.get(trained.data.get("inputs", "")):
        raise MiradaError(f"{trained.folder.path}: {why}; use --to safetensors.")
    require_onnx()
    built = read_json(model_folder(trained.folder) / "model.json")
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / MODEL
        make_onnx(trained, described, made)
        measured = {"precision": precision, "difference": {"onnx": compare(trained, made)}}
        if precision == "int8":
            from mirada.verbs.engines.quantise import quantise

            whole, made = made, made.with_name("int8.onnx")
            measured |= quantise(trained, whole, made)
        content = made.read_bytes()
    # data.json tells how model.onnx was made, and lies beside it only as long as that is so. Weights of an earlier
    # export to safetensors may be those of another model.
    for former in ("data.json", "model.safetensors", "model.json"):
        (folder / former).unlink(missing_ok=True)
    write_atomically(folder / MODEL, lambda partial: partial.write_bytes(content))
    model = {key: built[key] for key in ("system", "size", "num_parameters")}
    write_json(folder / "data.json", {**described, "model": model, "onnx": measured})
    return [folder / MODEL, folder / "data.json"]


def require_onnx() -> None:
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        raise MiradaError(f'exporting to ONNX needs {", ".join(missing)}: pip install "mirada[export]".')


def make_onnx(trained: Trained, described: dict, path: Path) -> None:
    try:
        save_onnx(trained.model, noise(trained, 2), path, described)
    except Exception as error:  # the exporter raises many types
        reason = " ".join(str(error).split())[:200]
        raise MiradaError(
            f"{trained.folder.path}: this model cannot be exported to ONNX ({reason}); use --to safetensors."
        ) from error


def save_onnx(model: nn.Module, images: Tensor, path: Path, described: dict) -> None:
    """The model for any number of images like these; what is described goes into the metadata `mirada`."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it tells of torchvision, which nobody asked for
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            model,
            (images,),
            dynamo=True,
            dynamic_shapes=({0: "batch"},),
            input_names=[INPUT],
            output_names=[OUTPUT],
            verbose=False,
        )
    assert program is not None
    program.model.metadata_props["mirada"] = json.dumps(described, ensure_ascii=False)
    program.save(path)


def compare(trained: Trained, path: Path, engine: str = "onnx") -> float:
    """The largest difference to the model itself, relative to its largest output; over TOLERANCE it is refused."""
    session = open_session(path, engine, num_cores())
    largest = 0.0
    for batch in BATCHES:
        images = noise(trained, batch)
        with torch.inference_mode():
            wanted = trained.model(images)
        found = difference(session(images.numpy()), wanted.numpy())
        largest = max(largest, found)
        if not found <= TOLERANCE:  # true of NaN, too
            raise MiradaError(
                f"{trained.folder.path}: by {engine} the ONNX model differs from the model itself by {found:.2g} of "
                f"its largest output on {batch} images, more than {TOLERANCE:g}, so it was not written; use "
                "--engine torch to predict, --to safetensors to export."
            )
    return largest


def noise(trained: Trained, batch: int) -> Tensor:
    """Normalised images of the right shape; they need not look like anything."""
    shape = (batch, trained.data["in_channels"], *trained.data["image_size"])
    return torch.randn(shape, generator=torch.Generator().manual_seed(batch))


class SessionModel(nn.Module):
    """A session where a model of torch is expected."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.from_numpy(self.session(inputs.contiguous().numpy()))
