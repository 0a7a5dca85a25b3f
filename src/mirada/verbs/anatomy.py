"""`mirada anatomy`: a trained attention model taken apart, in figures and numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mirada.core.record import attention_layers
from mirada.errors import MiradaError
from mirada.explain.anatomy import Anatomy
from mirada.explain.anatomy import anatomy as taken_apart
from mirada.explain.anatomy.distance import Rows
from mirada.explain.anatomy.runs import Inputs
from mirada.report.anatomy import anatomy_page, anatomy_section
from mirada.report.style import Drawing
from mirada.train.files import write_atomically, write_text
from mirada.train.folder import RunFolder
from mirada.verbs.anatomy_inputs import image_inputs, text_inputs
from mirada.verbs.load import Progress, Trained, load
from mirada.verbs.text.trained import TrainedText

MAX_INPUTS = 500
IMAGES = ("image", "pixels", "masks")


@dataclass(frozen=True)
class RunAnatomy:
    """`anatomy` has the arrays, `figures` the pictures by what they show (PNG in .light and .dark)."""

    anatomy: Anatomy
    figures: dict[str, Drawing]
    files: list[Path]


def anatomy(
    run: str | Path | RunFolder | Trained,
    *,
    images: object = None,
    against: str | Path | RunFolder | Trained | None = None,
    out: str | Path | None = None,
    rows: Rows = "renormalised",
    max_inputs: int = MAX_INPUTS,
    device: str = "auto",
    progress: Progress | None = None,
) -> RunAnatomy:
    """Take a trained attention model apart, and write anatomy.html, anatomy.json and figures to `out` (RUN/anatomy).

    It looks at what the run held out, or at other `images` (of a model of text: texts), at most `max_inputs` of them.
    `against` is another run; what its layers know is compared with what these know. `rows` says whether attention to
    tokens without a place is shared among the others in distances ("renormalised") or not ("as they are").
    """
    trained = run if isinstance(run, Trained) else load(run, device=device)
    other = None if against is None else against if isinstance(against, Trained) else load(against, device=device)
    _require_attention(trained)
    models = [trained] if other is None else [trained, other]
    inputs = _inputs(models, images, max_inputs, progress)
    found = taken_apart(
        trained.model, inputs[0], rows=rows, against=None if other is None else (other.model, inputs[1])
    )
    section = anatomy_section(found, None if other is None else _title(other))
    source = "given inputs" if images is not None else f"held-out data of {_source(trained)}"
    folder = Path(out) if out is not None else trained.folder.path / "anatomy"
    told = {"run": _title(trained), "source": source, "against": None if other is None else _title(other)}
    files = {f"{drawing.name}.png": _bytes(drawing) for drawing in section["drawings"].values()}
    for name, write in files.items():
        write_atomically(folder / name, write)
    numbers = json.dumps({**told, **found.to_dict()}, ensure_ascii=False, separators=(",", ":"))
    write_text(folder / "anatomy.json", numbers + "\n")
    write_text(folder / "anatomy.html", anatomy_page(section, f"Anatomy of {_title(trained)}", source))
    written = [folder / name for name in ("anatomy.html", "anatomy.json", *files)]
    return RunAnatomy(found, section["drawings"], written)


def _require_attention(trained: Trained) -> None:
    path, inputs = trained.folder.path, trained.data.get("inputs", "image")
    if inputs not in IMAGES and not isinstance(trained, TrainedText):
        raise MiradaError(f"{path}: is a model of {inputs}; anatomies are of models of images or texts.")
    if not attention_layers(trained.model):
        raise MiradaError(f"{path}: {_system(trained)} has no attention layers, so it has no anatomy to show.")


def _inputs(models: list[Trained], images: object, most: int, progress: Progress | None) -> list[Inputs]:
    texts = [model for model in models if isinstance(model, TrainedText)]
    if len(texts) == len(models):
        return list(text_inputs(texts, images, most))
    strange = [model for model in models if model.data.get("inputs", "image") not in IMAGES]
    if texts or strange:
        raise MiradaError(f"{models[-1].folder.path}: was trained on other things than {models[0].folder.path}.")
    return list(image_inputs(models, images, most, progress))


def _bytes(drawing: Drawing) -> Callable[[Path], object]:
    return lambda partial: partial.write_bytes(drawing.light)


def _system(trained: Trained) -> str:
    return trained.config.system.name if trained.folder.config.exists() else type(trained.model).__name__


def _title(trained: Trained) -> str:
    return f"{_system(trained)} on {_source(trained)}"


def _source(trained: Trained) -> str:
    source = str(trained.data.get("source") or trained.folder.path)
    return Path(source).name or source
