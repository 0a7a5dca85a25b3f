"""The methods by name: what each is, what it is not, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mirada.errors import MiradaError, nearest
from mirada.explain.chefer import chefer
from mirada.explain.gradient_attention import gradient_attention
from mirada.explain.gradient_rollout import gradient_rollout
from mirada.explain.rollout import rollout
from mirada.explain.walk import Relevance


@dataclass(frozen=True)
class Method:
    """`follow` works on looks alone, and so on any model that has them; without one, the model itself is asked."""

    name: str
    title: str
    is_not: str
    cost: str  # in plain forward passes, as it is by construction
    needs_gradient: bool
    follow: Callable[..., Relevance] | None = None

    @property
    def knows_target(self) -> bool:
        """Whether the map is that of a class, and not one for all of them."""
        return self.name not in ("attention", "rollout")


METHODS = {
    method.name: method
    for method in (
        Method(
            "attention",
            "Attention of one layer",
            "It shows where one layer looks, not what the answer depends on.",
            "1 forward",
            needs_gradient=False,
        ),
        Method(
            "rollout",
            "Attention rollout",
            "It is the same for every class: it follows the looks, not the answer.",
            "1 forward",
            needs_gradient=False,
            follow=rollout,
        ),
        Method(
            "gradient_rollout",
            "Gradient rollout",
            "It shows what speaks for the class through attention; what speaks against it is left out.",
            "1 forward, 1 backward",
            needs_gradient=True,
            follow=gradient_rollout,
        ),
        Method(
            "chefer",
            "Chefer relevance",
            "It shows what speaks for the class through attention; its numbers have no unit.",
            "1 forward, 1 backward",
            needs_gradient=True,
            follow=chefer,
        ),
        Method(
            "gradient_attention",
            "Gradient times attention",
            "It adds up layers without following tokens from one to the next.",
            "1 forward, 1 backward",
            needs_gradient=True,
            follow=gradient_attention,
        ),
        Method(
            "legrad",
            "LeGrad",
            "It asks each layer alone, as if no layer came after it.",
            "1 forward, about 1 backward",
            needs_gradient=True,
        ),
        Method(
            "grad_cam",
            "Grad-CAM on tokens",
            "It sees the last tokens only, which have seen much of the image by then.",
            "2 forwards, 1 backward",
            needs_gradient=True,
        ),
        Method(
            "layer_cam",
            "LayerCAM on tokens",
            "It sees the last tokens only, which have seen much of the image by then.",
            "2 forwards, 1 backward",
            needs_gradient=True,
        ),
        Method(
            "integrated_gradients",
            "Integrated gradients",
            "It compares with a grey image that the model has never seen.",
            "16 forwards and backwards",
            needs_gradient=True,
        ),
        Method(
            "occlusion",
            "Occlusion",
            "It covers one cell at a time: what two cells show alike, neither is missed.",
            "1 forward for each cell",
            needs_gradient=False,
        ),
    )
}
DEFAULT = "chefer"


def method_named(name: str) -> Method:
    if name not in METHODS:
        raise MiradaError(f"no method is called {name!r}{nearest(name, METHODS)}: there are {', '.join(METHODS)}")
    return METHODS[name]
