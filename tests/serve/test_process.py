"""`mirada serve` as a process: it says when it listens, cuts off what is too long, and ends when all are answered."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.serve.untrained import picture

pytestmark = pytest.mark.long

BOUNDARY = "0123456789abcdef"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def form(content: bytes) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
    return head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()


@contextmanager
def serving(run: Path) -> Iterator[tuple[subprocess.Popen, int]]:
    command = [sys.executable, "-m", "mirada", "serve", str(run), "--port", "0", "--device", "cpu"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert started.stdout is not None
    said = started.stdout.readline()
    assert " answers at http://127.0.0.1:" in said, said
    try:
        yield started, int(said.split("127.0.0.1:")[1].split(";")[0])
    finally:
        started.kill()
        started.communicate()


@pytest.fixture(scope="module")
def process(run: Path) -> Iterator[tuple[subprocess.Popen, int]]:
    """Shared: only the last test ends it."""
    with serving(run) as found:
        yield found


def ask(port: int, method: str, path: str, body: bytes | None = None, headers: dict | None = None) -> tuple[int, dict]:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_it_answers_logs_and_ends_well(run):
    with serving(run) as (started, port):
        assert ask(port, "GET", "/health")[0] == 200
        answers: list[tuple[int, dict]] = []

        def explain() -> None:
            answers.append(ask(port, "POST", "/explain?method=occlusion&method=chefer", form(picture()), FORM))

        asking = threading.Thread(target=explain)
        asking.start()
        time.sleep(0.2)
        started.send_signal(signal.SIGTERM)
        asking.join()
        _, log = started.communicate(timeout=120)
        assert started.returncode == 0, log
        assert [status for status, _ in answers] == [200]
        lines = [json.loads(line) for line in log.splitlines()]
        assert [(line["path"], line["status"]) for line in lines] == [("/health", 200), ("/explain", 200)]


def test_an_upload_over_the_limit_is_cut_off(process):
    _, port = process
    sent, size = 0, 100 * 2**20
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM['Content-Type']}\r\n"
        connection.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode())
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413") and b"connection: close" in answer.lower()
        try:
            while sent < size:
                connection.sendall(bytes(2**16))
                sent += 2**16
        except OSError:
            pass
    assert sent < size / 2
    assert ask(port, "GET", "/health")[0] == 200


def test_what_is_no_http_does_not_end_it(process):
    _, port = process
    for content in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        bytes(99),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            assert not connection.recv(65536).startswith(b"HTTP/1.1 200")
    assert ask(port, "GET", "/health")[0] == 200


def test_ctrl_c_is_no_failure(process):
    started, _ = process
    started.send_signal(signal.SIGINT)
    assert started.wait(120) == 0
