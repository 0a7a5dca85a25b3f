"""`--from` of a run on text: the weights know tokens by their numbers, so the tokeniser comes with them."""

from __future__ import annotations

import dataclasses

from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.verbs.text.prepared import PreparedText
from mirada.weights import Checkpoint


def tokenised_as(checkpoint: Checkpoint, prepared: PreparedText) -> PreparedText:
    """The texts with the tokeniser of a checkpoint, and as many tokens as it has vectors for."""
    tokeniser = tokeniser_of(checkpoint)
    num_tokens = max(len(tokeniser), int(checkpoint.arguments.get("num_tokens", 0)))
    return dataclasses.replace(prepared, known_tokeniser=tokeniser, known_num_tokens=num_tokens)


def tokeniser_of(checkpoint: Checkpoint) -> Tokeniser:
    folder = checkpoint.folder
    assert folder is not None
    if checkpoint.origin != "mirada":
        return Tokeniser.from_hugging_face(folder)
    # That of a run lies one folder above its best/, that of a baseline two.
    for place in (folder, folder.parent, folder.parent.parent):
        if (place / "target_tokeniser.json").exists():
            raise MiradaError(f"{checkpoint.start}: has a vocabulary for each language, which --from cannot continue.")
        if (place / "tokeniser.json").exists():
            return Tokeniser.load(place / "tokeniser.json")
    raise MiradaError(f"{checkpoint.start}: has no tokeniser.json, so its tokens cannot be read; give the whole run.")
