"""Tokens, hosts, origins, headers and the log."""

import json
import logging

import pytest

from mirada.errors import MiradaError
from mirada.serve.guard import is_loopback, require_token
from tests.serve.untrained import picture

FILES = [("image", ("secret-name.png", picture()))]


def test_a_token_is_wanted_everywhere(run, served):
    client = served(run, token="s3cret")
    for path in ("/", "/health", "/card", "/metrics", "/openapi.json", "/nothing"):
        answer = client.get(path)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert client.get(path, headers={"Authorization": "Bearer s3cret"}).status_code in (200, 404)
        assert client.get(path, params={"token": "s3cret"}).status_code in (200, 404)
    assert client.post("/predict", files=FILES).status_code == 401
    assert client.post("/predict?token=s3cret", files=FILES).status_code == 401  # in the address only to read
    assert client.post("/predict", files=FILES, headers={"Authorization": "bearer s3cret"}).status_code == 200
    for wrong in ("Bearer", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "Bearer \xe9"):
        assert client.get("/health", headers={"Authorization": wrong.encode("latin-1")}).status_code == 401
    schema = client.get("/openapi.json?token=s3cret").json()
    assert (
        schema["security"] == [{"token": []}] and schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:8000", "LOCALHOST:8000"])
def test_names_of_this_machine_are_taken(host, run, served):
    assert served(run).get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "[", "127.0.0.1@evil", "a b", "[::1"])
def test_other_names_are_refused(host, run, served):
    answer = served(run).get("/health", headers={"Host": host})
    assert answer.status_code == 400 and "Host" in answer.json()["error"]


def test_with_a_token_any_name_will_do(run, served):
    client = served(run, token="t")
    assert client.get("/health?token=t", headers={"Host": "my.example"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost:8000"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:9000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_pages_of_other_sites_cannot_ask(headers, status, run, served):
    assert served(run).post("/predict", files=FILES, headers=headers).status_code == status


def test_every_answer_has_its_headers(run, served):
    client = served(run)
    for answer in (client.get("/card"), client.get("/nothing"), client.get("/card", headers={"Host": "x"})):
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["referrer-policy"] == "no-referrer" and len(answer.headers["x-request-id"]) == 12
    assert client.put("/card").status_code == 405 and client.put("/card").headers["allow"] == "GET"


def test_the_log_has_a_line_per_request_and_no_secret(run, served, caplog):
    caplog.set_level(logging.INFO, "mirada.requests")
    client = served(run, token="s3cret")
    answer = client.post("/predict", files=FILES, headers={"Authorization": "Bearer s3cret"})
    client.get("/health?token=s3cret")
    client.get(f"/{'x' * 5000}%0A?token=s3cret")
    lines = [json.loads(record.message) for record in caplog.records if record.name == "mirada.requests"]
    first = lines[0]
    assert (first["method"], first["path"], first["status"]) == ("POST", "/predict", 200)
    assert first["id"] == answer.headers["x-request-id"] and first["bytes"] > len(picture()) and first["ms"] > 0
    assert first["sent"] == len(answer.content) and set(first) == {
        *("time", "id", "method", "path", "status", "ms", "bytes", "sent")
    }
    assert [line["status"] for line in lines] == [200, 200, 404] and len(lines[2]["path"]) < 300
    assert all(word not in json.dumps(lines) for word in ("s3cret", "secret-name", "token"))


def test_addresses_of_others_want_a_token():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "[::1]", "127.3.2.1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.3", "example.org", "")))
    require_token("127.0.0.1", None)
    require_token("0.0.0.0", "s3cret")
    with pytest.raises(MiradaError, match="others can reach this address"):
        require_token("0.0.0.0", None)
    with pytest.raises(MiradaError, match="headers cannot carry"):
        require_token("0.0.0.0", "two words")
