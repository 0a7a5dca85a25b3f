"""What `mirada studio` refuses before it listens, and what it says when it does."""

import importlib.util
import socket

import pytest

pytest.importorskip("fastapi")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "others can reach this address, so requests need a token"),
        (("--token", "two words"), "headers cannot carry"),
        (("--host", "no.such.host.invalid", "--token", "t"), "is no address of this machine"),
    ],
)
def test_mistakes_are_one_sentence(options, said, mirada, tmp_path, monkeypatch):
    monkeypatch.delenv("MIRADA_TOKEN", raising=False)
    found = mirada("studio", tmp_path / "runs", "--no-browser", *options)
    assert found.exit_code == 2 and said in found.stderr and found.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_port_in_use_is_one_sentence(mirada, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        found = mirada("studio", tmp_path, "--no-browser", "--port", taken.getsockname()[1])
    assert found.exit_code == 2 and "address already in use" in found.stderr and found.stderr.count("\n") == 1


def test_a_file_is_no_folder_of_runs(mirada, tmp_path):
    (tmp_path / "file").write_text("x", "utf-8")
    found = mirada("studio", tmp_path / "file", "--no-browser")
    assert found.exit_code == 2 and "is a file, expected a folder of runs" in found.stderr


def test_missing_packages_are_told(mirada, tmp_path, monkeypatch):
    plain = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else plain(name))
    found = mirada("studio", tmp_path)
    assert found.exit_code == 2 and 'needs uvicorn; pip install "mirada[studio]"' in found.stderr


@pytest.mark.parametrize("options", [(), ("--no-browser",), ("--quiet",)])
def test_the_browser_is_opened_with_the_token(mirada, tmp_path, monkeypatch, options):
    opened = []
    monkeypatch.setattr("mirada.cli.studio.open_browser", opened.append)
    monkeypatch.setattr(
        "mirada.serve.running.run_server",
        lambda app, host, port, *, on_listening, **how: on_listening(f"http://{host}:{port}"),
    )
    found = mirada("studio", tmp_path, "--token", "a&b", *options)
    assert found.exit_code == 0, found.stderr
    assert opened == ([] if "--no-browser" in options else ["http://127.0.0.1:8765/?token=a%26b"])
    assert ("http://127.0.0.1:8765/" in found.stdout) == ("--quiet" not in options) and "a&b" not in found.stdout
