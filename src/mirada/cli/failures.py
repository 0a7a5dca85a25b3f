"""How a command ends when something is wrong: one sentence on stderr and an exit code, never a traceback."""

from __future__ import annotations

import errno
import functools
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import TypeGuard

import typer

from mirada.errors import MiradaError
from mirada.machine.processes import is_to_tell, require_one
from mirada.train.files import NO_SPACE, why_unwritable

USER_ERROR, UNEXPECTED, INTERRUPTED = 2, 1, 130
SEVERAL_PROCESSES = ("train", "resume")  # what torchrun may start


def told(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, with what it raises told in a sentence. MIRADA_DEBUG=1 shows the traceback too."""

    @functools.wraps(verb)
    def command(*args, **kwargs) -> None:
        try:
            if verb.__name__ not in SEVERAL_PROCESSES:
                require_one(f"`mirada {verb.__name__.rstrip('_')}`")
            verb(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:  # the reader of our output has seen enough
            forget_output()
            raise typer.Exit(UNEXPECTED) from None
        except (Exception, KeyboardInterrupt) as error:
            if os.environ.get("MIRADA_DEBUG") == "1":
                traceback.print_exc()
            sentence, code = explained(error)
            if is_about_output(error):
                forget_output()
            if is_to_tell():
                print(f"mirada: {sentence}", file=sys.stderr)
            raise typer.Exit(code) from None

    return command


def explained(error: BaseException) -> tuple[str, int]:
    """What to say and the exit code."""
    if isinstance(error, MiradaError):
        return str(error), USER_ERROR
    if is_about_output(error):
        return why_unwritable("the output of this command", error), USER_ERROR
    if isinstance(error, OSError) and error.errno in (*NO_SPACE, errno.EROFS) and error.filename:
        return why_unwritable(error.filename, error), USER_ERROR
    if isinstance(error, PermissionError) and error.filename:
        return f"{error.filename}: permission denied; change its rights, or choose another place.", USER_ERROR
    if isinstance(error, KeyboardInterrupt):
        return "Stopped.", INTERRUPTED
    stopping = sys.modules.get("mirada.train.stopping")  # not loaded: nothing was training
    if stopping is not None and isinstance(error, stopping.Stopped):
        return str(error), error.exit_code
    reason = " ".join(str(error).split())
    reason = reason if len(reason) <= 200 else reason[:197] + "..."
    return f"unexpected {type(error).__name__} ({reason}); the details are in {write_details(error)}.", UNEXPECTED


def is_about_output(error: BaseException) -> TypeGuard[OSError]:
    """Files have names; what has none and found no space is the file that our output goes to."""
    return isinstance(error, OSError) and error.errno in NO_SPACE and not error.filename


def forget_output() -> None:
    """What is still to be printed goes nowhere, or Python would fail once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_details(error: BaseException) -> str:
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="mirada-error-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        return file.name
    except OSError:
        return "the traceback that MIRADA_DEBUG=1 shows"
