"""Which systems there are: a card for each, and one way to make them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import nn

from mirada.errors import MiradaError, nearest

System = TypeVar("System", bound=type[nn.Module])
Part = TypeVar("Part")


@dataclass(frozen=True)
class Card:
    """What there is to know of a system before using it.

    `parts` says which score, neighbours, position and heads it uses, nothing where there is no attention. `sizes` are
    named constructor arguments. `cannot` names the common checks it cannot pass by its nature, each with the reason.
    `tiny` are arguments of a size that learns in moments: the common checks run on it. `learning_rate` suits training
    from scratch in batches of 64, with AdamW, and where a preset has Muon by `optimiser`: Muon where it was measured.
    """

    name: str
    title: str
    summary: str
    paper: str
    inputs: str
    parts: Mapping[str, str]
    sizes: Mapping[str, Mapping[str, object]]
    default_size: str
    when_to_use: str
    cannot: Mapping[str, str] = field(default_factory=dict)
    tiny: Mapping[str, object] = field(default_factory=dict)
    learning_rate: float = 1e-3
    optimiser: str = "adamw"


_cards: dict[str, Card] = {}
_classes: dict[str, type[nn.Module]] = {}


def register(card: Card) -> Callable[[System], System]:
    """@register(Card(…)) above a class makes it known by the card's name."""

    def keep(cls: System) -> System:
        assert card.name not in _cards, f"two systems are called {card.name}"
        assert card.default_size in card.sizes, f"{card.name} has no size {card.default_size}"
        for arguments in (*card.sizes.values(), card.tiny):
            assert set(arguments) <= set(_parameters(cls)), f"{card.name} names arguments it does not take"
        _cards[card.name], _classes[card.name] = card, cls
        return cls

    return keep


def cards() -> dict[str, Card]:
    """All cards by name, in alphabetical order."""
    return dict(sorted(_cards.items()))


def card(name: str) -> Card:
    if name not in _cards:
        raise MiradaError(f"no system is called {name!r}{nearest(name, _cards)}: there are {', '.join(cards())}")
    return _cards[name]


def create(name: str, size: str | None = None, **arguments: Any) -> nn.Module:
    """The system `name` in a named size (the default one, if None); `arguments` replace those of the size.

    create("vit", "S/16", image_size=(224, 224), in_channels=3, num_classes=5, drop_path=0.1)
    """
    resolved = all_arguments(name, size, **arguments)
    return _classes[name](**resolved)


def all_arguments(name: str, size: str | None = None, **arguments: Any) -> dict[str, Any]:
    """What `create` gives to the system, with the defaults of what nobody names."""
    known = card(name)
    size = known.default_size if size is None else size
    if size not in known.sizes:
        raise MiradaError(
            f"system {name!r} has no size {size!r}{nearest(size, known.sizes)}: there are {', '.join(known.sizes)}"
        )
    parameters = _parameters(_classes[name])
    for argument in arguments:
        if argument not in parameters:
            raise MiradaError(
                f"system {name!r} takes no argument {argument!r}{nearest(argument, parameters)}: "
                f"it takes {', '.join(parameters)}"
            )
    resolved = {**known.sizes[size], **arguments}
    missing = [key for key, parameter in parameters.items() if parameter.default is parameter.empty]
    missing = [key for key in missing if key not in resolved]
    if missing:
        raise MiradaError(f"system {name!r} needs {', '.join(missing)}: give a value for each")
    defaults = {key: parameter.default for key, parameter in parameters.items()}
    return {**defaults, **resolved}


def taken(name: str, **offered: Any) -> dict[str, Any]:
    """Of what the data offers, what the system has an argument for."""
    card(name)
    parameters = _parameters(_classes[name])
    return {argument: value for argument, value in offered.items() if argument in parameters}


def one_of(argument: str, value: str, choices: Mapping[str, Part]) -> Part:
    """choices[value], or an error that names the argument and the choices."""
    if value not in choices:
        raise MiradaError(f"{argument}={value!r}{nearest(value, choices)}: must be one of {', '.join(choices)}")
    return choices[value]


def _parameters(cls: type[nn.Module]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)
