"""mirada serve"""

from __future__ import annotations

from typing import Annotated

import typer

from mirada.cli.options import Device, Engine, Host, Port, Precision, Quiet, Run, named


def serve(
    run: Run,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MIRADA_TOKEN",
            show_envvar=True,
            help="What requests must carry as `Authorization: Bearer ...`; better in the environment.",
            show_default=False,
        ),
    ] = None,
    max_mb: Annotated[float, typer.Option(help="Megabytes of a request.")] = 32,
    max_pixels: Annotated[int, typer.Option(help="Pixels of an image.")] = 40_000_000,
    seconds: Annotated[float, typer.Option(help="Seconds of a request, waiting included.")] = 60,
    waiting: Annotated[int, typer.Option(help="Requests at once; what is more gets 503.")] = 128,
    engine: Engine = None,
    precision: Precision = None,
    device: Device = None,
    quiet: Quiet = False,
) -> None:
    """Answer requests over HTTP with the model of a run, until Ctrl-C.

    POST /predict and /explain, GET /card, /health, /metrics and /openapi.json. Images are sent as files, texts, places
    and nodes as JSON. Requests that come together run together. One JSON line per request goes to stderr. Engines other
    than torch answer about images, and do not explain.

    \b
    Example:
      mirada serve runs/vit-photos
      curl -F image=@cat.jpg http://127.0.0.1:8000/predict
      mirada serve runs/vit-photos --engine onnx --precision int8
      MIRADA_TOKEN=secret mirada serve runs/vit-photos --host 0.0.0.0
    """
    require_server_packages("serve")
    from mirada.serve.app import create_app
    from mirada.serve.guard import is_loopback, require_token
    from mirada.serve.limits import Limits
    from mirada.serve.running import run_server

    token = token or None
    require_token(host, token)
    limits = Limits(body=round(max_mb * 2**20), pixels=max_pixels, seconds=seconds, waiting=waiting)
    # Whoever reaches this machine from outside may call it by any name; without the token it is no use to them.
    hosts = None if not is_loopback(host) else [host, "localhost", "127.0.0.1", "::1"]
    app = create_app(
        run,
        limits,
        token,
        hosts=hosts,
        device=device or "auto",
        engine=named(engine),
        precision=named(precision),
    )

    def listening(address: str) -> None:
        if not quiet:
            print(f"{run} answers at {address}; Ctrl-C stops it.", flush=True)

    run_server(app, host, port, seconds_to_finish=max(1, round(seconds)), quiet=quiet, on_listening=listening)


def require_server_packages(verb: str) -> None:
    """One sentence where the packages of the extra are not installed."""
    from importlib.util import find_spec

    from mirada.errors import MiradaError

    missing = [name for name in ("fastapi", "uvicorn", "python_multipart") if find_spec(name) is None]
    if missing:
        raise MiradaError(f'`mirada {verb}` needs {", ".join(missing)}; pip install "mirada[studio]".')
