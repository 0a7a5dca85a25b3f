"""Explanations of images, by a model of classes, labels, values, masks or pixels.

Shape letters: B batch, C classes, H and W pixels, R rows and C columns of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mirada.core import attention_layers
from mirada.errors import MiradaError, nearest
from mirada.explain.chance import BASELINE, beside_chance, sigma_of
from mirada.explain.erasing import erased
from mirada.explain.image import ExplainedImages
from mirada.explain.image import explain_images as by_method
from mirada.explain.trace import trace
from mirada.report.explained import ExplainedImage, Layer, Map, Strip
from mirada.report.held_out import displayable
from mirada.tasks.image import probabilities_of
from mirada.verbs.explain import SHOWN, Options, Progress, fitting
from mirada.verbs.images import named_images, read_or_reason
from mirada.verbs.load import Trained

NUM_ANSWERS = 5


def explain_images(
    trained: Trained, images: object, options: Options, progress: Progress | None
) -> tuple[list[ExplainedImage], list[str], list[str]]:
    """One after the other, as weights of all layers are kept; an image that cannot be read does not stop the others."""
    named = named_images(images)
    items: list[ExplainedImage] = []
    failures: list[str] = []
    notes: list[str] = []
    for number, image in enumerate(named):
        pixels = read_or_reason(image, trained.target)
        if isinstance(pixels, str):
            failures.append(pixels)
        else:
            items.append(explained_image(trained, image.name, pixels, options, notes))
        if progress is not None:
            progress(number + 1, len(named))
    return items, failures, list(dict.fromkeys(notes))


def images_of(trained: Trained, pixels_CHW: np.ndarray) -> Tensor:
    """One image as the model takes it."""
    return trained.normalisation.apply(torch.from_numpy(np.stack([pixels_CHW]))).to(trained.device)


def explained_image(
    trained: Trained, name: str, pixels_CHW: np.ndarray, options: Options, notes: list[str]
) -> ExplainedImage:
    images = images_of(trained, pixels_CHW)
    found = []
    for method in _methods(trained, options):
        try:
            found.append(_by_method(trained, images, method, options))
        except MiradaError as error:
            if not options.may_skip:
                raise
            notes.append(f"{method} is left out: {error}")
    if not found:
        raise MiradaError(notes[-1])
    finest = max((one.cells for one in found if one.cells is not None), key=lambda cells: cells.count)
    with torch.inference_mode():
        outputs = trained.model(images).float().cpu()
    item = ExplainedImage(
        name,
        displayable(pixels_CHW.transpose(1, 2, 0)),
        _answers(trained, outputs),
        _asked(trained, found[0].target_B, outputs),
        [_map(trained, images, one, options) for one in found],
        image_layers(trained, images),
        (float(finest.height), float(finest.width)),
    )
    shown = item if options.whole else fitting(item)
    assert isinstance(shown, ExplainedImage)
    return shown


def one_map(trained: Trained, pixels_CHW: np.ndarray, method: str, options: Options) -> Map:
    """By one method, of an image that may have been explained by others."""
    images = images_of(trained, pixels_CHW)
    return _map(trained, images, _by_method(trained, images, method, options), options)


def _by_method(trained: Trained, images: Tensor, method: str, options: Options) -> ExplainedImages:
    target = class_number(trained, options.target)
    if target is None and trained.data["task"] == "regression" and len(trained.data["target_names"]) > 1:
        target = 0  # values have no order among them
    return by_method(
        trained.model, images, method=method, target=target, layer=options.layer, head=options.head, at=options.at
    )


def _methods(trained: Trained, options: Options) -> list[str]:
    """Where nobody chose, what is there for a model without attention, too."""
    if attention_layers(trained.model) or options.methods != SHOWN:
        return list(options.methods)
    return ["integrated_gradients", "occlusion"]


def class_number(trained: Trained, target: str | int | None) -> int | None:
    """By its name, or its number from 0."""
    if target is None:
        return None
    names = [str(name) for name in trained.data.get("class_names", trained.data.get("target_names", ()))]
    if str(target) in names:
        return names.index(str(target))
    if str(target).isdigit() and int(target) < len(names):
        return int(target)
    if not names:
        raise MiradaError(f"target {target!r}: {trained.folder.path} has no classes; leave the target out.")
    raise MiradaError(
        f"target {target!r}{nearest(str(target), names)}: is no class of {trained.folder.path}; there are "
        f"{', '.join(names[:20])}{' …' if len(names) > 20 else ''}."
    )


def _map(trained: Trained, images: Tensor, explained: ExplainedImages, options: Options) -> Map:
    probabilities = probabilities_of(trained.task)
    strip = None
    if options.faithfulness and probabilities is not None and explained.target_B is not None:
        strip = _strip(trained, images, explained, probabilities)
    method = explained.method
    relevance_RC = explained.relevance_BRC[0].cpu().numpy()
    return Map(method.name, method.title, method.is_not, relevance_RC, method.cost, strip)


def _strip(trained: Trained, images: Tensor, explained: ExplainedImages, probabilities: Any) -> Strip:
    def predict(shown_BCHW: Tensor) -> Tensor:
        with torch.inference_mode():
            return probabilities(trained.model(shown_BCHW).float())

    found = beside_chance(predict, images, explained)
    curves = {field.name: getattr(found, field.name) for field in fields(found)}
    numbers: dict[str, Any] = {name: curve.scores_BS[0].numpy() for name, curve in curves.items()}
    numbers |= {f"{name}_auc": float(curve.area_B[0]) for name, curve in curves.items()}
    return Strip(
        fractions=found.deletion.shares_S.numpy(),
        baseline=BASELINE,
        baseline_HWC=_blurred_picture(trained, images),
        **numbers,
    )


def _blurred_picture(trained: Trained, images: Tensor) -> np.ndarray:
    """What stands in the place of patches that are taken away, as a picture."""
    blank = trained.normalisation.undo(erased(images, BASELINE, sigma=(sigma_of(images),) * 2))
    return displayable((255 * blank[0]).round().byte().cpu().numpy().transpose(1, 2, 0))


def _answers(trained: Trained, outputs: Tensor) -> list[tuple[str, float]]:
    """The likeliest classes with their shares; none where the model gives values or masks."""
    probabilities = probabilities_of(trained.task)
    if probabilities is None:
        return []
    share_C = probabilities(outputs)[0]
    names = trained.data["class_names"]
    return [(str(names[number]), float(share_C[number])) for number in share_C.argsort(descending=True)[:NUM_ANSWERS]]


def _asked(trained: Trained, target_B: Tensor | None, outputs: Tensor) -> str:
    """What the maps explain, in words."""
    if trained.data["task"] == "pixels":
        return "how likely the image is"
    names = trained.data.get("class_names", trained.data.get("target_names", ("value",)))
    number = 0 if target_B is None else int(target_B[0])
    if trained.data["task"] == "regression":
        value = trained.task.answers(outputs)[0]
        return f"{names[number]} = {list(value.values())[number]}"
    return str(names[number])


def image_layers(trained: Trained, images: Tensor, names: Sequence[str] | None = None) -> list[Layer]:
    """In the order in which they ran; all, or those of these names."""
    if not attention_layers(trained.model):
        return []
    return [
        Layer(
            look.name,
            look.weights_BHNM[0].float().cpu().numpy(),
            (look.queries.size, look.queries.num_extra),
            (look.keys.size, look.keys.num_extra),
            look.kind,
        )
        for look in trace(trained.model, images, layers=names).looks
    ]
