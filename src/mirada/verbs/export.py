"""`mirada export`: the best model as files for elsewhere."""

from __future__ import annotations

import importlib.util
import json
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.train.files import write_atomically, write_json
from mirada.train.folder import RunFolder
from mirada.verbs.export_ctranslate2 import write_ctranslate2
from mirada.verbs.export_transformers import write_transformers
from mirada.verbs.load import Trained, load, model_folder
from mirada.verbs.text.trained import TrainedText

# What a user of the model must know of the data; the split and the file names stay at home.
KEPT = (
    *("inputs", "task", "class_names", "target_names", "classes", "image_size", "in_channels", "feature_names"),
    *("fit", "normalisation", "target_mean", "target_std", "checksum", "max_length", "shared", "sides"),
    *("head", "target_name", "band_names", "covariate_names", "chip_size", "crs", "scheme", "block"),
)
TOLERANCE = 1e-4
BATCHES = (1, 5)  # numbers of images at which the exported model is compared with the model itself


def export(
    run: str | Path | RunFolder,
    *,
    to: Literal["safetensors", "onnx", "transformers", "ctranslate2"] = "safetensors",
    out: str | Path | None = None,
) -> list[Path]:
    """Write the best model of a run into the folder `out` (if None, run/export or run/<library>); returns the files.

    safetensors: model.safetensors, model.json, data.json, the tokenisers of text and what the validation of a map
    found, which mirada.load opens.
    onnx: model.onnx (input `images`, normalised, (batch, channels, height, width) with a free batch) and data.json,
    whose content is in the model's metadata too; written only if it agrees with the model.
    transformers: config.json, model.safetensors and preprocessor_config.json, which that library's
    AutoModelForImageClassification and AutoImageProcessor load, and data.json; where it has the model.
    ctranslate2: model.bin, config.json and vocabularies, which ctranslate2.Translator opens, the tokenisers and
    data.json, of a Transformer that translates; written only if it translates as the model does.
    """
    if to not in WRITERS:
        raise MiradaError(f"cannot export to {to!r}; expected one of {', '.join(WRITERS)}.")
    trained = load(run, device="cpu")
    own = to if to in ("transformers", "ctranslate2") else "export"  # their files have names that ours have too
    folder = trained.folder.path / own if out is None else Path(out)
    if (folder / "config.yaml").exists():
        raise MiradaError(f"{folder}: is the folder of a run; give another folder for the exported files.")
    described = {key: trained.data[key] for key in KEPT if key in trained.data}
    files = WRITERS[to](trained, described, folder)
    write_json(folder / "data.json", described)
    return [*files, folder / "data.json"]


def write_safetensors(trained: Trained, described: dict, folder: Path) -> list[Path]:
    names = ("model.safetensors", "model.json")
    for name in names:
        _copy(model_folder(trained.folder) / name, folder / name)
    further = trained.save_tokenisers(folder) if isinstance(trained, TrainedText) else []
    for found in (trained.folder.validation, trained.folder.applicability):
        if found.exists():
            _copy(found, folder / found.name)
            further.append(folder / found.name)
    return [*(folder / name for name in names), *further]


def write_onnx(trained: Trained, described: dict, folder: Path) -> list[Path]:
    inputs = trained.data.get("inputs")
    if inputs in ("graph", "plots"):
        what = {"graph": "graphs", "plots": "plots"}[inputs]
        raise MiradaError(
            f"{trained.folder.path}: models of {what} are exported to safetensors only; use --to safetensors."
        )
    if isinstance(trained, TrainedText):
        raise MiradaError(f"{trained.folder.path}: models of text are not exported to ONNX; use --to safetensors.")
    require_onnx()
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "model.onnx"
        _make_onnx(trained, described, made)
        compare_onnx(trained, made)
        _copy(made, folder / "model.onnx")
    return [folder / "model.onnx"]


WRITERS = {
    "safetensors": write_safetensors,
    "onnx": write_onnx,
    "transformers": write_transformers,
    "ctranslate2": write_ctranslate2,
}


def require_onnx() -> None:
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        raise MiradaError(f'exporting to ONNX needs {", ".join(missing)}: pip install "mirada[export]".')


def _make_onnx(trained: Trained, described: dict, path: Path) -> None:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it tells of torchvision, which nobody asked for
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                trained.model,
                (_noise(trained, 2),),
                dynamo=True,
                dynamic_shapes=({0: "batch"},),
                input_names=["images"],
                output_names=["outputs"],
                verbose=False,
            )
    except Exception as error:  # the exporter raises many types
        reason = " ".join(str(error).split())[:200]
        raise MiradaError(
            f"{trained.folder.path}: this model cannot be exported to ONNX ({reason}); use --to safetensors."
        ) from error
    assert program is not None
    program.model.metadata_props["mirada"] = json.dumps(described, ensure_ascii=False)
    program.save(path)


def compare_onnx(trained: Trained, path: Path) -> None:
    """Refuse a file that does not give what the model gives."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for batch in BATCHES:
        images = _noise(trained, batch)
        with torch.inference_mode():
            wanted = trained.model(images)
        found = torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
        difference = (found - wanted).abs().max().item() if found.shape == wanted.shape else float("inf")
        if not difference <= TOLERANCE:
            raise MiradaError(
                f"{trained.folder.path}: the ONNX model differs from the model itself by {difference:.2g} on {batch} "
                f"images, more than {TOLERANCE:g}, so it was not written; use --to safetensors."
            )


def _noise(trained: Trained, batch: int) -> Tensor:
    """Normalised images of the right shape; they need not look like anything."""
    shape = (batch, trained.data["in_channels"], *trained.data["image_size"])
    return torch.randn(shape, generator=torch.Generator().manual_seed(batch))


def _copy(source: Path, target: Path) -> None:
    content = source.read_bytes()
    write_atomically(target, lambda partial: _write_bytes(partial, content))


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
