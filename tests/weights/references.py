"""Tiny random models of transformers, saved and read back through our loader."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from mirada.systems import create
from mirada.weights import Checkpoint, read_checkpoint
from mirada.weights.registered import layout_for

SHAPE = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}


def shaken(model: nn.Module) -> nn.Module:
    """Every parameter random, so that a tensor in the wrong place shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def saved(model: nn.Module, folder: Path) -> Checkpoint:
    model.save_pretrained(folder)
    return read_checkpoint(folder)


def written(system: str, arguments: dict, folder: Path) -> nn.Module:
    """A model of ours with random weights, saved as transformers names it."""
    ours, layout = shaken(create(system, **arguments)), layout_for(system, "transformers")
    tensors = {name: tensor.contiguous() for name, tensor in layout.to_theirs(ours.state_dict(), arguments).items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    labels = {"id2label": {str(i): f"c{i}" for i in range(arguments.get("num_classes") or 2)}}
    (folder / "config.json").write_text(json.dumps(layout.config(arguments) | labels), "utf-8")
    return ours


def output_and_gradient(model: nn.Module, images_BCHW: Tensor, **context: object) -> tuple[Tensor, Tensor]:
    images = images_BCHW.clone().requires_grad_()
    output = model(images, **context)
    output = getattr(output, "logits", output)
    (gradient,) = torch.autograd.grad(output.square().sum(), images)
    return output, gradient


def assert_same(ours: nn.Module, theirs: nn.Module, images: Tensor, **context: object) -> None:
    found, wanted = output_and_gradient(ours, images), output_and_gradient(theirs, images, **context)
    for a, b in zip(found, wanted, strict=True):
        # Of the largest value: gradients are sums, and how CPUs round them differs more than small values allow.
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-5 * max(1.0, b.detach().abs().max().item())), (a - b).abs().max()
