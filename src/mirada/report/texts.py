"""What sections about texts share: the tokenisers of a run, and how much of a text is shown."""

from __future__ import annotations

from mirada.data.text.tokeniser import Tokeniser
from mirada.report.contents import Contents
from mirada.train.folder import RunFolder

LONGEST = 300  # characters of a text that are shown
ATTENTION_NOTE = (
    "Attention shows where this layer takes its input from. It does not explain the decision: other layers and the "
    "values also matter, and a token that has passed through some layers has its neighbours in it."
)


def tokeniser_of(run: Contents) -> Tokeniser:
    return Tokeniser.load(_near(run.folder, "tokeniser"))


def target_tokeniser_of(run: Contents) -> Tokeniser:
    """Of the translations; one with that of the sources where they share it."""
    return tokeniser_of(run) if run.data.get("shared", True) else Tokeniser.load(_near(run.folder, "target_tokeniser"))


def cut(text: str, length: int = LONGEST) -> str:
    """The beginning of a long text, with its line ends."""
    text = text.strip()
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _near(folder: RunFolder, name: str):
    """A baseline has the tokeniser of its parent."""
    own = getattr(folder, name)
    return own if own.exists() else getattr(RunFolder(folder.path.parent), name)
