"""Explanations with made-up numbers, of sizes that tell rows from columns."""

import numpy as np

from mirada.report.explained_items import ExplainedImage, ExplainedText, Layer, Map, Strip, TokenMap

NASTY = "<script>alert('x')</script>"
ENGLISH = "the old dog of my neighbour does not bite".split()
SPANISH = "el perro viejo de mi vecino no muerde .".split()


def weights(num_heads: int, num_queries: int, num_keys: int, seed: int = 0, *, is_causal: bool = False) -> np.ndarray:
    """Rows that sum to 1; heads differ in how sharply they look."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(num_heads, num_queries, num_keys)) * np.linspace(0.5, 4, num_heads)[:, None, None]
    if is_causal:
        logits = np.where(np.tri(num_queries, num_keys), logits, -np.inf)
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    return (exponents / exponents.sum(-1, keepdims=True)).astype(np.float32)


def strip(seed: int = 0, *, is_good: bool = True, picture: np.ndarray | None = None) -> Strip:
    fractions = np.linspace(0, 1, 11, dtype=np.float32)
    falls = 0.9 * np.exp((-9 if is_good else -1.5) * fractions) + 0.02 * np.random.default_rng(seed).random(11)
    random = 0.9 * (1 - fractions**2)
    curves = {
        "deletion": falls,
        "insertion": 0.92 - falls,
        "random_deletion": random,
        "random_insertion": random[::-1],
    }
    areas = {f"{name}_auc": float(np.trapezoid(curve, fractions)) for name, curve in curves.items()}
    return Strip(fractions, **curves, **areas, baseline="blur", baseline_HWC=picture)


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """A bright blob on a gradient."""
    y, x = np.mgrid[:height, :width] / (height, width)[0]
    blob = np.exp(-((y - 0.4) ** 2 + (x - 0.6) ** 2) / 0.03)[..., None]
    colours = blob * (230, 160, 40) + (1 - blob) * np.stack([60 + 80 * y, 90 + 60 * x, 120 + 40 * y], -1)
    return np.clip(colours + np.random.default_rng(seed).normal(0, 6, colours.shape), 0, 255).astype(np.uint8)


def image(name: str = "bird.png", *, depth: int = 3, num_heads: int = 5, seed: int = 0) -> ExplainedImage:
    """A picture of 26 × 33 px under a grid of 7 × 11 patches of 4 × 3 px, after a class token; the last is coarser."""
    rows, columns = 7, 11
    shown, generator = picture(26, 33), np.random.default_rng(seed)
    fine, coarse = ((rows, columns), 1), ((4, 6), 1)
    layers = [Layer(f"blocks.{n}", weights(num_heads, 78, 78, seed + n), fine, fine) for n in range(depth - 1)]
    layers.append(Layer("blocks.last", weights(num_heads, 78, 25, seed + depth), fine, coarse))
    chefer, signed = generator.random((rows, columns)), generator.normal(size=(rows, columns))
    maps = [
        Map("chefer", "Chefer", "It is not a proof of cause.", chefer, "2.1 × a forward", strip(picture=255 - shown)),
        Map("ig", "Integrated gradients", "It is not free of its baseline.", signed, "40 ×", strip(is_good=False)),
        Map("gradcam", "Grad-CAM", "It is not sharp.", generator.random((4, 6)), "1 ×"),
    ]
    return ExplainedImage(name, shown, [("toucan", 0.83), (NASTY, 0.12), ("owl", 0.05)], "toucan", maps, layers, (4, 3))


def text(name: str = "review", tokens: list[str] | None = None, *, num_heads: int = 3, depth: int = 2) -> ExplainedText:
    tokens = tokens or ["[CLS]", *ENGLISH, NASTY, " ", "[SEP]"]
    num, generator = len(tokens), np.random.default_rng(1)
    line = ((num,), 0)
    layers = [Layer(f"encoder.{n}", weights(num_heads, num, num, n), line, line) for n in range(depth)]
    maps = [
        TokenMap("chefer", "Chefer", "It is not a proof of cause.", generator.random(num), "2 ×", strip()),
        TokenMap("ig", "Integrated gradients", "It is not free of its baseline.", generator.normal(size=num)),
    ]
    return ExplainedText(name, tokens, None, [("negative", 0.7), ("positive", 0.3)], "negative", maps, layers)


def translation(name: str = "sentence 1") -> ExplainedText:
    source, target = ((len(SPANISH),), 0), ((len(ENGLISH),), 0)
    sizes = len(ENGLISH), len(SPANISH)
    layers = [
        Layer("encoder.0", weights(3, sizes[1], sizes[1], 1), source, source),
        Layer("decoder.0.self", weights(3, sizes[0], sizes[0], 2, is_causal=True), target, target, "target"),
        Layer("decoder.0.cross", weights(3, *sizes, 3), target, source, "cross"),
    ]
    generator = np.random.default_rng(2)
    of_target = generator.random(sizes[0])
    maps = [
        TokenMap("rollout", "Rollout", "It knows no class.", generator.random(sizes[1]), "1 ×", None, of_target),
    ]
    return ExplainedText(name, ENGLISH, SPANISH, [("bite", 0.61), ("bark", 0.2)], "bite", maps, layers)
