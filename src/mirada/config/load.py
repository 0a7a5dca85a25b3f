"""Preset, then file, then `key.sub=value`: the later one wins, unknown keys are errors with the nearest match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from mirada.config.schema import Config
from mirada.errors import MiradaError, nearest


def presets() -> list[str]:
    """Names of the shipped presets."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in (resources.files("mirada.config") / "presets").iterdir()
        if entry.name.endswith(".yaml")
    )


def read_preset(name: str) -> dict:
    if name not in presets():
        raise MiradaError(
            f"preset {name!r} does not exist{nearest(name, presets())}; there are {', '.join(presets())}."
        )
    return {**yaml.safe_load(preset_text(name)), "preset": name}


def preset_text(name: str) -> str:
    return (resources.files("mirada.config") / "presets" / f"{name}.yaml").read_text(encoding="utf-8")


def preset_summary(name: str) -> str:
    """The first words of its comments."""
    comments = (line.lstrip("# ").strip() for line in preset_text(name).splitlines() if line.startswith("#"))
    return next(filter(None, comments), "")


def read_yaml(path: str | Path) -> dict:
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise MiradaError(f"{path}: cannot be read ({error.strerror}); give a YAML file with settings.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise MiradaError(f"{path}: is not valid YAML ({' '.join(str(error).split())}).") from error
    if not isinstance(content, dict):
        raise MiradaError(f"{path}: holds {type(content).__name__}, expected sections such as `train:` and `data:`.")
    return content


def parse_settings(settings: Iterable[str]) -> dict:
    """`train.epochs=3 system.size=Ti` as nested dictionaries; values are read as YAML."""
    nested: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise MiradaError(f"{setting!r} is not a setting; write it as key.sub=value, for example train.epochs=10.")
        *sections, last = key.strip().split(".")
        here = nested
        for section in sections:
            here = here.setdefault(section, {})
            if not isinstance(here, dict):
                raise MiradaError(
                    f"{setting!r}: {section} was given a value before; give either it or what is inside it."
                )
        try:
            here[last] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise MiradaError(f"{setting!r}: the value is not valid YAML; quote it.") from error
    return nested


def merge(*layers: Mapping[str, Any]) -> dict:
    """Later layers win, section by section, and what no longer fits goes: another length of training replaces the
    earlier one, another system drops the size and arguments of the earlier one, another size drops its arguments,
    another teacher drops the checksum of the earlier one.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
                stale = _stale(key, merged[key], value)
                merged[key] = merge({name: v for name, v in merged[key].items() if name not in stale}, value)
            else:
                merged[key] = value
    return merged


LENGTHS = ("epochs", "steps", "minutes")


def _stale(section: str, earlier: Mapping[str, Any], later: Mapping[str, Any]) -> tuple[str, ...]:
    """Settings of the earlier layer that made sense only together with something the later one replaces."""
    if section == "train" and any(name in later for name in LENGTHS):
        return LENGTHS
    if section in ("system", "baseline"):
        if "name" in later and later["name"] != earlier.get("name", later["name"]):
            return ("size", "arguments")
        if "size" in later and later["size"] != earlier.get("size", later["size"]):
            return ("arguments",)
    if section == "distil" and "teacher" in later and later["teacher"] != earlier.get("teacher"):
        return ("checksum",)
    return ()


def resolve(*layers: Mapping[str, Any]) -> Config:
    """The merged and checked configuration."""
    merged = merge(*layers)
    try:
        return Config.model_validate(merged)
    except ValidationError as error:
        raise MiradaError(_sentence(error)) from error


def load_config(path: str | Path) -> Config:
    """A saved config.yaml."""
    try:
        return resolve(read_yaml(path))
    except MiradaError as error:
        raise error if str(path) in str(error) else MiradaError(f"{path}: {error}") from error


def dump_config(config: Config) -> str:
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _sentence(error: ValidationError) -> str:
    """The first problem in one sentence, with the key as the user writes it."""
    problem = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"] if not str(part).startswith(("function-", "constrained-")))
    if problem["type"] == "extra_forbidden":
        *sections, last = [str(part) for part in problem["loc"]]
        names = list(_section(sections).model_fields)
        return f"setting {key!r} does not exist{nearest(last, names)}; there are {', '.join(names)}."
    found = repr(problem["input"])
    found = found if len(found) <= 60 else found[:57] + "..."
    reason = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{key}: {reason}."
    return f"setting {key!r} is {found}: {reason[0].lower()}{reason[1:]}."


def _section(path: Sequence[str]) -> type[BaseModel]:
    model: type[BaseModel] = Config
    for name in path:
        annotation = model.model_fields[name].annotation
        candidates = [annotation, *get_args(annotation)]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return model
