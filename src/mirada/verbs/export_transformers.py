"""The best model of a run as a checkpoint of transformers: config.json, model.safetensors, and how inputs are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from mirada.errors import MiradaError
from mirada.systems.registry import all_arguments
from mirada.train.checkpoint import save_tensors
from mirada.train.files import read_json, write_json
from mirada.verbs.load import Trained, model_folder
from mirada.verbs.text.trained import TrainedText
from mirada.weights import layout_for

PROBLEMS = {
    "single-label": "single_label_classification",
    "multi-label": "multi_label_classification",
    "regression": "regression",
}
BICUBIC = 3  # as Pillow numbers it


def write_transformers(trained: Trained, _: dict, folder: Path) -> list[Path]:
    if (folder / "model.json").exists():
        raise MiradaError(f"{folder}: holds an exported model of Mirada; give another folder.")
    model = read_json(model_folder(trained.folder) / "model.json")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in model["arguments"].items()}
    arguments = all_arguments(model["system"], model["size"], **given)
    try:
        layout = layout_for(model["system"], "transformers")
        if layout.config is None:
            raise MiradaError(f"system {model['system']!r} cannot be described to transformers")
        config = layout.config(arguments) | {"dtype": "float32"} | labels(trained.data)
        tensors = layout.to_theirs(trained.model.state_dict(), arguments)
    except MiradaError as error:
        raise MiradaError(f"{trained.folder.path}: {str(error).removesuffix('.')}.") from error
    palette = tensors.pop("palette", None)
    described = {"config.json": config}
    if isinstance(trained, TrainedText):
        described["config.json"] = config | {"eos_token_id": trained.tokeniser.end}
        described |= trained.tokeniser.hugging_face_files(is_framed=trained.does != "generate")
    else:
        known = processor(trained.data) if palette is None else pixel_processor(trained, palette)
        described["preprocessor_config.json"] = known
    for name, content in described.items():
        write_json(folder / name, content)
    save_tensors(folder / "model.safetensors", tensors)
    return [folder / name for name in (*described, "model.safetensors")]


def labels(data: dict) -> dict[str, Any]:
    """What the outputs are called; pixels and words that are written or filled in have the names of their inputs."""
    if data["task"] not in PROBLEMS:
        return {}
    names = data["target_names"] if data["task"] == "regression" else data["class_names"]
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
        "problem_type": PROBLEMS[data["task"]],
    }


def pixel_processor(trained: Trained, palette_TC: Tensor) -> dict[str, Any]:
    """Image GPT's colours are `clusters` there, of pixels between −1 and 1."""
    colours_TC = 2 * trained.normalisation.undo(palette_TC.cpu()[..., None, None])[..., 0, 0] - 1
    height, width = trained.data["image_size"]
    return {
        "image_processor_type": "ImageGPTImageProcessor",
        "clusters": colours_TC.tolist(),
        "do_color_quantize": True,
        "do_normalize": True,
        "do_resize": True,
        "size": {"height": height, "width": width},
    }


def processor(data: dict) -> dict[str, Any]:
    """Pixels scaled to [0, 1], normalised, and brought to size as in training as far as transformers can.

    Padding, and cropping to what is no square, it cannot: there images must be brought to size before.
    """
    height, width = data["image_size"]
    kind = "ViTImageProcessor"
    resizing: dict[str, Any] = {"do_resize": False}
    if data["fit"] == "squash":
        resizing = {"do_resize": True, "size": {"height": height, "width": width}}
    elif data["fit"] == "crop" and height == width:
        kind = "CLIPImageProcessor"
        resizing = {
            "do_resize": True,
            "size": {"shortest_edge": height},
            "do_center_crop": True,
            "crop_size": {"height": height, "width": width},
        }
    return {
        "image_processor_type": kind,
        **resizing,
        "resample": BICUBIC,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": data["normalisation"]["mean"],
        "image_std": data["normalisation"]["std"],
    }
