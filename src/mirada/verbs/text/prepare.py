"""Which kind of learning a text asks for."""

from __future__ import annotations

from mirada import systems
from mirada.config.schema import DataConfig, SystemConfig
from mirada.data.splits import Split
from mirada.data.text.check import require_trainable_text
from mirada.data.text.sources import open_text
from mirada.data.text.split import split_text
from mirada.errors import MiradaError
from mirada.verbs.text.classify import PreparedLabelled
from mirada.verbs.text.embed import PreparedVectors
from mirada.verbs.text.fill import PreparedMasked
from mirada.verbs.text.generate import PreparedStream
from mirada.verbs.text.prepared import PreparedText
from mirada.verbs.text.translate import PreparedPairs

KINDS: dict[str, type[PreparedText]] = {
    "translate": PreparedPairs,
    "generate": PreparedStream,
    "fill": PreparedMasked,
    "classify": PreparedLabelled,
    "embed": PreparedVectors,
}
TASKS_OF_KIND = {"pairs": ("translate",), "plain": ("generate", "fill", "embed"), "labelled": ("classify",)}
TASK_OF_SYSTEM = {"gpt": "generate", "bert": "fill", "word2vec": "embed"}


def prepare_text(data: DataConfig, system: SystemConfig, *, saved: dict | None = None) -> PreparedText:
    """Read the texts and divide them; with `saved` (the data.json of a run) the division is the saved one."""
    table = open_text(data.source, **reading_options(data))
    require_trainable_text(table)
    task = task_of(table.kind, data, system) if saved is None else kind_of(saved["task"])
    if saved is None:
        split = split_text(table, val=data.val, test=data.test, seed=data.split_seed)
    else:
        if table.checksum() != saved["checksum"]:
            raise MiradaError(f"{data.source}: the data changed since this run started; restore it or train a new run.")
        split = Split.from_dict(saved["split"])
    return KINDS[task](table, split, known_num_tokens=None if saved is None else saved["num_tokens"])


def kind_of(task: str) -> str:
    """Which of KINDS a saved task is: of texts with classes, data.json says what it says of images with classes."""
    return "classify" if task == "single-label" else task


def reading_options(data: DataConfig) -> dict:
    """What open_text takes of a configuration."""
    names = ("task", "source_column", "target_column", "text_column", "label_column", "split_column", "target")
    return {name: getattr(data, name) for name in names}


def task_of(kind: str, data: DataConfig, system: SystemConfig) -> str:
    """What is asked for, else what the system does with such texts, else what such texts are mostly used for."""
    possible = TASKS_OF_KIND[kind]
    asked = data.task or (TASK_OF_SYSTEM.get(system.name) if kind == "plain" else None) or possible[0]
    if asked not in possible:
        holds = {"pairs": "pairs of sentences", "plain": "running text", "labelled": "labelled texts"}[kind]
        raise MiradaError(f"{data.source}: holds {holds}, so data.task can be {' or '.join(possible)}, not {asked}.")
    return asked


def is_text_system(system: SystemConfig) -> bool:
    known = systems.cards()
    return system.name in known and known[system.name].inputs in ("text", "pairs")
