"""A training that is asked for from afar: checked before anything starts, by the code that checks the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mirada import systems
from mirada.config.load import merge, read_preset, resolve
from mirada.config.schema import Config
from mirada.data.samples import SAMPLES
from mirada.errors import MiradaError
from mirada.train.folder import RunFolder, new_run

KEY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
# Where a run is and where its numbers go is not for those to say who ask from afar.
WRITING = {"runs": "runs", "track.mlflow_uri": "the store of MLflow"}
MAX_SETTINGS = 32 * 1024  # bytes
DEEPEST = 12


def requested(
    source: str, system: str | None = None, preset: str | None = None, settings: Mapping[str, Any] | None = None
) -> dict:
    """What was asked for as one layer of settings, or a sentence about what is wrong with it."""
    layer = _nested(settings or {})
    resolve(layer)  # so that a mistake is not hidden by what comes later
    given = merge(layer, {"data": {"source": source}})
    if system:
        name, _, size = system.partition(":")
        given = merge(given, {"system": {"name": name, **({"size": size} if size else {})}})
    if preset:
        read_preset(preset)
        given["preset"] = preset
    config = resolve(read_preset(given["preset"]) if given.get("preset") else {}, given)
    _require_known(config)
    _require_source(source)
    return given


def new_request(runs: Path, given: dict) -> RunFolder:
    """The folder of a run that is to be, with what was asked for in it: `mirada train --config … --out …` takes it."""
    source = Path(given["data"]["source"])
    system = given.get("system", {}).get("name") or given.get("preset") or "run"
    folder = new_run(runs, given.get("name") or f"{system}-{source.name.removesuffix(source.suffix)}")
    folder.asked.mkdir()
    (folder.asked / "settings.yaml").write_text(yaml.safe_dump(given, sort_keys=False, allow_unicode=True), "utf-8")
    return folder


def _nested(settings: Mapping[str, Any]) -> dict:
    """{"train.minutes": 2} as {"train": {"minutes": 2}}."""
    try:
        size = len(json.dumps(settings, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise MiradaError("the settings hold what cannot be written down; give texts, numbers and lists.") from None
    if size > MAX_SETTINGS or _depth(settings) > DEEPEST:
        raise MiradaError(f"the settings are over {MAX_SETTINGS:,} bytes or {DEEPEST} deep; give fewer.")
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        if not KEY.fullmatch(key):
            raise MiradaError(f"setting {key[:80]!r} does not exist; write it as key.sub, for example train.epochs.")
        *sections, last = key.split(".")
        here = nested
        for section in sections:
            here = here.setdefault(section, {})
            if not isinstance(here, dict):
                raise MiradaError(f"setting {key!r}: {section} was given a value too; give either it or what is in it.")
        if isinstance(here.get(last), dict) and isinstance(value, dict):
            here[last] |= value
        else:
            here[last] = dict(value) if isinstance(value, dict) else value
    for key, what in WRITING.items():
        given: Any = nested
        for part in key.split("."):
            given = given.get(part) if isinstance(given, Mapping) else None
        if given is not None:
            raise MiradaError(f"setting {key!r}: {what} cannot be chosen from here; start this run by `mirada train`.")
    return nested


def _require_known(config: Config) -> None:
    card = systems.card(config.system.name)
    if config.system.size is not None and config.system.size not in card.sizes:
        raise MiradaError(f"{card.name} has no size {config.system.size!r}; there are {', '.join(card.sizes)}.")
    if config.baseline.name != "none":
        systems.card(config.baseline.name)


def _require_source(source: str) -> None:
    if source in SAMPLES:
        return
    try:
        exists = Path(source).exists()
    except (OSError, ValueError):  # too long, or with a zero in it
        exists = False
    if not source.strip() or not exists:
        raise MiradaError(
            f"{source[:200]!r}: there is no such folder or file on the studio's machine; give the path of data there, "
            f"or a sample set: {', '.join(SAMPLES)}."
        )


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inside), default=0)
