"""mirada presets"""

from __future__ import annotations

from typing import Annotated

import typer


def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One preset, to see its settings.", show_default=False)
    ] = None,
) -> None:
    """List the shipped presets, or show the settings of one.

    \b
    Example:
      mirada presets
      mirada presets small-data > mine.yaml
      mirada train photos/ --config mine.yaml
    """
    from mirada.config.load import preset_summary, preset_text, read_preset
    from mirada.config.load import presets as names

    if name is not None:
        read_preset(name)
        print(preset_text(name), end="")
        return
    for each in names():
        print(f"{each:<16} {preset_summary(each)}".rstrip())
