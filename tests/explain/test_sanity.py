"""Rank correlation against scipy; what is shuffled, in which order, and that the model given stays as it was."""

import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

from mirada import systems
from mirada.errors import MiradaError
from mirada.explain.sanity import cascading_sanity, rank_correlation, sanity, stages

IMAGES = torch.linspace(-1, 1, 5 * 3 * 12 * 8).view(5, 3, 12, 8).sin()


def tiny_vit() -> nn.Module:
    arguments = {"image_size": (12, 8), "in_channels": 3, "num_classes": 7, **systems.card("vit").tiny}
    return systems.create("vit", **arguments).eval()


def saliency(model: nn.Module) -> Tensor:
    """|∂y/∂x| of the first class, which depends on all weights but the head's others."""
    images = IMAGES.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(images)[:, 0].sum(), images)
    return gradient.abs().sum(1)


@pytest.mark.parametrize("levels", [None, 3])
def test_rank_correlation_is_that_of_scipy(levels):
    one, other = torch.randn(5, 3, 7), torch.randn(5, 3, 7)
    if levels is not None:
        one = (one * levels).round()
    found = rank_correlation(one, other + one)
    for number in range(5):
        expected = spearmanr(one[number].flatten(), (other + one)[number].flatten()).statistic
        assert found[number].item() == pytest.approx(expected, abs=1e-6)


def test_a_constant_map_correlates_with_nothing():
    assert rank_correlation(torch.ones(2, 3, 5), torch.randn(2, 3, 5)).tolist() == [0, 0]
    torch.testing.assert_close(rank_correlation(IMAGES, -IMAGES.exp()), -torch.ones(5))


def test_the_parts_of_a_vision_transformer_from_the_head():
    names = [name for name, _ in stages(tiny_vit())]
    layers = [name for name in names if "layers" in name]
    assert names[0] == "head"
    assert len(layers) == 2
    assert layers == sorted(layers, reverse=True)
    assert names[-1] == "patches"


def test_every_parameter_is_in_one_stage():
    class WithToken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.randn(3))
            self.blocks = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 7))

    found = stages(WithToken())
    assert [name for name, _ in found] == ["blocks.2", "blocks.0", "other parameters"]
    counts = sum(parameter.numel() for _, parameters in found for parameter in parameters)
    assert counts == 3 + 20 + 42


def test_the_model_stays_as_it_was_and_the_map_changes():
    model = tiny_vit()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = sanity(saliency, model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert found.stages == ("all",)
    assert found.correlation_SB.shape == (1, 5)
    assert found.final_B.abs().max() < 0.9


def test_shuffling_keeps_the_values():
    seen: list[dict[str, Tensor]] = []

    def look(model: nn.Module) -> Tensor:
        seen.append({name: parameter.detach().clone() for name, parameter in model.named_parameters()})
        return torch.randn(2, 3)

    sanity(look, tiny_vit())
    before, after = seen
    assert not torch.equal(before["head.weight"], after["head.weight"])
    for name, values in before.items():
        assert torch.equal(values.flatten().sort().values, after[name].flatten().sort().values)


def test_a_cascade_ends_where_all_at_once_does():
    model = tiny_vit()
    found = cascading_sanity(saliency, model)
    assert found.stages == tuple(name for name, _ in stages(model))
    assert torch.equal(found.final_B, sanity(saliency, model).final_B)
    # The head is first, and the map is of its gradient: it changes from the first stage on.
    assert found.correlation_SB[0].max() < 1


def test_a_map_that_ignores_the_weights_is_found_out():
    assert sanity(lambda model: IMAGES.abs(), tiny_vit()).final_B.tolist() == pytest.approx([1] * 5)


def test_another_seed_is_another_shuffle():
    model = tiny_vit()
    one, again, other = (sanity(saliency, model, seed=seed).final_B for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_bad_input_is_named():
    with pytest.raises(MiradaError, match="Identity has no parameters"):
        sanity(lambda model: IMAGES, nn.Identity())
    with pytest.raises(MiradaError, match=r"\(5, 3\) and \(5, 2\) cannot be compared"):
        rank_correlation(torch.ones(5, 3), torch.ones(5, 2))
