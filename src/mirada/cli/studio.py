"""mirada studio"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from mirada.cli.options import Host, Port, Quiet

SECONDS_TO_FINISH = 5  # for pages that still wait for an answer


def studio(
    runs: Annotated[
        Path, typer.Argument(metavar="RUNS_DIR", help="Folder of run folders; made when the first training starts.")
    ] = Path("runs"),
    host: Host = "127.0.0.1",
    port: Port = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MIRADA_TOKEN",
            show_envvar=True,
            help="What the studio is opened with, as ?token=...; better in the environment.",
            show_default=False,
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the studio in the browser.")] = True,
    trainings: Annotated[int, typer.Option(help="Trainings at once.", min=1, max=64)] = 1,
    root_path: Annotated[
        str, typer.Option(metavar="PREFIX", help="Path under which a proxy shows it.", show_default=False)
    ] = "",
    quiet: Quiet = False,
) -> None:
    """Look at runs, into models and at maps in the browser, and start trainings, until Ctrl-C.

    Everything is on this machine and nothing is asked of the network. What trains when the studio ends is stopped with
    everything saved; `mirada resume` goes on, and so does the studio.

    \b
    Example:
      mirada studio
      mirada studio experiments/ --port 9000 --no-browser
      MIRADA_TOKEN=secret mirada studio --host 0.0.0.0
    """
    from mirada.cli.serve import require_server_packages
    from mirada.errors import MiradaError

    require_server_packages("studio")
    if runs.exists() and not runs.is_dir():
        raise MiradaError(f"{runs}: is a file, expected a folder of runs.")
    from mirada.serve.guard import LOOPBACK, is_loopback, require_token
    from mirada.serve.running import run_server
    from mirada.studio.app import create_app

    token = token or None
    require_token(host, token)
    # Whoever reaches this machine from outside may call it by any name; without the token it is no use to them.
    hosts = None if not is_loopback(host) else [host, *LOOPBACK]
    app = create_app(runs, token=token, hosts=hosts, at_once=trainings, root_path=root_path)

    def listening(address: str) -> None:
        entrance = f"{address}{root_path}/"
        if not quiet:
            opened = f"{entrance}?token=… (with the token)" if token else entrance
            print(f"The studio of {runs} is at {opened}; Ctrl-C ends it.", flush=True)
        if browser:
            open_browser(f"{entrance}?token={quote(token, safe='')}" if token else entrance)

    run_server(app, host, port, seconds_to_finish=SECONDS_TO_FINISH, quiet=True, on_listening=listening)


def open_browser(address: str) -> None:
    """Where there is one; a server in a rack has none, and the address is printed anyway."""
    import threading
    import webbrowser
    from contextlib import suppress

    def open_it() -> None:
        with suppress(webbrowser.Error):
            webbrowser.open(address)

    # A browser in a terminal would keep the server waiting.
    threading.Thread(target=open_it, daemon=True).start()
