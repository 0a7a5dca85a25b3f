"""The best Transformer of a run as a model of CTranslate2, which translates fast on CPUs and without torch."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mirada.core import line
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.systems.registry import all_arguments
from mirada.tasks.search import greedy
from mirada.train.files import read_json, why_unwritable
from mirada.verbs.load import Trained, model_folder
from mirada.verbs.text.trained import TrainedText

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}  # by their names there
ADDED = ("sinusoidal", "sinusoidal_half", "learned")
SINES = 2048  # rows of a table that has no end here; sources are cut at 1,024 tokens there unless it is told not to
NEVER = -1e4  # the score of a token that is never written, small enough for half precision too
COMPARED = 8  # sentences
LONGEST = 32  # tokens of what is written for them


def write_ctranslate2(trained: Trained, described: dict, folder: Path) -> list[Path]:
    """model.bin, config.json and vocabularies, and the tokenisers; there only if they give the model's translations."""
    arguments = exportable(trained)
    assert isinstance(trained, TrainedText)
    if importlib.util.find_spec("ctranslate2") is None:
        raise MiradaError("exporting to CTranslate2 needs ctranslate2: pip install ctranslate2.")
    if folder.exists() and any(folder.iterdir()):
        raise MiradaError(f"{folder}: is not empty; remove it, or give another folder for the exported files.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
            made = Path(scratch) / "model"
            made.mkdir()
            spec = make_spec(trained, arguments)
            spec.validate()
            spec.optimize()
            spec.save(str(made))
            trained.save_tokenisers(made)
            compare_greedily(trained, arguments, made)
            if folder.exists():
                folder.rmdir()
            os.replace(made, folder)
    except OSError as error:
        raise MiradaError(why_unwritable(folder, error)) from error
    return sorted(folder.iterdir())


def exportable(trained: Trained) -> dict[str, Any]:
    """The arguments of a Transformer that is exported; all others are refused."""
    model = read_json(model_folder(trained.folder) / "model.json")
    if model["system"] != "transformer":
        raise MiradaError(
            f"{trained.folder.path}: is of system {model['system']!r}; only 'transformer' is exported to CTranslate2."
        )
    arguments = all_arguments(model["system"], model["size"], **model["arguments"])
    reason = ""
    if arguments["position"] not in ADDED:
        reason = f"position={arguments['position']!r}, expected one of {', '.join(ADDED)}"
    elif arguments["neighbours"] != "full":
        reason = f"neighbours={arguments['neighbours']!r}, expected 'full'"
    elif arguments["norm"] == "post" and arguments["final_norm"]:
        reason = "norm='post' with final_norm=true, expected final_norm=false or norm='pre'"
    if reason:
        raise MiradaError(f"{trained.folder.path}: cannot be exported to CTranslate2 with {reason}; train it so.")
    return arguments


def make_spec(trained: TrainedText, arguments: dict[str, Any]) -> Any:
    """What CTranslate2 calls a specification: its model, filled with our weights."""
    from ctranslate2.specs import TransformerSpec, common_spec

    model: Any = trained.model
    is_pre = arguments["norm"] == "pre"
    spec = TransformerSpec.from_config(
        (len(model.encoder.layers), len(model.decoder.layers)),
        arguments["num_heads"],
        pre_norm=is_pre,
        activation=common_spec.Activation[ACTIVATIONS[arguments["activation"]]],
    )
    length = arguments["max_length"] if arguments["position"] == "learned" else max(SINES, arguments["max_length"])
    for theirs, ours, matrix, tokens, position in (
        (spec.encoder, model.encoder, spec.encoder.embeddings[0], model.tokens.source, model.source_position),
        (spec.decoder, model.decoder, spec.decoder.embeddings, model.tokens.target, model.target_position),
    ):
        matrix.weight = array(tokens.weight)
        theirs.scale_embeddings = float(tokens.scale)
        theirs.position_encodings.encodings = array(position.table(line(length)))
        if is_pre:
            fill_norm(theirs.layer_norm, ours.norm)
        for their_layer, layer in zip(theirs.layer, ours.layers, strict=True):
            fill_layer(their_layer, layer)

    source, target = trained.tokeniser, trained.target_tokeniser
    output, own_bias = model.tokens.own_output or model.tokens.target, model.tokens.bias
    bias = torch.zeros(len(output.weight)) if own_bias is None else own_bias.detach().clone()
    bias[sorted(never_written(target))] = NEVER
    spec.decoder.projection.weight, spec.decoder.projection.bias = array(output.weight), array(bias)

    spec.register_source_vocabulary(names(source, len(model.tokens.source.weight)))
    spec.register_target_vocabulary(names(target, len(output.weight)))
    spec.config.unk_token = target.vocabulary[target.unknown]
    spec.config.bos_token = spec.config.decoder_start_token = target.vocabulary[target.start]
    spec.config.eos_token = target.vocabulary[target.end]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = model.encoder.layers[0].mlp.norm.eps
    return spec


def fill_layer(theirs: Any, ours: Any) -> None:
    fill_attention(theirs.self_attention, ours.attention)
    if hasattr(ours, "cross"):
        fill_attention(theirs.attention, ours.cross)
    fill_norm(theirs.ffn.layer_norm, ours.mlp.norm)
    fill_linear(theirs.ffn.linear_0, ours.mlp.inner.expand)
    fill_linear(theirs.ffn.linear_1, ours.mlp.inner.contract)


def fill_attention(theirs: Any, ours: Any) -> None:
    """Projections of the same tokens are one matrix there."""
    heads = ours.inner.heads
    fill_norm(theirs.layer_norm, ours.norm)
    fill_linear(theirs.linear[-1], heads.to_out)
    if len(theirs.linear) == 2:
        fill_linear(theirs.linear[0], heads.to_q, heads.to_k, heads.to_v)
    else:
        fill_linear(theirs.linear[0], heads.to_q)
        fill_linear(theirs.linear[1], heads.to_k, heads.to_v)


def fill_linear(theirs: Any, *ours: nn.Linear) -> None:
    theirs.weight = array(torch.cat([layer.weight for layer in ours]))
    theirs.bias = array(torch.cat([layer.bias for layer in ours]))


def fill_norm(theirs: Any, ours: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = array(ours.weight), array(ours.bias)


def array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().numpy()


def never_written(target: Tokeniser) -> set[int]:
    """As in `mirada translate`: special tokens, but for the end."""
    return set(target.special.values()) - {target.end}


def names(tokeniser: Tokeniser, size: int) -> list[str]:
    """The vocabulary; a model may have more tokens than its tokeniser."""
    return [*tokeniser.vocabulary, *(f"<unused {number}>" for number in range(len(tokeniser), size))]


def compare_greedily(trained: TrainedText, arguments: dict[str, Any], folder: Path) -> None:
    """Refuse files that do not translate as the model does: random sentences, the likeliest token at every step."""
    import ctranslate2

    source, target, translator = trained.tokeniser, trained.target_tokeniser, trained.translator
    longest = min(LONGEST, arguments["max_length"])
    generator = torch.Generator().manual_seed(0)
    ordinary = source.ordinary
    lengths = [1 + number * (longest - 2) // COMPARED for number in range(COMPARED)]
    asked = [ordinary[torch.randint(len(ordinary), (n,), generator=generator)].tolist() for n in lengths]
    theirs = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32").translate_batch(
        [[source.vocabulary[token] for token in tokens] for tokens in asked],
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=longest,
    )
    ours = greedy(
        translator.model,  # type: ignore[arg-type]
        translator.read(asked),
        start=target.start,
        end=target.end,
        forbidden=never_written(target),
        max_length=longest,
    )
    vocabulary = names(target, len(trained.model.tokens.target.weight))  # type: ignore[union-attr, arg-type]
    found = [result.hypotheses[0] for result in theirs]
    wanted = [[vocabulary[token] for token in hypothesis.tokens] for hypothesis in ours]
    if found != wanted:
        count = sum(one != other for one, other in zip(found, wanted, strict=True))
        raise MiradaError(
            f"{trained.folder.path}: CTranslate2 translates {count} of {COMPARED} sentences otherwise than the model "
            "itself, so it was not written; use --to safetensors."
        )
