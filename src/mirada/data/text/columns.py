"""Which column of a table is what: by what the user says, else by its name, else by its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from mirada.data.discover import is_image_name
from mirada.data.table import canonical_split
from mirada.data.tabular import PATH_NAMES, SPLIT_NAMES
from mirada.data.text.column_names import LABEL_NAMES, SOURCE_NAMES, TARGET_NAMES, TEXT_NAMES, language_columns, named
from mirada.data.text.records import Columns
from mirada.data.text.table import KIND_OF_TASK, Kind
from mirada.errors import MiradaError, nearest

ROWS_PER_CLASS = 4  # fewer on average, and a column does not hold classes
WORDS_OF_A_CLASS = 4
EXAMINED = 1_000


@dataclass(frozen=True)
class TextColumns:
    """Columns the user names; what is None is inferred."""

    source: str | None = None
    target: str | None = None
    text: str | None = None
    label: str | None = None
    split: str | None = None

    @property
    def given(self) -> dict[str, str]:
        return {role: name for role, name in vars(self).items() if name is not None}


@dataclass(frozen=True)
class Roles:
    """`text` holds the source of pairs, the text otherwise; `other` its target or label, nothing for plain text."""

    kind: Kind
    text: str
    other: str | None = None
    split: str | None = None
    notes: tuple[str, ...] = ()


def find_roles(columns: Columns, choice: TextColumns, task: str | None, where: str) -> Roles:
    """The roles of the columns of one table; `where` names it in messages."""
    for role, name in choice.given.items():
        if name not in columns:
            raise MiradaError(
                f"{where}: there is no column {name!r} ({role}_column){nearest(name, columns)}; "
                f"the columns are {', '.join(columns)}."
            )
    split = choice.split or _split_column(columns)
    free = {name: cells for name, cells in columns.items() if name != split}
    kind = _kind(free, choice, task, where)
    if kind == "plain":
        return Roles(kind, choice.text or _text_column(free, None, where), None, split)
    if len(free) < 2:
        raise MiradaError(
            f"{where}: the table has one column ({', '.join(free)}), expected two texts, or a text and a label; "
            "give plain text as .txt."
        )
    if kind == "pairs":
        source, target = _pair(free, choice, where)
        return Roles(kind, source, target, split, _left_out(free, (source, target), where))
    label = choice.label or _label_column(free, choice.text, where)
    text = choice.text or _text_column(free, label, where)
    return Roles(kind, text, label, split, _left_out(free, (text, label), where))


def looks_like_text(columns: Columns) -> bool:
    """Whether a table is about texts: not about images or numbers, which also come with labels."""
    if not columns or any(_mostly(is_image_name, cells) for cells in columns.values()):
        return False
    if named(columns, (*TEXT_NAMES, *SOURCE_NAMES)) or len(language_columns(columns)) >= 2:
        return True
    if named(columns, [name for name in PATH_NAMES if name != "id"]):
        return False
    return 2 * sum(_mostly(_has_words, cells) for cells in columns.values()) >= len(columns)


def holds_classes(cells: Sequence[str]) -> bool:
    """Few distinct short values."""
    distinct = set(cells)
    is_few = 1 <= len(distinct) <= len(cells) / ROWS_PER_CLASS
    return is_few and median(len(cell.split()) for cell in distinct) <= WORDS_OF_A_CLASS


def _split_column(columns: Columns) -> str | None:
    """By its name, if it holds nothing but train, val and test: 'set' or 'fold' can mean other things."""
    found = named(columns, SPLIT_NAMES)
    return found if found is not None and all(map(canonical_split, set(columns[found]))) else None


def _kind(free: Columns, choice: TextColumns, task: str | None, where: str) -> Kind:
    """What the user says; else what the names say; else classes beside one text, or two texts."""
    if task is not None:
        return KIND_OF_TASK[task]
    if choice.source or choice.target:
        return "pairs"
    if choice.label:
        return "labelled"
    if choice.text is None and (_named_pair(free) or len(language_columns(free)) == 2):
        return "pairs"
    if named(free, LABEL_NAMES):
        return "labelled"
    classes = [name for name, cells in free.items() if holds_classes(cells)]
    texts = [name for name in free if name not in classes and _is_text(free[name])]
    if len(texts) == 1 and len(classes) == 1:
        return "labelled"
    if len(texts) >= 2 and not classes and choice.text is None:
        return "pairs"
    if len(free) < 2:
        return "labelled"  # which a single column cannot be, as the caller says
    raise MiradaError(
        f"{where}: the columns {', '.join(free)} could be pairs or labelled texts; give data.task=translate or "
        "data.task=classify, or name the columns."
    )


def _named_pair(free: Columns) -> bool:
    target = named(free, TARGET_NAMES)
    return named(free, SOURCE_NAMES) is not None and target is not None and not holds_classes(free[target])


def _pair(free: Columns, choice: TextColumns, where: str) -> tuple[str, str]:
    """Given and named columns first; then those of languages, then those of texts, from left to right."""
    source = choice.source or choice.text or _unless(named(free, SOURCE_NAMES), choice.target)
    target = choice.target or _unless(named(free, TARGET_NAMES), source)
    languages = language_columns(free)
    texts = [*languages, *(name for name in free if name not in languages and _is_text(free[name]))]
    rest = [name for name in texts if name not in (source, target)]
    chosen = [name or (rest.pop(0) if rest else None) for name in (source, target)]
    if chosen[0] is None or chosen[1] is None or chosen[0] == chosen[1]:
        raise MiradaError(
            f"{where}: no two columns of text among {', '.join(free)}; give data.source_column and data.target_column."
        )
    return chosen[0], chosen[1]


def _unless(name: str | None, taken: str | None) -> str | None:
    return None if name == taken else name


def _label_column(free: Columns, text: str | None, where: str) -> str:
    rest = {name: cells for name, cells in free.items() if name != text}
    label = named(rest, (*LABEL_NAMES, *TARGET_NAMES[:3]))
    if label is None:
        classes = [name for name, cells in rest.items() if holds_classes(cells)]
        label = classes[0] if len(classes) == 1 else None
    if label is None and len(free) == 2:
        label = list(rest)[-1]
    if label is None:
        raise MiradaError(f"{where}: no label column among {', '.join(free)}; give data.label_column.")
    return label


def _text_column(free: Columns, label: str | None, where: str) -> str:
    rest = {name: cells for name, cells in free.items() if name != label}
    found = named(rest, (*TEXT_NAMES, *SOURCE_NAMES))
    texts = [name for name, cells in rest.items() if _is_text(cells)]
    if found is None and len(texts) == 1:
        found = texts[0]
    if found is None:
        raise MiradaError(f"{where}: which of the columns {', '.join(free)} holds the text; give data.text_column.")
    return found


def _left_out(free: Columns, used: tuple[str, str], where: str) -> tuple[str, ...]:
    rest = [name for name in free if name not in used]
    note = f"{where}: {used[0]} and {used[1]} are used, not {', '.join(rest)}."
    return (note,) if rest else ()


def _is_text(cells: Sequence[str]) -> bool:
    """Mostly neither empty nor numbers nor names of images."""
    return _mostly(lambda cell: bool(cell) and not _is_number(cell) and not is_image_name(cell), cells)


def _mostly(holds: Callable[[str], bool], cells: Sequence[str]) -> bool:
    """Whether it holds for most of at most EXAMINED cells, taken from all over the column."""
    examined = cells[:: 1 + len(cells) // EXAMINED]
    return 2 * sum(map(holds, examined)) > len(examined)


def _has_words(cell: str) -> bool:
    return " " in cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
