"""Models of transformers as CTranslate2 has them, for `decoding.py`; none where it is not installed."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

PRECISIONS = ("float32", "int8")
Run = Callable[[], list[list[int]]]


def is_there() -> bool:
    return importlib.util.find_spec("ctranslate2") is not None


def writers(theirs: nn.Module, prompt_BN: Tensor, length: int, end: int) -> dict[str, Run]:
    """The likeliest tokens after the prompt; as `end` may not come early, it is never written."""
    import ctranslate2

    names = names_of(theirs)
    prompts = [[names[token] for token in row] for row in prompt_BN.tolist()]

    def writer(model: Any) -> Run:
        def write() -> list[list[int]]:
            found = model.generate_batch(
                prompts,
                max_length=length,
                min_length=length,
                sampling_topk=1,
                include_prompt_in_result=False,
                end_token=names[end],
            )
            return [result.sequences_ids[0] for result in found]

        return write

    return {f"CTranslate2 {how}": writer(model) for how, model in converted(theirs, end, ctranslate2.Generator).items()}


def translators(theirs: nn.Module, source_BM: Tensor, length: int, end: int, beam: int) -> dict[str, Run]:
    import ctranslate2

    names = names_of(theirs)
    number = {name: token for token, name in enumerate(names)}
    sources = [[names[token] for token in row] for row in source_BM.tolist()]

    def translator(model: Any) -> Run:
        def translate() -> list[list[int]]:
            found = model.translate_batch(
                sources,
                beam_size=beam,
                length_penalty=0.0,
                min_decoding_length=length,
                max_decoding_length=length,
            )
            return [[number[name] for name in result.hypotheses[0]] for result in found]

        return translate

    models = converted(theirs, end, ctranslate2.Translator)
    return {f"CTranslate2 {how}": translator(model) for how, model in models.items()}


def converted(theirs: nn.Module, end: int, kind: Callable[..., Any]) -> dict[str, Any]:
    """By CTranslate2's own converter, loaded in every precision, on as many threads as torch has."""
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):
        def load_tokenizer(self, *_: Any, **__: Any) -> Names:
            return Names(names_of(theirs), end)

    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)  # type: ignore[operator]
        out = Path(folder) / "converted"
        Converter(folder).convert(str(out))
        return {
            how: kind(str(out), device="cpu", compute_type=how, intra_threads=torch.get_num_threads())
            for how in PRECISIONS
        }


def names_of(theirs: nn.Module) -> list[str]:
    """Random weights have no words; the last token is the padding, which the converter knows by its name."""
    return [*(f"t{token}" for token in range(theirs.config.vocab_size - 1)), "<pad>"]  # type: ignore[union-attr]


class Names:
    """What the converter asks a tokeniser for."""

    def __init__(self, names: list[str], end: int) -> None:
        self.names = names
        self.bos_token = self.eos_token = names[end]
        self.unk_token = names[1]

    def get_vocab(self) -> dict[str, int]:
        return {name: token for token, name in enumerate(self.names)}
