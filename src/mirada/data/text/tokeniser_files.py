"""Files of tokenisers, which may come from anywhere: they are read as data, within limits, and never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from mirada.data.text.blanks import SOME_LETTER
from mirada.data.text.token_words import READERS
from mirada.errors import MiradaError

FORMAT = 1
LARGEST_FILE = 200_000_000  # bytes; the largest vocabularies in use are a tenth of it


def read_text(path: Path) -> str:
    if not path.is_file():
        raise MiradaError(f"{path}: is not a file; expected the file of a tokeniser.")
    if (size := path.stat().st_size) > LARGEST_FILE:
        raise MiradaError(f"{path}: has {size} bytes, which no tokeniser has; expected at most {LARGEST_FILE}.")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MiradaError(
            f"{path}: is not UTF-8 text at byte {error.start}; expected the file of a tokeniser."
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        state = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MiradaError(f"{path}: is not JSON ({error}); expected the file of a tokeniser.") from error
    if not isinstance(state, dict):
        raise MiradaError(
            f"{path}: is a JSON {type(state).__name__}, expected an object with the parts of a tokeniser."
        )
    return state


def open_pipeline(state: Any, path: Path) -> Tokenizer:
    """The pipeline that a tokenizer.json describes."""
    with refusing(path):
        pipeline = Tokenizer.from_str(json.dumps(state))
        require_numbered(pipeline, path)
        pipeline.encode(SOME_LETTER)  # only now some faults are noticed, such as an unknown token that is not there
    return pipeline


def require_numbered(pipeline: Tokenizer, path: Path) -> None:
    """Numbers far beyond the count of tokens would ask for a model of any size."""
    numbers = pipeline.get_vocab(with_added_tokens=True).values()
    if not numbers or max(numbers) >= 2 * len(numbers) + 1000:
        found = f"{len(numbers)} tokens with numbers up to {max(numbers)}" if numbers else "no tokens"
        raise MiradaError(f"{path}: has {found}; expected tokens that are numbered from 0.")


def saved_text(pipeline: Tokenizer, kind: str, special: dict[str, int]) -> str:
    """What a tokeniser's file holds; the same for the same tokeniser."""
    state = {"mirada_tokeniser": FORMAT, "kind": kind, "special": special, "pipeline": json.loads(pipeline.to_str())}
    return json.dumps(state, ensure_ascii=False, indent=1)


def read_saved(path: Path) -> tuple[Tokenizer, str, dict[str, int]]:
    """The pipeline, its kind and the numbers of its special tokens."""
    state = read_json(path)
    kind, special = state.get("kind"), state.get("special")
    is_known = state.get("mirada_tokeniser") == FORMAT and isinstance(kind, str) and kind in READERS
    if not is_known or not isinstance(special, dict):
        raise MiradaError(f"{path}: is not a tokeniser of Mirada; expected a file that Tokeniser.save has written.")
    pipeline = open_pipeline(state.get("pipeline"), path)
    size = pipeline.get_vocab_size()
    for role, number in special.items():
        if type(number) is not int or not 0 <= number < 2**32 or pipeline.id_to_token(number) is None:
            raise MiradaError(f"{path}: {role} is {number!r}, expected the number of one of its {size} tokens.")
    return pipeline, str(kind), special


class refusing:
    """What the library makes of a broken file, errors as well as panics, becomes one sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        is_panic = kind is not None and kind.__name__ == "PanicException"  # not an Exception
        if is_panic or (isinstance(error, Exception) and not isinstance(error, MiradaError)):
            said = " ".join(str(error).split())[:200]
            raise MiradaError(f"{self.path}: cannot be read as a tokeniser ({said}); was it cut or edited?") from error
