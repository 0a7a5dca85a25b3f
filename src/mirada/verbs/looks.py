"""One input that is looked at again and again: its explanation, then further maps, and weights of any layer and token.

Shape letters: H heads, N queries, M keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.methods import method_named
from mirada.report.explained import Item, Layer, Map
from mirada.tasks.translation import Translation
from mirada.verbs.explain import command_of, options_of
from mirada.verbs.explained.images import explained_image, image_layers, images_of, one_map
from mirada.verbs.explained.texts import explained_text, read_text, require_readable, text_layers
from mirada.verbs.images import NamedImage, read_or_reason
from mirada.verbs.load import Trained
from mirada.verbs.text.trained import TrainedText


@dataclass(frozen=True)
class LookedAt:
    """`given` is what the model was given: the pixels of an image (C, H, W), or the tokens of a text."""

    item: Item
    given: np.ndarray | tuple[Tensor, ...]
    command: str
    notes: list[str]
    target: str | None = None  # as it was asked for
    translation: Translation | None = None


def look_at_image(
    trained: Trained,
    name: str,
    pixels_HWC: np.ndarray,
    *,
    method: Sequence[str] | None = None,
    target: str | None = None,
    faithfulness: bool = True,
    path: str | None = None,
) -> LookedAt:
    """All rows of the weights are there, however many. `path` is the file of the image, for the command."""
    inputs = trained.data.get("inputs", "image")
    if inputs not in ("image", "masks", "pixels"):
        raise MiradaError(f"{trained.folder.path}: this model was trained on {inputs}; give it no images.")
    pixels = read_or_reason(NamedImage(name, pixels_HWC), trained.target)
    if isinstance(pixels, str):
        raise MiradaError(pixels)
    options = options_of(inputs, method, target, faithfulness=faithfulness, whole=True)
    notes: list[str] = []
    item = explained_image(trained, name, pixels, options, notes)
    return LookedAt(item, pixels, command_of(trained, options, path or "INPUT"), notes, target)


def another_map(
    trained: Trained,
    looked: LookedAt,
    method: str,
    *,
    target: str | None = None,
    layer: int | str = -1,
    head: int | None = None,
    at: tuple[int, int] | None = None,
    faithfulness: bool = True,
) -> Map:
    """Of the same image, by one method; of the same class, unless another is asked for."""
    if not isinstance(looked.given, np.ndarray):
        raise MiradaError("maps are of images; read the text again with another method.")
    name = method_named(method).name
    asked = looked.target if target is None else target
    return one_map(trained, looked.given, name, options_of("image", [name], asked, layer, head, at, faithfulness, True))


def read_again(
    trained: Trained,
    text: str,
    *,
    method: Sequence[str] | None = None,
    target: str | None = None,
    at: int | None = None,
) -> LookedAt:
    """A text as itself, never as the name of a file."""
    if not isinstance(trained, TrainedText):
        raise MiradaError(f"{trained.folder.path}: this model was not trained on text; give it images.")
    require_readable(trained)
    options = options_of("text", method, target, at=None if at is None else (at,), faithfulness=False, whole=True)
    notes: list[str] = []
    read = read_text(trained, text, options)
    item = explained_text(trained, text, read, options, notes)
    return LookedAt(item, read.inputs, command_of(trained, options, text), notes, target, read.translation)


def alignment_of(trained: TrainedText, text: str, translation: Translation) -> np.ndarray | None:
    """(N, M) how much each token of the source was looked at when each of the translation was written."""
    try:
        return trained.translator.alignment(text, translation.text).weights_NM.float().cpu().numpy()
    except MiradaError:  # it is empty, or the model has no attention
        return None


def weights_of(trained: Trained, looked: LookedAt, layer: int) -> np.ndarray:
    """(H, N, M) of one layer of the item, computed again."""
    names = [one.name for one in looked.item.layers]
    if isinstance(looked.given, np.ndarray):
        found = image_layers(trained, images_of(trained, looked.given), [names[layer]])
    else:
        assert isinstance(trained, TrainedText)
        found = text_layers(trained, looked.given, [names[layer]])
    return found[names[:layer].count(names[layer])].weights_HNM  # a layer may have run more than once


def num_bytes(looked: LookedAt) -> int:
    """Of the weights, which are by far the most."""
    return sum(layer.weights_HNM.nbytes for layer in looked.item.layers)


def without_weights(looked: LookedAt) -> LookedAt:
    """The shapes of the weights stay; `weights_of` computes them again."""
    return replace(looked, item=replace(looked.item, layers=[_hollow(layer) for layer in looked.item.layers]))


def _hollow(layer: Layer) -> Layer:
    return replace(layer, weights_HNM=np.broadcast_to(np.float32(0), layer.weights_HNM.shape))
