"""Tables on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(table: Table) -> None:
    """As wide as it needs to be where nobody reads it on a screen, so that no cell is cut."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.measure(table, options=console.options.update(width=10_000)).maximum, 80))
    console.print(table, highlight=False)


def plain(text: object) -> Text:
    """Text of users and files: brackets in it are not markup."""
    return Text(str(text))
