"""mirada resume"""

from __future__ import annotations

from mirada.cli.options import Level, LogLevel, Quiet, Run, Verbose, start_logging
from mirada.machine.processes import started


def resume(run: Run, quiet: Quiet = False, log_level: LogLevel = Level.warning, verbose: Verbose = False) -> None:
    """Continue a run that was stopped, to the same result as if it had not been.

    What is finished is left as it is: the model, its baseline, the report.

    \b
    Example:
      mirada resume runs/vit-photos
    """
    quiet = quiet or not started().is_first  # of processes that torchrun started, one speaks
    start_logging(log_level, verbose, quiet)
    from mirada.cli.progress import watcher
    from mirada.cli.summary import show_run
    from mirada.verbs.train import resume as verb

    with watcher(quiet) as watching:
        folder = verb(run, watcher=watching)
    if not quiet:
        show_run(folder)
