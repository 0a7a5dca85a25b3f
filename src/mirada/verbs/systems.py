"""`mirada systems`: which models there are, and how large."""

from __future__ import annotations

from mirada import systems
from mirada.errors import MiradaError
from mirada.systems.outline import outline
from mirada.systems.registry import Card, taken


def all_cards() -> list[Card]:
    return list(systems.cards().values())


def size_table(
    name: str,
    *,
    image_size: tuple[int, int] = (32, 32),
    in_channels: int = 3,
    num_classes: int = 10,
    num_tokens: int = 8000,
) -> tuple[Card, list[dict]]:
    """The card of a system, and a row per size: its arguments and its number of parameters for such data.

    A size that does not suit the data has the reason.
    """
    card = systems.card(name)
    of_images = {"in_channels": in_channels, "num_classes": num_classes}
    data_of: dict[str, dict] = {
        "image": {**of_images, "image_size": image_size},
        "masks": {**of_images, "image_size": image_size},
        "pixels": {"in_channels": in_channels, "image_size": image_size},
        "volume": {**of_images, "volume_size": (image_size[0], *image_size)},
        "graph": of_images,
        "text": {"num_tokens": num_tokens},
        "pairs": {"num_tokens": num_tokens},
        "plots": taken(name, in_channels=in_channels, num_covariates=0, num_plots=1),
    }
    rows = []
    for size, arguments in card.sizes.items():
        row = {"size": size, "arguments": dict(arguments), "is_default": size == card.default_size, "reason": ""}
        try:
            model = outline(name, size, **data_of[card.inputs])
            row["num_parameters"] = sum(parameter.numel() for parameter in model.parameters())
        except MiradaError as error:
            row |= {"num_parameters": None, "reason": str(error)}
        rows.append(row)
    return card, rows
