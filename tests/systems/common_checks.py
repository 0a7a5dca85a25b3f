"""What every image system must do, whatever it is made of. A new system gets these by being registered.

Each check takes `make`, which builds the system at the tiny size of its card: make(num_classes=7). What a system cannot
do by its nature stands on its card, under the name of the check, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from mirada.core import Attend, Neighbours, Places, attention_layers, line, record
from mirada.systems import create
from mirada.systems.registry import Card

SIZE, OTHER_SIZE = (13, 17), (23, 11)  # no side is a multiple of a patch
BATCH, CHANNELS, CLASSES = 3, 2, 5

Make = Callable[..., nn.Module]


def maker(card: Card, **variant: object) -> Make:
    """`variant` are further arguments, for checks of one system with other parts."""

    def make(**arguments: object) -> nn.Module:
        torch.manual_seed(7)
        given = {"image_size": SIZE, "in_channels": CHANNELS, "num_classes": CLASSES}
        return create(card.name, **{**given, **card.tiny, **variant, **arguments})

    return make


def images(size: tuple[int, int] = SIZE, channels: int = CHANNELS, batch: int = BATCH) -> Tensor:
    return torch.randn(batch, channels, *size, generator=torch.Generator().manual_seed(11))


def learns_with_every_parameter(make: Make) -> None:
    """After one step, as a part that starts as the identity (a zero γ) hides what is inside it from the first."""
    model = make().train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    labels = torch.arange(BATCH) % CLASSES
    for _ in range(2):
        optimiser.zero_grad()
        F.cross_entropy(model(images()), labels).backward()
        optimiser.step()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert parameter.grad.isfinite().all(), f"{name} has a gradient that is not finite"
        # A bias of all keys shifts every logit of a row alike, which the softmax cancels.
        assert parameter.grad.any() or name.endswith("to_k.bias"), f"{name} has a zero gradient"


def accepts_any_channels(make: Make) -> None:
    for channels in (1, 3, 13):
        logits = make(in_channels=channels).eval()(images(channels=channels))
        assert logits.shape == (BATCH, CLASSES) and logits.isfinite().all()


def accepts_any_class_count(make: Make) -> None:
    for num_classes in (1, 2, 101):
        assert make(num_classes=num_classes).eval()(images()).shape == (BATCH, num_classes)


def accepts_any_image_size(make: Make) -> None:
    for size in ((8, 8), (7, 19), (29, 5)):
        logits = make(image_size=size).eval()(images(size))
        assert logits.shape == (BATCH, CLASSES) and logits.isfinite().all()


def accepts_another_size_at_inference(make: Make) -> None:
    model = make().eval()
    logits = model(images(OTHER_SIZE))
    assert logits.shape == (BATCH, CLASSES) and logits.isfinite().all()
    assert torch.equal(model(images()), make().eval()(images())), "another size left something behind"


def saves_and_loads(make: Make) -> None:
    model = make().train()
    model(images())  # running statistics are state too
    other = make()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_file(model.state_dict(), path)
        other.load_state_dict(load_file(path))
    assert torch.equal(other.eval()(images()), model.eval()(images()))


def is_deterministic_in_eval(make: Make) -> None:
    model = make().eval()
    logits = model(images())
    assert torch.equal(model(images()), logits)
    alone = torch.cat([model(image[None]) for image in images()])
    torch.testing.assert_close(alone, logits, msg="an image's logits depend on the others in its batch")


def overfits_eight_samples(make: Make) -> None:
    model = make().train()
    x, labels = images(batch=8), torch.arange(8) % CLASSES
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(300):
        loss = F.cross_entropy(model(x), labels)
        if loss < 0.05:
            return
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # as by default in training: without it, luck decides
        optimiser.step()
    raise AssertionError(f"after 300 steps on eight images the loss is {loss:.3f}")


def recording(make: Make) -> None:
    """Rows sum to one, are zero outside the neighbourhood, and the output is the same to the bit.

    Maps fit the grid: all of them, or the last one where a system has stages with grids of their own.
    """
    model = make().eval()
    assert attention_layers(model), "there is no attention to record"
    for size in (SIZE, OTHER_SIZE):
        x = images(size)
        plain = model(x)
        with asked_of(model) as asked, record(model) as maps:
            assert torch.equal(model(x), plain), "recording changed the output"
        for name in maps:
            weights_BHNM, (queries, keys, neighbours) = maps[name], asked[name]
            assert weights_BHNM.shape[0] == BATCH and weights_BHNM.shape[2:] == (len(queries), len(keys))
            torch.testing.assert_close(weights_BHNM.sum(-1), torch.ones(weights_BHNM.shape[:-1]))
            allowed_NM = neighbours.allowed(queries, keys)
            assert not weights_BHNM[..., ~allowed_NM].any(), f"{name} looks outside its neighbourhood"
        rows, columns = model.grid(x)
        assert maps[-1].shape[-1] == model.num_extra + rows * columns, "grid() is not that of the last attention"
    assert_one_map_per_layer(make)


@contextmanager
def asked_of(model: nn.Module) -> Iterator[dict[str, tuple[Places, Places, Neighbours]]]:
    """What each attention layer is called with: a layer of a hierarchy has a grid of its own."""
    asked: dict[str, tuple[Places, Places, Neighbours]] = {}

    def listen(name: str, attend: Attend) -> RemovableHandle:
        def note(_: nn.Module, args: tuple[Tensor, ...], given: dict) -> None:
            queries, keys = (
                given.get(key) or line(tokens.shape[-2]) for key, tokens in (("queries", args[0]), ("keys", args[1]))
            )
            asked[name] = queries, keys, given.get("neighbours") or attend.neighbours

        return attend.register_forward_pre_hook(note, with_kwargs=True)

    modules = dict(model.named_modules())
    handles = [listen(name, modules[name]) for name in attention_layers(model)]
    yield asked
    for handle in handles:
        handle.remove()


def assert_one_map_per_layer(make: Make) -> None:
    """Two more layers, two more maps: there may be others, as of the pooling."""

    def num_maps(**arguments: object) -> int:
        model = make(**arguments).eval()
        with record(model) as maps:
            model(images())
        return sum(len(maps.every(name)) for name in maps)

    model = make()
    if "depth" in inspect.signature(type(model)).parameters:
        assert num_maps(depth=3) - num_maps(depth=1) == 2
    else:
        stages = len(model.stages)
        assert num_maps(depths=(1,) * stages) == stages
        assert num_maps(depths=(3,) * stages) == 3 * stages


CHECKS: dict[str, Callable[[Make], None]] = {
    check.__name__: check
    for check in (
        learns_with_every_parameter,
        accepts_any_channels,
        accepts_any_class_count,
        accepts_any_image_size,
        accepts_another_size_at_inference,
        saves_and_loads,
        is_deterministic_in_eval,
        overfits_eight_samples,
        recording,
    )
}
