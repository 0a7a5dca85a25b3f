"""What goes around attention: the variance of a normalisation, its place, the length of a patch."""

from __future__ import annotations

import torch
from torch import nn

from mirada.core import Attention, Concatenated
from mirada.errors import MiradaError
from mirada.nn import MLP, EncoderLayer, patches_of, post_norm, pre_norm
from mirada.verbs.learn.demos.demo import Answer, Demo, Input, Number, Text, lines, matrix, same
from mirada.verbs.learn.drawing_weights import draw_weights, generator


def variance(a: float, b: float, c: float) -> Answer:
    x = torch.tensor([a, b, c], dtype=torch.float64)[:, None]
    norm = nn.BatchNorm1d(1, momentum=1.0, dtype=torch.float64)
    normalised = norm(x).detach()
    assert norm.running_var is not None
    literal = (x - x.mean()) / (x.var(correction=1) + norm.eps).sqrt()
    return Answer(
        [
            Number(Text("variance with 1/N", "varianza con 1/N"), x.var(correction=0).item(), "right"),
            Number(Text("variance with 1/(N − 1)", "varianza con 1/(N − 1)"), x.var(correction=1).item(), "wrong"),
            Number(Text("variance of what batch normalisation gives", "varianza de lo que da batch normalization"),
                   normalised.var(correction=0).item(), "right"),
            Number(Text("variance if 1/(N − 1) were used", "varianza si se usara 1/(N − 1)"),
                   literal.var(correction=0).item(), "wrong"),
            Number(Text("variance it remembers for later (with 1/(N − 1))",
                        "varianza que recuerda para después (con 1/(N − 1))"), norm.running_var.item()),
        ],
        [matrix(Text("normalised", "normalizado"), torch.cat([normalised, literal], 1).T,
                ("1/N", "1/(N−1)"), (f"{a:g}", f"{b:g}", f"{c:g}"), 3)],
    )  # fmt: skip


def norm_order(depth: int, dim: int, seed: int) -> Answer:
    x = torch.randn(1, 12, dim, generator=generator(seed, "tokens"))
    spreads, gradients = {}, {}
    for name, wrap in (("pre", pre_norm), ("post", post_norm)):
        layers = nn.ModuleList(
            EncoderLayer(Attention(Concatenated(dim, 2)), MLP(dim, 4 * dim), wrap(lambda: nn.LayerNorm(dim)))
            for _ in range(depth)
        ).eval()
        draw_weights(layers, seed)
        hidden, found = x, [x.std().item()]
        for layer in layers:
            hidden = layer(hidden)
            found.append(hidden.std().item())
        out = nn.functional.layer_norm(hidden, (dim,)) if name == "pre" else hidden
        toward = torch.randn(out.shape, generator=generator(seed, "loss"))
        (out * toward).sum().backward()
        spreads[name] = found
        gradients[name] = [sum(p.grad.square().sum() for p in layer.parameters() if p.grad is not None).sqrt().item()  # type: ignore[union-attr]
                           for layer in layers]  # fmt: skip
    label = {"pre": same("pre-norm"), "post": same("post-norm (2017)")}
    return Answer(
        [
            Number(Text("std after the last layer, pre-norm", "desviación tras la última capa, pre-norm"),
                   spreads["pre"][-1]),
            Number(Text("std after the last layer, post-norm", "desviación tras la última capa, post-norm"),
                   spreads["post"][-1]),
            Number(Text("gradient of the first layer over that of the last, pre-norm",
                        "gradiente de la primera capa sobre el de la última, pre-norm"),
                   gradients["pre"][0] / gradients["pre"][-1]),
            Number(Text("gradient of the first layer over that of the last, post-norm",
                        "gradiente de la primera capa sobre el de la última, post-norm"),
                   gradients["post"][0] / gradients["post"][-1]),
        ],
        [
            lines(Text("std of the tokens after each layer", "desviación de los tokens tras cada capa"),
                  Text("layer", "capa"), range(depth + 1), {label[name]: spreads[name] for name in label}),
            lines(Text("length of each layer's gradient", "longitud del gradiente de cada capa"),
                  Text("layer", "capa"), range(1, depth + 1), {label[name]: gradients[name] for name in label},
                  log_y=True),
        ],
    )  # fmt: skip


