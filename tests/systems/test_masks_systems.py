"""U-Net and TransUNet: the published size, any size of image, skips, and the transformer that is a ViT's."""

from __future__ import annotations

import pytest
import torch

from mirada.core import record
from mirada.errors import MiradaError
from mirada.systems import cards, create
from mirada.systems.outline import outline

SIZE = (37, 53)
SYSTEMS = [name for name, card in cards().items() if card.inputs == "masks"]


def tiny(name: str, **arguments) -> torch.nn.Module:
    torch.manual_seed(7)
    given = {"image_size": SIZE, "in_channels": 2, "num_classes": 5, **cards()[name].tiny}
    return create(name, **{**given, **arguments}).eval()


def images(size=SIZE, channels: int = 2, batch: int = 3) -> torch.Tensor:
    return torch.randn(batch, channels, *size, generator=torch.Generator().manual_seed(11))


def test_the_published_size():
    model = outline("transunet", "R50+B/16", image_size=224, in_channels=3, num_classes=9)
    assert sum(p.numel() for p in model.parameters()) == 105_277_081


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("size", [(16, 16), (7, 19), (61, 5)])
@pytest.mark.parametrize("channels", [1, 13])
def test_any_size_and_any_channels(name, size, channels):
    model = tiny(name, in_channels=channels)
    for given in (size, (size[1], size[0])):
        assert model(images(given, channels)).shape == (3, 5, *given)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_parameter_learns(name):
    model = tiny(name).train()
    targets = torch.randint(0, 5, (3, *SIZE), generator=torch.Generator().manual_seed(2))
    torch.nn.functional.cross_entropy(model(images()), targets).backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), key
        assert parameter.grad.any() or key.endswith("to_k.bias"), key


@pytest.mark.parametrize("name", SYSTEMS)
def test_eight_masks_are_overfitted(name):
    """Of noise, so that nothing but the images themselves can be learned; blocks that a stride of 16 does not blur."""
    model = tiny(name).train()
    given = images((32, 48), batch=8)
    blocks = torch.randint(0, 5, (8, 4, 6), generator=torch.Generator().manual_seed(4))
    targets = blocks.repeat_interleave(8, 1).repeat_interleave(8, 2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(300):
        loss = torch.nn.functional.cross_entropy(model(given), targets)
        if loss < 0.3:
            return
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    raise AssertionError(f"after 300 steps on eight images the loss is {loss:.3f}")


@pytest.mark.parametrize("name", SYSTEMS)
def test_images_of_a_batch_do_not_see_each_other(name):
    model, given = tiny(name), images()
    torch.testing.assert_close(model(given[1:2]), model(given)[1:2], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "most"), [("unet", 2), ("transunet", 3)])
def test_skips_can_be_closed(name, most):
    sizes = [sum(p.numel() for p in tiny(name, num_skips=n).parameters()) for n in range(most + 1)]
    assert sizes == sorted(sizes) and len(set(sizes)) == most + 1
    assert tiny(name, num_skips=0)(images()).shape == (3, 5, *SIZE)
    with pytest.raises(MiradaError, match="num_skips=7"):
        tiny(name, num_skips=7)


def test_without_skips_only_the_coarsest_map_is_seen():
    """A change that the transformer's input does not show cannot change the answer."""
    model, given = tiny("transunet", num_skips=0), images()
    coarsest = model.backbone.maps(given)[-1]
    model.backbone.maps = lambda _: [None, None, None, coarsest]
    assert model(given).shape == (3, 5, *SIZE)


def test_the_transformer_is_that_of_a_vit():
    model, grid = tiny("transunet"), (3, 4)
    vit = create("vit", image_size=grid, in_channels=32, num_classes=5, dim=24, depth=2, num_heads=2, mlp_ratio=2.0,
                 patch_size=1, pooling="mean", stem="linear").eval()  # fmt: skip
    parts = {
        key: value
        for key, value in model.state_dict().items()
        if key.split(".")[0] in ("patches", "position", "encoder")
    }
    missing, unexpected = vit.load_state_dict(parts, strict=False)
    assert not unexpected and set(missing) == {"head.weight", "head.bias"}
    map_BCHW = images(grid, 32)
    torch.testing.assert_close(model.look(map_BCHW).flatten(2).mean(-1), vit.features(map_BCHW))


def test_attention_can_be_recorded_without_changing_the_answer():
    model, given = tiny("transunet"), images()
    plain = model(given)
    with record(model) as maps:
        recorded = model(given)
    torch.testing.assert_close(recorded, plain, atol=1e-5, rtol=1e-4)
    places = model.grid(given)[0] * model.grid(given)[1]
    assert len(maps) == 2 and maps[0].shape == (3, 2, places, places)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_unet_sees_no_further_than_it_says(depth):
    model = tiny("unet", depth=depth).double()
    size = 2 * model.reach + 2 * model.stride
    given = images((size, size), batch=1).double().requires_grad_()
    middle = size // 2
    model(given)[0, :, middle, middle].sum().backward()
    rows = given.grad[0].abs().sum((0, 2)).nonzero().flatten()
    assert middle - rows.min() <= model.reach and rows.max() - middle <= model.reach
    assert rows.max() - rows.min() > model.reach, "and nearly as far"
