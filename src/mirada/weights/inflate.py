"""A ViT for images becomes one for volumes, R boxes of T slices deep: E₃[:, t] = E/T, P₃[r] = P, and R class tokens.

A volume whose slices are all alike has the tokens of one slice, each R times: the kernel is spread over the slices of
a box, the positions are repeated. The class token is repeated too, as attention weighs a key by how often it is there;
so every mean of the softmax stays, and with it the output of the image.
"""

from __future__ import annotations

import torch

from mirada.errors import MiradaError
from mirada.nn.patches import as_size
from mirada.systems.registry import all_arguments
from mirada.weights.checkpoint import Checkpoint

FITTING = {"stem": "linear", "position": "learned", "attention": "standard"}
KEPT = ("in_channels", "num_classes", "dim", "depth", "num_heads", "mlp_ratio", "pooling", "layer_scale", "norm_eps")


def inflated(checkpoint: Checkpoint, *, num_slices: int, patch_slices: int) -> Checkpoint:
    """The checkpoint of a `vit_3d` for volumes of `num_slices` such images, in boxes of `patch_slices`."""
    if checkpoint.system != "vit":
        raise MiradaError(f"{checkpoint.start}: holds a {checkpoint.system}; only a vit can be inflated to volumes.")
    before = checkpoint.all_arguments
    for name, fitting in FITTING.items():
        if before[name] != fitting:
            raise MiradaError(
                f"{checkpoint.start}: has {name}={before[name]!r}, which has no like in volumes; expected {fitting!r}."
            )
    size, rows = as_size(before["image_size"]), -(-num_slices // patch_slices)
    arguments = all_arguments(
        "vit_3d",
        **{name: before[name] for name in KEPT},
        volume_size=(num_slices, *size),
        patch_size=before["patch_size"],
        patch_slices=patch_slices,
        class_tokens=rows,
    )
    state = dict(checkpoint.state)
    kernel_DL = state["patches.projection.weight"]
    slice_DC1P = kernel_DL.unflatten(1, (before["in_channels"], 1, -1))
    state["patches.projection.weight"] = (slice_DC1P / patch_slices).expand(-1, -1, patch_slices, -1).flatten(1)
    table_ND = state["position.weight"]
    if before["pooling"] == "class":
        state["extra.weight"] = state["extra.weight"].repeat(rows, 1)
        table_ND = torch.cat([table_ND[:1].repeat(rows, 1), table_ND[1:].repeat(rows, 1)])
    else:
        table_ND = table_ND.repeat(rows, 1)
    state["position.weight"] = table_ND
    return Checkpoint(checkpoint.start, checkpoint.origin, "vit_3d", arguments, state, None, checkpoint.class_names)
