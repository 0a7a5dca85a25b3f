"""The command line: one file per verb. Nothing heavy is imported before a verb runs."""


def main() -> None:
    """The `mirada` command."""
    from mirada.cli.app import app

    app(prog_name="mirada")
