"""Models and training state on disk: safetensors with a JSON header, one atomic file each. Nothing is pickled."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from mirada import systems
from mirada.errors import MiradaError
from mirada.train.files import read_json, write_atomically, write_json


def save_tensors(path: Path, tensors: dict[str, Tensor], header: dict | None = None) -> None:
    """One file; tensors that share memory are copied apart, as the format wants."""
    flat = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    metadata = {"format": "pt", **({"mirada": json.dumps(header)} if header is not None else {})}
    # Not save_file: it writes by way of a file of its own, which nobody else may read and a kill would leave behind.
    content = save(flat, metadata)
    write_atomically(path, lambda partial: partial.write_bytes(content))


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise MiradaError(f"{path}: there is no such file; train the run, or give the folder of one.") from error
    except (SafetensorError, OSError) as error:
        raise MiradaError(
            f"{path}: is not a readable safetensors file ({error}); restore it or train again."
        ) from error


def load_header(path: Path) -> dict:
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["mirada"])


def describe_model(path: Path, system: str, size: str | None, arguments: dict, num_parameters: int) -> None:
    """model.json: what is needed to build the model before its weights are loaded."""
    write_json(path, {"system": system, "size": size, "arguments": arguments, "num_parameters": num_parameters})


def load_model(folder: Path) -> nn.Module:
    """The model of a checkpoint folder (best/ or last/ of a run), ready to predict."""
    description = read_json(folder / "model.json")
    arguments = {key: tuple(v) if isinstance(v, list) else v for key, v in description["arguments"].items()}
    model = systems.create(description["system"], description["size"], **arguments)
    try:
        model.load_state_dict(load_tensors(folder / "model.safetensors"))
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise MiradaError(f"{folder}: the weights do not fit model.json ({reason}).") from error
    return model.eval()


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State as `optimiser.<parameter number>.<name>`; every entry of our optimisers is a tensor."""
    state = optimiser.state_dict()["state"]
    return {
        f"optimiser.{number}.{name}": torch.as_tensor(value)
        for number, entries in state.items()
        for name, value in entries.items()
        if value is not None
    }


def load_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        _, number, name = key.split(".", 2)
        state.setdefault(int(number), {})[name] = tensor
    current = optimiser.state_dict()
    optimiser.load_state_dict({"state": state, "param_groups": current["param_groups"]})
