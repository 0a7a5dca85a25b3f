"""`mirada explain`: what the answers of a model rest on, as pictures, as a page to look into, and as numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.explain.foreign_reading import Rows
from mirada.explain.looks import Tokens
from mirada.explain.methods import DEFAULT, METHODS, method_named
from mirada.report.explained import ExplainedImage, Item, explained_page, rows_only, save_png
from mirada.train.files import write_atomically, write_json, write_text
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained, load

Progress = Callable[[int, int], None]
SHOWN = (DEFAULT, "rollout", "attention")
MAX_WEIGHTS = 6 * 2**20  # of one input, on a page: those of a ViT-B at 224 px
FOLLOWING = ("rollout", "attention")  # what can follow one patch
WHERE_INSTEAD = {
    "graph": "what its nodes look at is in the report; mirada.explain.graph.explain_node explains one",
    "plots": "what places look at is in the report; mirada.explain.chips.explain_chips explains some",
}


@dataclass(frozen=True)
class Options:
    """How to explain: see `explain`."""

    methods: tuple[str, ...] = SHOWN
    target: str | int | None = None
    layer: int | str = -1
    head: int | None = None
    at: tuple[int, ...] | None = None
    faithfulness: bool = True
    may_skip: bool = False  # nobody asked for these methods by name: what is not defined for the model is left out
    whole: bool = False  # all rows of the weights, however many


@dataclass(frozen=True)
class Explanations:
    """Of every input its answers, relevance by every method, and the weights of all layers, as arrays."""

    items: Sequence[Item]
    title: str
    command: str = ""
    failures: list[str] = field(default_factory=list)  # inputs that could not be explained
    notes: list[str] = field(default_factory=list)  # methods that were left out, and why

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: int) -> Item:
        return self.items[number]

    def page(self) -> str:
        """One HTML page without anything from outside; with some rows of the weights, where they are too many."""
        return explained_page(list(self.items), self.title, self.command)

    def numbers(self) -> list[dict]:
        """Of every input its answers and the numbers of its maps: what explain.json holds."""
        return [_numbers(item) for item in self.items]

    def save(self, folder: str | Path) -> list[Path]:
        """explain.html, a PNG for every input, and explain.json with the numbers of the maps."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise MiradaError(f"{folder}: is a file, expected a folder to write to; give another name.")
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for name, item in zip(_file_names(self.items), self.items, strict=True):
            file = folder / f"{name}.png"
            write_atomically(file, lambda partial, item=item: save_png(item, partial))  # type: ignore[misc]
            files.append(file)
        write_json(folder / "explain.json", {"command": self.command, "inputs": self.numbers()})
        write_text(folder / "explain.html", self.page())
        return [folder / "explain.html", folder / "explain.json", *files]


def explain(
    model: str | Path | RunFolder | Trained | nn.Module,
    inputs: Any,
    *,
    method: str | Sequence[str] | None = None,
    target: Any = None,
    layer: int | str = -1,
    head: int | None = None,
    at: int | tuple[int, ...] | None = None,
    faithfulness: bool = True,
    device: str = "auto",
    progress: Progress | None = None,
    tokens: Tokens | None = None,
    reads: Rows | None = None,
) -> Any:
    """Of a run: `Explanations` of images (paths, arrays) or texts. Of any torch model: relevance as tensors.

    method         one name or several, or "all"; of a run, three of them if None
    target         the class to explain, by name or number (None: the one that the model names)
    layer, head    of the method "attention": by number or name; None for the mean of all heads
    at             (row, column) of a token of an image, whose sight is followed; of a text, the token to explain
    faithfulness   of classes of images: whether to measure how far the answer depends on what a map points at
    tokens, reads  of models of others that do not tell: how their tokens lie, and which give the answer ("first", …)
    """
    if isinstance(model, nn.Module):
        from mirada.explain.any_model import explain_model

        names = [DEFAULT] if method is None else [method] if isinstance(method, str) else list(method)
        if len(names) != 1:
            raise MiradaError(f"method={method!r}: of a torch model one method at a time is explained; give one name")
        return explain_model(
            model, inputs, method=names[0], target=target, layer=layer, head=head, at=at, tokens=tokens, reads=reads
        )
    trained = model if isinstance(model, Trained) else load(model, device=device)
    trained.model.eval()
    kind = trained.data.get("inputs", "image")
    if kind in WHERE_INSTEAD:
        raise MiradaError(f"{trained.folder.path}: this model was trained on {kind}; {WHERE_INSTEAD[kind]}.")
    if isinstance(inputs, Tensor):
        raise MiradaError(
            "a run is explained on images (paths, uint8 arrays) or texts; tensors are for its model: "
            "mirada.explain(mirada.load(run).model, tensor)."
        )
    options = options_of(kind, method, target, layer, head, (at,) if isinstance(at, int) else at, faithfulness)
    items, failures, notes = _of_kind(kind)(trained, inputs, options, progress)
    if not items:
        raise MiradaError(failures[0] if failures else "nothing is given to explain; give at least one input.")
    title = f"What {trained.folder.path.name} looks at"
    return Explanations(items, title, command_of(trained, options), failures, notes)