def patch_length(height: int, width: int, patch: int, channels: int) -> Answer:
    if height % patch or width % patch:
        raise MiradaError(
            f"{height} × {width} pixels are not whole patches of {patch}: choose sides that {patch} divides"
        )
    patches = patches_of(torch.zeros(1, channels, height, width), patch)
    num_patches, length = patches.shape[1:]
    return Answer(
        [
            Number(Text("patches N = HW/P²", "parches N = HW/P²"), num_patches, "right"),
            Number(Text("length of a patch, P²·C", "longitud de un parche, P²·C"), length, "right"),
            Number(Text("length as given, P·C", "longitud como está, P·C"), patch * channels, "wrong"),
            Number(Text("numbers of the image, H·W·C", "números de la imagen, H·W·C"), height * width * channels),
            Number(Text("numbers in all patches", "números en todos los parches"), patches.numel(), "right"),
            Number(Text("numbers if patches had length P·C", "números si los parches midieran P·C"),
                   num_patches * patch * channels, "wrong"),
        ]
    )  # fmt: skip


DEMOS = (
    Demo(
        "variance",
        ("E37", "D2"),
        Text("Normalise with 1/N", "Normalizar con 1/N"),
        "σ² = 1/(N−1) Σ (x_i − μ)²",
        Text(
            "Batch normalisation divides by the biased variance, 1/N (Ioffe 2015). The factor N/(N − 1) only enters "
            "the running variance that is kept for prediction. And transformers use layer normalisation.",
            "Batch normalization divide por la varianza sesgada, 1/N (Ioffe 2015). El factor N/(N − 1) solo entra en"
            " la varianza acumulada que se guarda para predecir. Y los transformers usan layer normalization.",
        ),
        Text(
            "Only with 1/N does the result have variance one. The smaller the batch, the larger the difference.",
            "Solo con 1/N el resultado tiene varianza uno. Cuanto menor el lote, mayor la diferencia.",
        ),
        tuple(
            Input(name, same(symbol), value, -100, 100, 0.5)
            for name, symbol, value in (("a", "x₁", 1), ("b", "x₂", 2), ("c", "x₃", 4))
        ),
        variance,
    ),
    Demo(
        "norm-order",
        ("E38", "D4", "D5"),
        Text("Norm before or after", "Normalizar antes o después"),
        "h = x + capa(norm(x))",
        Text(
            "This is pre-norm: GPT-2 and ViT. The Transformer of 2017 is post-norm, LayerNorm(x + Sublayer(x)). "
            "Pre-norm needs one more norm at the end.",
            "Esto es pre-norm: GPT-2 y ViT. El Transformer de 2017 es post-norm, LayerNorm(x + Sublayer(x)). "
            "Pre-norm necesita una normalización más al final.",
        ),
        Text(
            "Before any training: with pre-norm the tokens grow from layer to layer, which is why the stack ends "
            "with a norm; with post-norm every layer gives size one.",
            "Antes de entrenar: con pre-norm los tokens crecen de capa en capa, por eso la pila termina con una "
            "normalización; con post-norm cada capa da tamaño uno.",
        ),
        (
            Input("depth", Text("layers", "capas"), 12, 1, 24),
            Input("dim", Text("width", "ancho"), 32, 2, 64, 2),
            Input("seed", Text("seed", "semilla"), 0, 0, 999),
        ),
        norm_order,
    ),
    Demo(
        "patch-length",
        ("E49", "I1", "I2"),
        Text("How long a patch is", "Cuánto mide un parche"),
        "«longitud P×C»",
        Text(
            "P²·C: a patch of 16 × 16 pixels with 3 channels has 768 numbers, not 48.",
            "P²·C: un parche de 16 × 16 píxeles con 3 canales tiene 768 números, no 48.",
        ),
        Text(
            "Only with P²·C do the patches hold as many numbers as the image; with P·C most of it would be lost.",
            "Solo con P²·C los parches contienen tantos números como la imagen; con P·C se perdería casi todo.",
        ),
        (
            Input("height", Text("height H", "alto H"), 224, 1, 512),
            Input("width", Text("width W", "ancho W"), 224, 1, 512),
            Input("patch", Text("patch P", "parche P"), 16, 1, 64),
            Input("channels", Text("channels C", "canales C"), 3, 1, 12),
        ),
        patch_length,
    ),
)
