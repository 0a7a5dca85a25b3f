"""What every layer of a model knows of an input: f_l(x) = the mean over tokens, or pixels, of its output.

Shape letters: n inputs, B batch, N tokens, D channels, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import get_ident

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.nn import DecoderLayer, EncoderLayer
from mirada.systems.cnn import CNN, Residual
from mirada.systems.convmixer import ConvMixer
from mirada.systems.mvit import MultiscaleLayer
from mirada.systems.resnet import Block
from mirada.systems.t2t_vit import TokenLayer
from mirada.systems.vit_hybrid import Bottleneck

LAYERS = (EncoderLayer, DecoderLayer, MultiscaleLayer, TokenLayer, Residual, Block, Bottleneck)


def layers_of(model: nn.Module) -> dict[str, nn.Module]:
    """By name, in order: layers of attention and MLP, and residual units, blocks or stages of convolutions."""
    for kind, part in ((CNN, "stages"), (ConvMixer, "blocks")):
        if isinstance(model, kind):
            return {f"{part}.{name}": module for name, module in model.get_submodule(part).named_children()}
    return {name: module for name, module in model.named_modules() if isinstance(module, LAYERS)}


@torch.inference_mode()
def features_of(model: nn.Module, runs: Iterable[tuple[Tensor, ...]]) -> dict[str, Tensor]:
    """(n, D) by name of layer; every run is what the model is called with once."""
    layers = layers_of(model)
    if not layers:
        raise MiradaError(f"{type(model).__name__} is not made of layers whose outputs could be compared")
    found: dict[str, list[Tensor]] = {name: [] for name in layers}
    hooks = [layer.register_forward_hook(_keeper(found[name])) for name, layer in layers.items()]
    was_training = model.training
    model.eval()
    try:
        for run in runs:
            model(*run)
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    return {name: torch.cat(pieces) for name, pieces in found.items() if pieces}


def _keeper(kept: list[Tensor]) -> Callable[[nn.Module, object, object], None]:
    me = get_ident()

    def keep(layer: nn.Module, given: object, output: object) -> None:
        if get_ident() != me:  # others may run the same model meanwhile
            return
        x = output[0] if isinstance(output, tuple) else output  # some say on which grid their tokens lie
        assert isinstance(x, Tensor)
        kept.append((x.mean((-2, -1)) if x.ndim == 4 else x.mean(1)).float().cpu())

    return keep
