"""mirada report"""

from __future__ import annotations

from mirada.cli.options import Level, LogLevel, Quiet, Run, Verbose, start_logging


def report(run: Run, quiet: Quiet = False, log_level: LogLevel = Level.warning, verbose: Verbose = False) -> None:
    """Write the report of a finished run again: one HTML file with everything in it.

    \b
    Example:
      mirada report runs/vit-photos
    """
    start_logging(log_level, verbose, quiet)
    from mirada.verbs.report import report as verb

    path = verb(run)
    if not quiet:
        print(path)
