"""Every registered system with attention explains itself: by each method a finite map of its input, or a reason.

A new system gets this by being registered; one of a new kind of input fails here until it has a way to be explained.
"""

import pytest
import torch
from torch import Tensor, nn

from mirada.core import Edges
from mirada.errors import MiradaError
from mirada.explain.chips import explain_chips
from mirada.explain.graph import explain_node
from mirada.explain.image import explain_images
from mirada.explain.methods import METHODS
from mirada.explain.text import explain_pairs, explain_tokens
from mirada.systems import card, cards, create
from tests.systems.common_checks import images, maker
from tests.systems.common_plot_checks import BANDS, layers, plot_maker
from tests.systems.common_text_checks import kinds, padded, pair, pair_maker

SYSTEMS = [name for name, card in cards().items() if card.parts]
# What each kind of input must have at least; what else is refused says why.
MUST = {
    "image": {"attention", "rollout", "gradient_rollout", "chefer", "gradient_attention", "occlusion"},
    "masks": {"attention", "rollout", "gradient_rollout", "chefer", "gradient_attention", "occlusion"},
    "pixels": {"attention", "rollout", "gradient_rollout", "chefer", "gradient_attention", "occlusion"},
    "volume": {"attention", "rollout", "gradient_rollout", "chefer", "gradient_attention"},
    "text": set(METHODS),
    "pairs": {"attention", "integrated_gradients", "occlusion"},
    "graph": {"attention", "rollout", "gradient_attention", "integrated_gradients"},
    "plots": {"integrated_gradients", "occlusion"},
}


def check_map(method: str, relevance: Tensor, size: tuple[int, ...]) -> None:
    assert relevance.shape == size, f"{method} gives {tuple(relevance.shape)}"
    assert relevance.isfinite().all() and relevance.any(), f"{method} gives no numbers"
    if method in ("attention", "rollout"):
        assert (relevance.flatten(1).sum(1) <= 1 + 1e-4).all() or method == "attention"


def by_image(name: str, method: str) -> None:
    x, target = images(), None if card(name).inputs == "pixels" else torch.tensor([1, 4, 0])
    if target is None:
        torch.manual_seed(7)
        model = create(name, image_size=(5, 7), in_channels=3, **card(name).tiny).eval()
        x = torch.rand(3, 3, 5, 7)
        model.give_palette(torch.rand(model.palette_TC.shape))
        nn.init.normal_(model.to_colour.weight)  # which starts at zero, so that nothing is relevant
    else:
        model = maker(card(name))().eval()
    plain = model(x)
    found = explain_images(model, x, method=method, target=target)
    assert torch.equal(model(x), plain), "explaining changed the model"
    assert found.cells is not None
    check_map(method, found.relevance_BRC, (len(x), found.cells.rows, found.cells.columns))
    assert found.pixels_BHW.shape == (len(x), *x.shape[-2:])
    alone = explain_images(model, x[1:2], method=method, target=None if target is None else 4)
    torch.testing.assert_close(alone.relevance_BRC[0], found.relevance_BRC[1], rtol=1e-3, atol=1e-6)


def by_volume(name: str, method: str) -> None:
    torch.manual_seed(7)
    given = {"volume_size": (5, 7, 11), "in_channels": 2, "num_classes": 3}
    model = create(name, **{**given, **card(name).tiny}).eval()
    found = explain_images(model, torch.randn(2, 2, 5, 7, 11), method=method)
    check_map(method, found.relevance_BRC, (2, *model.grid(torch.empty(2, 2, 5, 7, 11))))


def by_text(name: str, method: str) -> None:
    token_BN = padded((5, 11, 2))
    for model in kinds(pair_maker(card(name))):
        model.eval()
        found = explain_tokens(model, token_BN, method=method, at=1 if model.head is None else None, cover=3)
        check_map(method, found.relevance_BN, (3, 11))
        assert not found.relevance_BN[token_BN == model.pad].any(), "padding is relevant"
        if isinstance(found.at_B, Tensor) and name == "gpt":  # nobody sees what comes later
            later_BN = torch.arange(11) > found.at_B[:, None]
            assert method in ("gradient_attention", "grad_cam", "legrad") or not found.relevance_BN[later_BN].any()


def by_pair(name: str, method: str) -> None:
    source, read = pair()
    model = pair_maker(card(name))().eval()
    found = explain_pairs(model, source, read, method=method, at=2, cover=3)
    check_map(method, found.relevance_BN, tuple(source.shape))
    assert not found.relevance_BN[source == model.pad].any(), "padding is relevant"


def by_graph(name: str, method: str) -> None:
    torch.manual_seed(7)
    edges = Edges(torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3], [0, 1, 2, 3, 4, 1, 2, 3, 0]]), 5, 5)
    model = create(name, in_channels=7, num_classes=3, **card(name).tiny).eval()
    found = explain_node(model, torch.randn(5, 7), edges, 1, method=method)
    check_map(method, found.relevance_N[None], (1, 5))
    assert not found.relevance_N[4], "a node that nobody is linked with is relevant"


def by_plots(name: str, method: str) -> None:
    model, x = plot_maker(card(name))().eval(), layers()
    check_map(method, explain_chips(model, x, BANDS, method=method).relevance_BHW, (len(x), *x.shape[-2:]))


EXPLAINS = {
    "image": by_image,
    "masks": by_image,
    "pixels": by_image,
    "volume": by_volume,
    "text": by_text,
    "pairs": by_pair,
    "graph": by_graph,
    "plots": by_plots,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_explains(name, method):
    kind = card(name).inputs
    refusal = None
    try:
        EXPLAINS[kind](name, method)
    except MiradaError as error:
        refusal = str(error)
    if refusal is not None:
        assert method not in MUST[kind], refusal
        assert "use" in refusal, f"the refusal does not say what to do: {refusal}"


def test_there_are_systems_of_every_kind():
    assert {card(name).inputs for name in SYSTEMS} == set(MUST) == set(EXPLAINS)


def test_a_model_in_training_is_refused():
    with pytest.raises(MiradaError, match=r"call model\.eval"):
        explain_images(maker(card("vit"))().train(), images())


def test_another_class_has_another_map():
    model: nn.Module = maker(card("vit"))().eval()
    one, other = (explain_images(model, images(), method="chefer", target=number) for number in (0, 3))
    assert not torch.allclose(one.relevance_BRC, other.relevance_BRC)
    assert one.target_B is not None and one.target_B.tolist() == [0, 0, 0]


@pytest.mark.parametrize("target", [5, -1, 0.5])
def test_a_class_that_is_not_there_is_refused(target):
    with pytest.raises(MiradaError, match="must be classes from 0 to 4"):
        explain_images(maker(card("vit"))().eval(), images(), target=target)
