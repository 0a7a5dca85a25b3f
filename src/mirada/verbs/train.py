"""`mirada train` and `mirada resume`: from data to a trained, judged and reported model in a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from mirada import systems
from mirada.config.load import dump_config, load_config, merge, parse_settings, read_preset, read_yaml, resolve
from mirada.config.schema import Config
from mirada.errors import MiradaError
from mirada.machine.processes import joined
from mirada.train.files import write_json, write_text
from mirada.train.folder import RunFolder, new_run, open_run
from mirada.train.stopping import StopRequest
from mirada.verbs.possible import require_possible, require_shareable
from mirada.verbs.prepare import AnyPrepared, prepare_data
from mirada.verbs.stages import Watcher, carry_out
from mirada.verbs.start import as_seen_by, require_startable, start_settings
from mirada.verbs.teacher import require_teacher
from mirada.weights import read_checkpoint

DEFAULT_MINUTES = 5.0


def train(
    source: str | Path | None = None,
    *,
    system: str | None = None,
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Iterable[str] = (),
    start: str | Path | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    stop: StopRequest | None = None,
) -> RunFolder:
    """Train on `source`; what is not given is chosen from the data. Returns the run folder.

    Order: preset, then the `config` file, then `settings` such as "train.epochs=10", then the arguments. Without a
    source the file or the settings name it. `out` is the run folder itself.

    With `start` (a file, a folder, a run or a hub id, see `mirada.weights`) the weights, the system and its size come
    from there, the head and what else does not fit the data are adapted, and the rate is a lower one.

    Processes that `torchrun` started train together: the first one plans and makes the folder, the others open it.
    """
    watcher = watcher or Watcher()

    def begun() -> tuple[RunFolder, Config, AnyPrepared]:
        resolved, prepared = plan(what_was_said(source, system, config, settings, start), preset, watcher)
        folder = _make_folder(resolved, out)
        write_text(folder.config, dump_config(resolved))
        prepared.save(folder)
        write_json(folder.data, prepared.describe())
        return folder, resolved, prepared

    return _together(begun, watcher, stop)


def plan(
    given: dict, preset: str | None, watcher: Watcher, prepare: Callable[..., AnyPrepared] = prepare_data
) -> tuple[Config, AnyPrepared]:
    """The whole configuration from what the caller said, and the data, ready; nothing is written."""
    first = resolve(given)
    if not first.data.source:
        raise MiradaError(
            "no data is named; give a folder, a table, a text, a graph or a sample set, such as `mirada train digits`."
        )
    checkpoint = None if first.start is None else read_checkpoint(first.start)
    name = preset or first.preset
    if checkpoint is not None:
        asked = resolve({"system": checkpoint.settings}, given)
    else:
        asked = first if name is None else resolve(read_preset(name), given)
    prepared = prepare(first.data, asked.system, progress=watcher.loads)
    if name is None:
        name, why = prepared.preset()
        watcher.says(f"Preset {name}: {why}.")
    length = {} if _has_length(given) else {"train": {"minutes": DEFAULT_MINUTES}}
    layers = [length, read_preset(name)]
    if checkpoint is not None:
        layers[1].pop("system", None)  # nothing of it is for the model of the checkpoint
        layers.append(start_settings(checkpoint, resolve(*layers).train))
        prepared = as_seen_by(checkpoint, prepared)
    else:
        layers.append(_steps_of_another_system(layers[1], given))
    resolved = resolve(*layers, given, prepared.settings(), {"preset": name})
    if resolved.train.precision == "auto" and resolved.baseline.precision is None:
        # Asked for both, and decided for each by itself: the one of the model will be written over.
        resolved.baseline.precision = "auto"
    prepared = prepared.ready(resolved)
    require_possible(resolved, prepared)
    resolved = require_teacher(resolved, prepared, watcher.says)
    if checkpoint is not None and (advice := require_startable(checkpoint, resolved, prepared)):
        watcher.says(advice)
    return resolved, prepared


def resume(run: str | Path, *, watcher: Watcher | None = None, stop: StopRequest | None = None) -> RunFolder:
    """Continue a run where it was stopped, with any number of processes; a finished run is left as it is."""
    watcher = watcher or Watcher()
    return _together(lambda: _opened(open_run(run), watcher), watcher, stop)


def _together(
    begin: Callable[[], tuple[RunFolder, Config, AnyPrepared]], watcher: Watcher, stop: StopRequest | None
) -> RunFolder:
    """The first process begins, and the others follow from what it has written."""
    with joined() as processes:
        begun = begin() if processes.is_first else None
        path = processes.by_first(lambda: None if begun is None else begun[0].path.resolve())
        if begun is None:
            assert path is not None
            begun = _opened(RunFolder(path), watcher)
        return carry_out(*begun, watcher, stop)


def _opened(folder: RunFolder, watcher: Watcher) -> tuple[RunFolder, Config, AnyPrepared]:
    config = load_config(folder.config)
    saved = folder.read_data() if folder.data.exists() else None
    prepared = prepare_data(config.data, config.system, saved=saved, progress=watcher.loads).ready(config, folder)
    if saved is None:  # it was stopped before this was written
        if config.start is not None:
            prepared = as_seen_by(read_checkpoint(config.start), prepared)
        prepared.save(folder)
        write_json(folder.data, prepared.describe())
    require_shareable(config, prepared)
    return folder, config, prepared


def what_was_said(
    source: str | Path | None,
    system: str | None,
    config: str | Path | None,
    settings: Iterable[str],
    start: str | Path | None = None,
) -> dict:
    """What the caller said, as one layer."""
    layers = [{} if config is None else read_yaml(config), parse_settings(settings)]
    for layer in layers:
        resolve(layer)  # so that a mistake is not hidden by a later layer
    if source is not None:
        layers.append({"data": {"source": str(source)}})
    if start is not None:
        layers.append({"start": str(start)})
    if system is not None:
        name, _, size = system.partition(":")
        layers.append({"system": {"name": name, **({"size": size} if size else {})}})
    return merge(*layers)


def _steps_of_another_system(preset: dict, given: dict) -> dict:
    """The rate of a preset, and Muon, are for its own system and size; others have theirs on their card."""
    own, asked = preset.get("system", {}), merge(preset, given).get("system", {})
    if [own.get(part) for part in ("name", "size")] == [asked.get(part) for part in ("name", "size")]:
        return {}
    if asked["name"] not in systems.cards():
        return {}
    card = systems.card(asked["name"])
    own_optimiser = preset.get("train", {}).get("optimiser")
    optimiser = {"optimiser": card.optimiser} if own_optimiser == "muon" else {}
    return {"train": {"learning_rate": card.learning_rate, **optimiser}}


def _has_length(given: dict) -> bool:
    return any(given.get("train", {}).get(name) is not None for name in ("epochs", "steps", "minutes"))


def _make_folder(config: Config, out: str | Path | None) -> RunFolder:
    source = Path(config.data.source)
    if out is None:
        name = config.name or f"{config.system.name}-{source.name.removesuffix(source.suffix)}"
        return new_run(Path(config.runs), name)
    folder = RunFolder(Path(out))
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        is_empty = all(entry == folder.asked for entry in folder.path.iterdir())
    except OSError as error:
        raise MiradaError(f"{out}: cannot be the folder of a run ({error.strerror}); give another one.") from error
    if not is_empty:
        raise MiradaError(f"{out}: already exists and is not empty; give another folder, or `mirada resume {out}`.")
    return folder
