"""Images or texts for a look into a model, as each model takes them: those that its run held out, or others.

A sample is read once, as pixels or words, and made into the inputs of every model that is asked about it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.report.contents import Contents, read_contents
from mirada.report.held_out import open_held_out
from mirada.verbs.images import named_images, pixels_of
from mirada.verbs.load import Progress, Trained
from mirada.verbs.masks.prepare import prepare_masks
from mirada.verbs.masks.trained import TrainedMasks
from mirada.verbs.text.generate import PreparedStream
from mirada.verbs.text.lines import texts_of
from mirada.verbs.text.prepare import prepare_text
from mirada.verbs.text.trained import TrainedText

Pair = tuple[str, str]
Some = TypeVar("Some")


def image_inputs(
    models: Sequence[Trained], images: object, most: int, progress: Progress | None = None
) -> list[Tensor]:
    """(B, C, H, W) for each model, of the same images: the first one's held-out ones where none are given."""
    height, width = (max(model.data["image_size"][axis] for model in models) for axis in (0, 1))
    if images is None:
        readers = _held_out_pixels(models[0], (height, width), most)
    else:
        in_tiles = any(model.data["fit"] == "tile" for model in models)  # of images as large as they are
        readers = _given_pixels(images, None if in_tiles else (height, width), most)
    found: list[list[np.ndarray]] = [[] for _ in models]
    for number, read in enumerate(readers):
        pixels_HWC = read()
        for model, kept in zip(models, found, strict=True):
            kept.append(model.target.fitted(pixels_HWC).transpose(2, 0, 1))
        if progress is not None:
            progress(number + 1, len(readers))
    return [
        model.normalisation.apply(torch.from_numpy(np.stack(kept))).to(model.device)
        for model, kept in zip(models, found, strict=True)
    ]


def text_inputs(models: Sequence[TrainedText], texts: object, most: int) -> list[list[tuple[Tensor, ...]]]:
    """For each model the tokens of each text, as it is called with them."""
    samples = _held_out_texts(models[0], most) if texts is None else _given_texts(models[0], texts, most)
    return [[_tokens(model, sample) for sample in samples] for model in models]


def spread(found: Sequence[Some], most: int) -> list[Some]:
    """At most so many, evenly from the first to the last: files are often sorted by class."""
    if len(found) <= most:
        return list(found)
    return [found[number] for number in np.linspace(0, len(found) - 1, most).round().astype(int)]


def _held_out_pixels(trained: Trained, size: tuple[int, int], most: int) -> Sequence[Callable[[], np.ndarray]]:
    if isinstance(trained, TrainedMasks):
        prepared = prepare_masks(trained.config.data, saved=trained.data)
        images = prepared.store.images
        chosen = spread(prepared.split.rows(prepared.held_out).tolist(), most)
        return [partial(_pixels_of_row, images, row) for row in chosen]
    contents = _contents(trained)
    rows = spread(contents.predictions, most)
    if not rows:
        raise MiradaError(
            f"{trained.folder.path}: has no predictions of held-out images yet; give images, or finish it."
        )
    read = open_held_out(dataclasses.replace(contents, data=contents.data | {"image_size": list(size)})).pixels
    return [partial(read, row) for row in rows]


def _given_pixels(images: object, size: tuple[int, int] | None, most: int) -> Sequence[Callable[[], np.ndarray]]:
    found = spread(named_images(images), most)
    if not found:
        raise MiradaError("no images are given; give at least one.")
    return [partial(pixels_of, image.content, size) for image in found]


def _pixels_of_row(images_NCHW: Tensor, row: int) -> np.ndarray:
    return images_NCHW[row].permute(1, 2, 0).numpy()


def _contents(trained: Trained) -> Contents:
    """What its run says of its held-out images; a baseline has its own predictions, and the data of its parent."""
    folder = trained.folder.path
    if not trained.folder.config.exists():
        raise MiradaError(f"{folder}: is an exported model, without held-out data; give what to look at.")
    if trained.folder.data.exists():
        return read_contents(folder)
    baseline = read_contents(folder.parent).baseline
    assert baseline is not None, "it was loaded from there"
    return baseline


def _held_out_texts(trained: TrainedText, most: int) -> list[str] | list[Pair]:
    if "split" not in trained.data or not trained.folder.config.exists():
        raise MiradaError(f"{trained.folder.path}: is an exported model, without held-out data; give what to look at.")
    prepared = prepare_text(trained.config.data, trained.config.system, saved=trained.data)
    side = prepared.held_out
    if isinstance(prepared, PreparedStream):
        ready = dataclasses.replace(prepared, known_tokeniser=trained.tokeniser).ready(trained.config)
        windows = ready.tokens(side).split(trained.data["max_length"])
        return [trained.tokeniser.decode(window) for window in spread(windows, most)]
    if trained.does == "translate":
        table = prepared.table
        assert table.references is not None
        pairs = [(table.texts[row], table.references[row][0]) for row in prepared.split.rows(side)]
        return spread(_with_words(pairs, lambda pair: pair[0].strip() and pair[1].strip()), most)
    return spread(_with_words(prepared.texts(side), str.strip), most)


def _given_texts(trained: TrainedText, texts: object, most: int) -> list[str] | list[Pair]:
    given = spread(_with_words(texts_of(texts), str.strip), most)
    if trained.does != "translate":
        return given
    best = trained.translator.translate(given)
    return [(source, ways[0].text) for source, ways in zip(given, best, strict=True)]


def _with_words(found: Iterable[Some], words: Callable[[Some], object]) -> list[Some]:
    kept = [sample for sample in found if words(sample)]
    if not kept:
        raise MiradaError("there are no texts with words in them; give some.")
    return kept


def _tokens(trained: TrainedText, sample: str | Pair) -> tuple[Tensor, ...]:
    """What the model is called with."""
    most, tokeniser = trained.data["max_length"], trained.tokeniser
    if isinstance(sample, tuple):
        if trained.does != "translate":
            raise MiradaError(
                f"{trained.folder.path}: does not translate, so it cannot be compared with a model that does."
            )
        source = [*tokeniser.encode(sample[0].strip())[: most - 1], tokeniser.end]
        target = trained.target_tokeniser
        read = [target.start, *target.encode(sample[1].strip())][:most]
        return torch.tensor(source, device=trained.device), torch.tensor(read, device=trained.device)
    if trained.does == "translate":
        raise MiradaError(f"{trained.folder.path}: translates, so it cannot be compared with a model that does not.")
    tokens = tokeniser.encode(sample if trained.does == "generate" else sample.strip())
    if trained.does != "generate":
        tokens = [tokeniser.start, *tokens[: most - 2], tokeniser.end]
    return (torch.tensor(tokens[:most], device=trained.device),)
