"""One JSON line per request on stderr. What was sent, the query and the token are never in it."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import datetime, timezone

logger = logging.getLogger("mirada.requests")
MAX_PATH = 200


def log_to_stderr() -> None:
    """Lines go to stderr from now on, and nowhere else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def log_request(*, request: str, method: str, path: str, status: int, ms: float, received: int, sent: int) -> None:
    if logger.isEnabledFor(logging.INFO):
        cut = path if len(path) <= MAX_PATH else path[:MAX_PATH] + "…"
        line = {"time": _now(), "id": request, "method": method, "path": cut, "status": status, "ms": round(ms, 1)}
        logger.info(json.dumps(line | {"bytes": received, "sent": sent}))


def log_failure(request: str, error: BaseException) -> None:
    """Where our own code failed. The words of the error are left out: they may quote what was sent."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    logger.error(json.dumps({"time": _now(), "id": request, "error": type(error).__name__, "at": places[-8:]}))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
