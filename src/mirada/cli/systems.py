"""mirada systems"""

from __future__ import annotations

import re
from typing import Annotated

import typer

from mirada.errors import MiradaError


def systems(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One system, to see its whole card.", show_default=False)
    ] = None,
    image_size: Annotated[str, typer.Option(help="HEIGHTxWIDTH, or one side, at which to count parameters.")] = "32",
    channels: Annotated[int, typer.Option(min=1, help="Channels of the images, or bands around plots.")] = 3,
    classes: Annotated[int, typer.Option(min=1, help="Number of classes.")] = 10,
    tokens: Annotated[int, typer.Option(min=1, help="Size of the vocabulary, of models of text.")] = 8000,
) -> None:
    """List the models that can be trained, or show one with its sizes.

    \b
    Example:
      mirada systems
      mirada systems vit --image-size 224 --classes 1000
      mirada systems vit --image-size 48x64 --channels 1
      mirada systems gpt --tokens 50257
      mirada systems spatioformer_paper --channels 6
    """
    size = re.fullmatch(r"([1-9]\d*)(?:[xX×]([1-9]\d*))?", image_size.strip())
    if size is None:
        raise MiradaError(f"--image-size {image_size!r}: expected a number of pixels, or HEIGHTxWIDTH such as 48x64.")
    height, width = int(size[1]), int(size[2] or size[1])

    from mirada.verbs.systems import all_cards, size_table

    if name is None:
        show_cards(all_cards())
    else:
        card, sizes = size_table(
            name, image_size=(height, width), in_channels=channels, num_classes=classes, num_tokens=tokens
        )
        images = f"{height}x{width}, {channels} channels, {classes} classes"
        words = f"{tokens:,} tokens"
        data = {"text": words, "pairs": words, "plots": f"{channels} bands, no covariates"}
        show_card(card, sizes, data.get(card.inputs, images))


def show_cards(cards: list) -> None:
    from rich import box
    from rich.table import Table

    from mirada.cli.tables import plain, print_table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("system", "sizes", "input", "what it is"):
        table.add_column(heading, overflow="fold")
    for card in cards:
        table.add_row(*map(plain, (card.name, ", ".join(card.sizes), card.inputs, card.summary)))
    print_table(table)


def show_card(card, sizes: list[dict], setting: str) -> None:
    from rich import box
    from rich.table import Table

    from mirada.cli.tables import plain, print_table

    print(f"{card.name}: {card.title}\n{card.summary}\n{card.paper}\n\n{card.when_to_use}\n")
    for part, choice in card.parts.items():
        print(f"{part:<11} {choice}")
    mover = "Muon where the preset has it, else AdamW" if card.optimiser == "muon" else "AdamW"
    print(f"{'rate':<11} {card.learning_rate:g}, by {mover}")
    for check, reason in card.cannot.items():
        print(f"{'cannot':<11} {check}: {reason}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=plain(f"at {setting}"), title_justify="left")
    table.add_column("size")
    table.add_column("parameters", justify="right")
    table.add_column("arguments", overflow="fold")
    for row in sizes:
        count = "?" if row["num_parameters"] is None else f"{row['num_parameters']:,}"
        arguments = row["reason"] or ", ".join(f"{key}={value}" for key, value in row["arguments"].items())
        table.add_row(*map(plain, (row["size"] + (" (default)" if row["is_default"] else ""), count, arguments)))
    print_table(table)
