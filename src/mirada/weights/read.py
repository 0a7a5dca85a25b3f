"""A checkpoint from a file, a folder, a run of ours or the Hugging Face hub. Only safetensors: nothing is unpickled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from mirada.errors import MiradaError
from mirada.weights.checkpoint import Checkpoint
from mirada.weights.registered import layout_of

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".tar")
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
WANTED = (
    *("config.json", "preprocessor_config.json", "model*.safetensors", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt"),
)
CONVERT = (
    "such files run code when they are opened, so Mirada reads safetensors only; convert it where you trust it: "
    'python -c "import torch, safetensors.torch as s; '
    "s.save_file({{k: v.contiguous().clone() for k, v in torch.load('{name}', weights_only=True).items()}}, "
    "'model.safetensors')\""
)


def read_checkpoint(start: str | Path) -> Checkpoint:
    """The model that is stored at a path or under a hub id such as "google/vit-base-patch16-224"."""
    path = Path(start).expanduser()
    if not path.exists():
        if not HUB_ID.fullmatch(str(start)):
            raise MiradaError(
                f"{start}: there is no such file or folder, and it is no id of the hub, which is <owner>/<name>."
            )
        path = download(str(start))
    if path.is_file():
        return _read(str(start), path.parent, path)
    folder = path / "best" if (path / "best" / "model.json").exists() else path
    return _read(str(start), folder, _weights_file(folder))


def download(hub_id: str) -> Path:
    """The folder with the files of a hub id; what was fetched once is not fetched again."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, allow_patterns=list(WANTED)))
    except Exception as error:  # the hub's library raises many types
        first: BaseException = error
        while first.__cause__ is not None:  # "no such host" stands behind pages about caches
            first = first.__cause__
        reason = (str(first).splitlines() or [type(first).__name__])[0][:120].rstrip(". ")
        raise MiradaError(
            f"{hub_id}: is no local path, and cannot be fetched from the Hugging Face hub ({reason}); "
            f"check the name and the network, or give a folder with config.json and model.safetensors."
        ) from error


def _read(start: str, folder: Path, file: Path) -> Checkpoint:
    tensors = _tensors(file)
    if (folder / "model.json").exists():
        return _of_ours(start, folder, tensors)
    config = _json(folder / "config.json") if (folder / "config.json").exists() else {}
    tensors |= _palette(folder)
    layout = layout_of(config, tensors)
    if layout is None:
        kind = config.get("model_type") or config.get("architecture") or f"a tensor {next(iter(tensors), 'none')!r}"
        raise MiradaError(f"{start}: no system of Mirada has the layout of this checkpoint ({kind}).")
    shapes = {name: tuple(tensor.shape) for name, tensor in layout.with_prefix(tensors).items()}
    try:
        arguments = layout.arguments(config, shapes)
        state = layout.to_ours(tensors, arguments)
    except MiradaError as error:
        raise MiradaError(f"{start}: {error}.") from error
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise MiradaError(
            f"{start}: lacks a tensor of a {layout.system} or has it in another shape ({error})."
        ) from error
    names = config.get("id2label") or dict(enumerate(config.get("label_names") or ()))
    return Checkpoint(
        start,
        layout.origin,
        layout.system,
        arguments,
        state,
        class_names=tuple(str(names[key]) for key in sorted(names, key=int)),
        normalisation=_normalisation(folder, config),
        folder=folder,
    )


def _of_ours(start: str, folder: Path, tensors: dict[str, Tensor]) -> Checkpoint:
    description = _json(folder / "model.json")
    arguments = {key: tuple(v) if isinstance(v, list) else v for key, v in description["arguments"].items()}
    # The data of a run is described one folder above its best/, that of a baseline two.
    places = (folder, folder.parent, folder.parent.parent)
    data = next((_json(place / "data.json") for place in places if (place / "data.json").exists()), {})
    statistics = data.get("normalisation")
    return Checkpoint(
        start,
        "mirada",
        description["system"],
        arguments,
        tensors,
        size=description["size"],
        class_names=tuple(data.get("class_names", ())),
        normalisation=(tuple(statistics["mean"]), tuple(statistics["std"])) if statistics else None,
        folder=folder,
    )


def _weights_file(folder: Path) -> Path:
    for name in ("model.safetensors", "model.safetensors.index.json"):
        if (folder / name).exists():
            return folder / name
    files = sorted(folder.glob("*.safetensors"))
    if len(files) == 1:
        return files[0]
    pickles = [path for path in sorted(folder.iterdir()) if path.suffix in PICKLES]
    if pickles and not files:
        raise MiradaError(f"{pickles[0]}: {CONVERT.format(name=pickles[0].name)}")
    raise MiradaError(f"{folder}: has no model.safetensors; give the folder of a checkpoint or of a run.")


def _tensors(file: Path) -> dict[str, Tensor]:
    if file.suffix in PICKLES:
        raise MiradaError(f"{file}: {CONVERT.format(name=file.name)}")
    if file.name.endswith(".index.json"):
        index = _json(file)
        shards = sorted(set(index.get("weight_map", {}).values()))
        if any(Path(shard).name != shard for shard in shards):
            raise MiradaError(f"{file}: names files outside of its folder; restore it.")
        return {name: tensor for shard in shards for name, tensor in _tensors(file.parent / shard).items()}
    try:
        tensors = load_file(file)
    except FileNotFoundError as error:
        raise MiradaError(f"{file}: is missing; fetch the checkpoint again.") from error
    except (SafetensorError, OSError) as error:
        raise MiradaError(f"{file}: is not a readable safetensors file ({error}); fetch it again.") from error
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def _palette(folder: Path) -> dict[str, Tensor]:
    """Image GPT's colours, which stand in the file of its processor."""
    processor = folder / "preprocessor_config.json"
    clusters = _json(processor).get("clusters") if processor.exists() else None
    return {} if clusters is None else {"palette": torch.tensor(clusters)}


def _normalisation(folder: Path, config: Mapping[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """mean and std of pixels in [0, 1], as transformers' processor or timm's pretrained_cfg has them."""
    processor = folder / "preprocessor_config.json"
    said = _json(processor) if processor.exists() else {}
    mean, std = said.get("image_mean"), said.get("image_std")
    if "clusters" in said:  # a palette is of pixels between −1 and 1
        mean = std = [0.5] * 3
    if not (mean and std):
        cfg = config.get("pretrained_cfg", {})
        mean, std = cfg.get("mean"), cfg.get("std")
    return (tuple(map(float, mean)), tuple(map(float, std))) if mean and std else None


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise MiradaError(f"{path}: cannot be read as JSON ({error}); fetch or restore it.") from error
    if not isinstance(content, dict):
        raise MiradaError(f"{path}: is not a JSON object; fetch or restore it.")
    return content
