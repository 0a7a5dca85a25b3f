"""What strangers send: every answer is one sentence of JSON, and nothing of theirs is believed."""

import io
import json
import struct
import zipfile
import zlib

import pytest
from PIL import Image

from mirada.serve.uploads import pixels_of_upload, plain_name
from tests.serve.untrained import SCRIPT, picture


def ask(client, content: bytes, name: str = "a.png", path: str = "/predict"):
    return client.post(path, files=[("image", (name, content))])


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few hundred bytes that says it has so many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


def animation() -> bytes:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green", "blue")]
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    return stream.getvalue()


def jpeg_with_zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("evil.py", "import os")
    return picture(1, format="JPEG") + stream.getvalue()


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (bomb(30_000, 30_000), 415, "pixels"),
        (bomb(5_000, 5_000), 413, "5000 x 5000 pixels, over the limit of 1,000,000"),
        (bomb(100_000, 100_000), 415, "pixels"),
        (bomb(500, 500), 415, "cannot be decoded"),
        (picture()[:-100], 415, "cannot be decoded"),
        (picture(format="JPEG")[:200], 415, "cannot be decoded"),
        (animation(), 415, "several pictures"),
        (b"GIF89a/*" + SCRIPT.encode() + b"*/=1;alert(1)", 415, "a.png"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", 415, "it holds text"),
        (b"%!PS-Adobe-3.0\n(run) file", 415, "it holds text"),
        (b"\x93NUMPY\x01\0", 415, "not an image"),
        (b"", 415, "empty"),
    ],
)
@pytest.mark.parametrize("path", ["/predict", "/explain"])
def test_files_that_are_no_images_are_refused(content, status, said, path, run, served):
    answer = ask(served(run, pixels=1_000_000), content, path=path)
    assert answer.status_code == status and said in answer.json()["error"] and "Traceback" not in answer.text


def test_an_image_with_something_behind_it_is_that_image(run, served):
    client = served(run)
    plain, both = ask(client, picture(1, format="JPEG")), ask(client, jpeg_with_zip())
    assert both.status_code == 200 and both.json() == plain.json()


def test_names_are_text_and_no_paths(run, served):
    client = served(run)
    answer = ask(client, picture(), f"../../etc/{SCRIPT.replace('/', '')}.png")
    assert answer.json()["answers"][0]["name"] == "<script>alert(1)<script>.png"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert SCRIPT in answer.json()["answers"][0]["probabilities"]
    assert (
        plain_name("C:\\users\\cat.jpg") == "cat.jpg" and plain_name("..\\") == "image" and plain_name(None) == "image"
    )
    assert len(plain_name("x" * 999)) == 120 and plain_name("a\x07\ud800\u202eb.png") == "ab.png"


def test_a_photo_of_a_phone_with_a_preview_is_one_picture():
    stream = io.BytesIO()
    photo, preview = (Image.new("RGB", (side, side), "red") for side in (32, 8))
    photo.save(stream, "MPO", save_all=True, append_images=[preview])
    assert pixels_of_upload(stream.getvalue(), "photo.jpg", max_pixels=2000).shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"texts": ["one"]}', "application/json"),
        (b"image=1", "application/x-www-form-urlencoded"),
        (picture(), "image/png"),
        (picture(), None),
        (picture(), "nonsense"),
    ],
)
def test_other_media_types_are_refused(content, kind, run, served):
    answer = served(run).post("/predict", content=content, headers={"Content-Type": kind} if kind else {})
    assert answer.status_code == 415 and "multipart/form-data" in answer.json()["error"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"--x--",
        b"--x\r\n",
        b"no boundary",
        b'--x\r\nContent-Disposition: form-data; name="image"\r\n\r\nnot a file\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="other"; filename="a.png"\r\n\r\n1\r\n--x--\r\n',
        b"--x\r\nContent-Disposition: " + b"a" * 9000 + b"\r\n\r\n\r\n--x--\r\n",
    ],
)
def test_forms_that_are_none_are_refused(content, run, served):
    for kind in ("multipart/form-data; boundary=x", "multipart/form-data"):
        answer = served(run).post("/predict", content=content, headers={"Content-Type": kind})
        assert answer.status_code in (400, 422) and list(answer.json()) == ["error"], answer.text


def test_too_much_is_refused(run, served):
    client = served(run, body=50_000, images=2, explained=1)
    assert ask(client, bytes(50_001)).status_code == 413
    three = [("image", ("a.png", picture(seed))) for seed in range(3)]
    assert client.post("/predict", files=three).status_code == 422
    assert client.post("/explain", files=three[:2]).status_code == 422


def test_a_body_without_a_length_is_cut_off(run, served):
    sent = []

    def endless():
        yield b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
        for _ in range(100):
            sent.append(1000)
            yield bytes(1000)

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = served(run, body=5_000).post("/predict", content=endless(), headers=kind)
    assert answer.status_code == 413 and "5,000 bytes" in answer.json()["error"]


def test_what_fails_in_the_server_is_one_sentence_and_a_line_in_the_log(run, served, monkeypatch, caplog):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the secret of the picture")

    monkeypatch.setattr("mirada.tasks.single_label.SingleLabel.answers", fail)
    answer = ask(served(run), picture())
    assert answer.status_code == 500 and "secret" not in answer.text and "Traceback" not in answer.text
    line = next(json.loads(record.message) for record in caplog.records if record.name == "mirada.requests")
    assert line["error"] == "RuntimeError" and line["id"] in answer.json()["error"]
    assert any("fail" in place for place in line["at"]) and "secret" not in caplog.text
