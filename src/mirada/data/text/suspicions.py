"""What is wrong or odd about texts, in plain sentences. Problems stop training, warnings do not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mirada.data.suspicions import class_count_warnings
from mirada.data.text.oddities import FEWEST_WORDS, MAX_RATIO
from mirada.data.text.table import TextTable

SHORT_TEXT = 1_000  # characters of plain text
FEW_PAIRS = 1_000


def problems_of_text(table: TextTable) -> list[str]:
    """Reasons why nothing can be learnt from these texts."""
    if table.splits is not None and not (table.splits == "train").any():
        return ["the given split has no training rows."]
    if table.kind == "plain":
        different = set().union(*table.texts) - {"\n"}
        return ["the text is one character again and again; there is nothing to predict."] if len(different) < 2 else []
    if len(table) < 2:
        return ["there is only one usable row; training needs at least two, and more to hold out."]
    if table.targets is not None:
        if table.targets == table.texts:
            return [f"{table.source_name} and {table.target_name} are the same in every row; is one the wrong column?"]
        if len(set(table.targets)) == 1:
            return [f"every {table.target_name} is the same text; nothing depends on {table.source_name}."]
    if table.labels is not None:
        counts = table.class_counts()
        if (counts > 0).sum() < 2:
            name = table.class_names[int(counts.argmax())]
            return [f"there is only one class ({name!r}); telling texts apart needs at least two."]
        if counts.max() == 1:
            return ["every class has a single text, so nothing is left to test with; is this the label column?"]
    return []


def warnings_of_text(
    table: TextTable, num_rows: Mapping[str, int], num_leaks: Mapping[str, int], num_odd_characters: int
) -> list[str]:
    """Things to know before trusting a result; `num_rows` counts the rows of each oddity that check.py looks for."""
    found = [
        f"{num} texts in {name} appear in more than one split, which flatters the result."
        for name, num in num_leaks.items()
        if num
    ]
    said = {
        "conflicts": "texts appear with different labels.",
        "misread": "rows look as if UTF-8 had been read as Latin-1 ('Ã±' for 'ñ'); convert the original file again.",
        "very long": "rows are very long; a model reads only as many tokens as its longest input.",
        "identical": "pairs have the same text on both sides.",
        "untranslated": f"pairs of {FEWEST_WORDS} words or more have a target mostly in words of the source.",
        "odd lengths": f"pairs have one side more than {MAX_RATIO:g} times as long as the other; are they aligned?",
    }
    found += [f"{num_rows[what]} {sentence}" for what, sentence in said.items() if num_rows[what]]
    if num_rows["copies"] and table.kind != "plain":
        found.append(f"{num_rows['copies']} rows are copies of others; they are kept on one side of a new split.")
    if num_odd_characters:
        share = num_odd_characters / sum(len(text) for column in table.sides.values() for text in column)
        found.append(
            f"{num_odd_characters} characters ({100 * share:.2g} %) in {num_rows['odd characters']} rows are control, "
            "private or replacement characters; were they lost in a conversion?"
        )
    return found + _size_warnings(table) + _class_warnings(table)


def _size_warnings(table: TextTable) -> list[str]:
    num_characters = sum(map(len, table.texts))
    if table.kind == "plain" and num_characters < SHORT_TEXT:
        return [f"the text has only {num_characters} characters; a model will know it by heart."]
    if table.kind == "pairs" and len(table) < FEW_PAIRS:
        return [f"{len(table)} pairs are few; expect a translation only of sentences much like them."]
    return []


def _class_warnings(table: TextTable) -> list[str]:
    if table.labels is None:
        return []
    found = class_count_warnings(table.class_names, table.class_counts(), "texts")
    if table.splits is not None:
        trained = table.class_counts(np.flatnonzero(table.splits == "train"))
        unseen = [name for name, count in zip(table.class_names, trained, strict=True) if count == 0]
        found += [f"classes without training texts: {', '.join(unseen)}."] if unseen else []
    return found
