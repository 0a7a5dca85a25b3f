"""`mirada export`: the best model as files for elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mirada.errors import MiradaError
from mirada.train.files import write_atomically, write_json
from mirada.train.folder import RunFolder
from mirada.verbs.engines.exported import MODEL
from mirada.verbs.engines.session import require_names
from mirada.verbs.export_ctranslate2 import write_ctranslate2
from mirada.verbs.export_onnx import write_onnx
from mirada.verbs.export_transformers import write_transformers
from mirada.verbs.load import Trained, load, model_folder
from mirada.verbs.text.trained import TrainedText

# What a user of the model must know of the data; the split and the file names stay at home.
KEPT = (
    *("inputs", "task", "class_names", "target_names", "classes", "image_size", "in_channels", "feature_names"),
    *("fit", "normalisation", "target_mean", "target_std", "checksum", "max_length", "shared", "sides"),
    *("head", "target_name", "band_names", "covariate_names", "chip_size", "crs", "scheme", "block"),
)


def export(
    run: str | Path | RunFolder,
    *,
    to: Literal["safetensors", "onnx", "transformers", "ctranslate2"] = "safetensors",
    out: str | Path | None = None,
    precision: Literal["float32", "int8"] = "float32",
) -> list[Path]:
    """Write the best model of a run into the folder `out` (if None, run/export or run/<library>); returns the files.

    safetensors: model.safetensors, model.json, data.json, the tokenisers of text and what the validation of a map
    found, which mirada.load opens.
    onnx: model.onnx (input `images`, normalised, (batch, channels, height, width) with a free batch) and data.json,
    whose content is in the model's metadata too; written only if it agrees with the model. With precision int8, only
    if the score on the run's held-out samples stays, within half a point of accuracy or 1 % of another score. What was
    measured is in data.json. `mirada predict` and mirada.load open the folder, without torch.
    transformers: config.json, model.safetensors and preprocessor_config.json, which that library's
    AutoModelForImageClassification and AutoImageProcessor load, and data.json; where it has the model.
    ctranslate2: model.bin, config.json and vocabularies, which ctranslate2.Translator opens, the tokenisers and
    data.json, of a Transformer that translates; written only if it translates as the model does.
    """
    if to not in FORMATS:
        raise MiradaError(f"cannot export to {to!r}; expected one of {', '.join(FORMATS)}.")
    require_names("onnx", precision)
    if precision != "float32" and to != "onnx":
        raise MiradaError(f"precision {precision} is for ONNX only; add --to onnx, or leave it out.")
    trained = load(run, device="cpu")
    own = to if to in ("transformers", "ctranslate2") else "export"  # their files have names that ours have too
    folder = trained.folder.path / own if out is None else Path(out)
    if (folder / "config.yaml").exists():
        raise MiradaError(f"{folder}: is the folder of a run; give another folder for the exported files.")
    if folder.resolve() in (trained.folder.path.resolve(), model_folder(trained.folder).resolve()):
        raise MiradaError(f"{folder}: holds the model that is exported; give another folder for the exported files.")
    about = described(trained)
    if to == "onnx":
        return write_onnx(trained, about, folder, precision)
    # Of another export: mirada.load would take it for this model's. data.json tells how it was made.
    for former in (folder / "data.json", folder / MODEL):
        former.unlink(missing_ok=True)
    files = WRITERS[to](trained, about, folder)
    write_json(folder / "data.json", about)
    return [*files, folder / "data.json"]


def described(trained: Trained) -> dict:
    """data.json of exported files."""
    return {key: trained.data[key] for key in KEPT if key in trained.data}


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


WRITERS = {
    "safetensors": write_safetensors,
    "transformers": write_transformers,
    "ctranslate2": write_ctranslate2,
}
FORMATS = ("safetensors", "onnx", "transformers", "ctranslate2")


def _copy(source: Path, target: Path) -> None:
    content = source.read_bytes()
    write_atomically(target, lambda partial: _write_bytes(partial, content))


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