def options_of(
    kind: str,
    method: str | Sequence[str] | None,
    target: Any = None,
    layer: int | str = -1,
    head: int | None = None,
    at: tuple[int, ...] | None = None,
    faithfulness: bool = True,
    whole: bool = False,
) -> Options:
    """What was asked for, of inputs of this kind, with what follows from it."""
    methods = methods_named(method)
    if at is not None and method is None and kind not in ("text", "pairs"):
        methods = tuple(name for name in methods if name in FOLLOWING)
    plain = layer == -1 and head is None and at is None
    may_skip = plain and method in (None, "all", ["all"])
    return Options(methods, target, layer, head, at, faithfulness, may_skip, whole)


Explained = tuple[Sequence[Item], list[str], list[str]]  # what was explained, what could not be, what was left out


def _of_kind(kind: str) -> Callable[[Trained, Any, Options, Progress | None], Explained]:
    if kind in ("text", "pairs"):
        from mirada.verbs.explained.texts import explain_texts

        return explain_texts
    from mirada.verbs.explained.images import explain_images

    return explain_images


def methods_named(method: str | Sequence[str] | None) -> tuple[str, ...]:
    if method is None:
        return SHOWN
    names = [method] if isinstance(method, str) else list(method)
    if names == ["all"]:
        return tuple(METHODS)
    if not names:
        raise MiradaError(f"no method is named: give one of {', '.join(METHODS)}, or all.")
    return tuple(dict.fromkeys(method_named(name).name for name in names))


def command_of(trained: Trained, options: Options, given: str = "INPUT") -> str:
    """What gives the same on the command line."""
    words = ["mirada", "explain", str(trained.folder.path), given]
    words += [word for name in options.methods for word in ("--method", name)]
    for option, value, default in (
        ("--target", options.target, None),
        ("--layer", options.layer, -1),
        ("--head", options.head, None),
        ("--at", None if options.at is None else ",".join(map(str, options.at)), None),
    ):
        if value != default:
            words += [option, str(value)]
    return shlex.join(words)


def fitting(item: Item) -> Item:
    """With some rows of the weights, where all of them are too many."""
    return rows_only(item) if sum(layer.weights_HNM.size for layer in item.layers) > MAX_WEIGHTS else item


def _file_names(items: Sequence[Item]) -> list[str]:
    """Of the names of inputs what a file may be called, each once."""
    names: list[str] = []
    for number, item in enumerate(items):
        stem = Path(item.name).stem if isinstance(item, ExplainedImage) else f"text-{number + 1}"
        name = re.sub(r"[^\w.-]+", "_", stem).strip("._")[:80] or f"input-{number + 1}"
        names.append(name if name not in names else f"{name}-{number + 1}")
    return names


def _numbers(item: Item) -> dict:
    maps = item.maps if isinstance(item, ExplainedImage) else item.relevance
    found: dict = {"name": item.name, "target": item.target, "answers": dict(item.answers), "maps": {}}
    if not isinstance(item, ExplainedImage):
        found["tokens"] = item.input_tokens
    for one in maps:
        values: np.ndarray = one.relevance_RC if isinstance(item, ExplainedImage) else one.relevance_N  # type: ignore[union-attr]
        entry: dict = {"relevance": np.round(values.astype(float), 7).tolist()}
        if one.faithfulness is not None:
            strip = one.faithfulness
            entry["faithfulness"] = {
                "baseline": strip.baseline,
                "deletion": strip.deletion_auc,
                "insertion": strip.insertion_auc,
                "random_deletion": strip.random_deletion_auc,
                "random_insertion": strip.random_insertion_auc,
            }
        found["maps"][one.method] = entry
    return found
