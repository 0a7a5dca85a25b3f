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
    from importlib import resources

    from mirada.config.load import presets as names
    from mirada.config.load import read_preset

    texts = {
        each: (resources.files("mirada.config") / "presets" / f"{each}.yaml").read_text(encoding="utf-8")
        for each in names()
    }
    if name is not None:
        read_preset(name)
        print(texts[name], end="")
        return
    for each, text in texts.items():
        comments = [line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("#")]
        print(f"{each:<16} {next(filter(None, comments), '')}".rstrip())
