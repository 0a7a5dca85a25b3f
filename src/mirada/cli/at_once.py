"""`mirada predict FOLDER FILES` of an exported model, before the command line is built.

Typer and what it loads take longer than such a model takes to answer. All else, and all that goes wrong, is left to the
command itself.
"""

from __future__ import annotations

import os
import sys

MOST_FILES = 8


def is_answered(words: list[str]) -> bool:
    """Whether these words were so simple that their answers are printed."""
    if not (words[:1] == ["predict"] and 3 <= len(words) <= 2 + MOST_FILES):
        return False
    folder, *files = words[1:]
    is_exported = os.path.isfile(os.path.join(folder, "model.onnx")) and not os.path.exists(
        os.path.join(folder, "config.yaml")
    )
    if any(word.startswith("-") for word in words) or not is_exported or not all(map(os.path.isfile, files)):
        return False
    from mirada.verbs.engines.exported import Exported
    from mirada.verbs.engines.load import load

    try:
        model = load(folder)
        if not isinstance(model, Exported):
            return False
        rows = model.rows(files)
    except Exception:  # the command comes to the same, and says it in a sentence
        return False
    except KeyboardInterrupt:
        sys.exit(130)
    from mirada.cli.answers import show_answers, tell_failures

    show_answers(rows, "cannot be read")
    tell_failures(rows)
    return True
