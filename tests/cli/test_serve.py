"""What `mirada serve` refuses before it listens."""

import importlib.util
import socket

import pytest

from tests.serve.untrained import image_run


@pytest.fixture
def vit(tmp_path):
    return image_run(tmp_path / "vit-photos")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "others can reach this address, so requests need a token"),
        (("--host", "0.0.0.0", "--token", ""), "others can reach this address"),
        (("--token", "two words"), "headers cannot carry"),
        (("--max-mb", 0), "the limit of body is 0"),
        (("--max-pixels", 10**9), "the limit of pixels is 1,000,000,000"),
        (("--waiting", 0), "the limit of waiting is 0"),
        (("--host", "no.such.host.invalid", "--token", "t"), "is no address of this machine"),
        (("--device", "moon"), "device 'moon' cannot be used here"),
    ],
)
def test_mistakes_are_one_sentence(options, said, mirada, vit, monkeypatch):
    monkeypatch.delenv("MIRADA_TOKEN", raising=False)
    found = mirada("serve", vit, *options)
    assert found.exit_code == 2 and said in found.stderr and found.stderr.count("\n") == 1


def test_a_port_in_use_is_one_sentence(mirada, vit):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        found = mirada("serve", vit, "--port", taken.getsockname()[1])
    assert found.exit_code == 2 and "address already in use" in found.stderr and found.stderr.count("\n") == 1


def test_what_is_no_run_is_refused(mirada, tmp_path):
    assert "there is no such folder" in mirada("serve", tmp_path / "missing").stderr


def test_missing_packages_are_told(mirada, vit, monkeypatch):
    plain = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else plain(name))
    found = mirada("serve", vit)
    assert found.exit_code == 2 and 'needs uvicorn; pip install "mirada[studio]"' in found.stderr


def test_the_token_may_come_from_the_environment(mirada, vit, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        "mirada.serve.running.run_server", lambda app, host, port, **how: asked.update(host=host, **how)
    )
    found = mirada("serve", vit, "--host", "0.0.0.0", "--seconds", 5)
    assert found.exit_code == 2
    monkeypatch.setenv("MIRADA_TOKEN", "s3cret")
    assert mirada("serve", vit, "--host", "0.0.0.0", "--seconds", 5).exit_code == 0
    assert asked["host"] == "0.0.0.0" and asked["seconds_to_finish"] == 5
