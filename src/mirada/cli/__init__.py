"""The command line: one file per verb. Nothing heavy is imported before a verb runs."""

import sys

import mirada.machine.threads  # noqa: F401  first, as it looks at the load from here on


def main() -> None:
    """The `mirada` command."""
    from mirada.cli.at_once import is_answered

    if is_answered(sys.argv[1:]):
        return
    from mirada.cli.app import app

    app(prog_name="mirada")
