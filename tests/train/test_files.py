"""Files are the old ones or the new ones, whatever happens while they are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from mirada.errors import MiradaError
from mirada.train.checkpoint import load_tensors, save_tensors
from mirada.train.files import read_json, write_atomically, write_json, write_text


def test_a_full_disk_is_one_sentence_and_the_old_file_stays(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_text("old")

    def write_to_a_full_disk(partial: Path) -> None:
        partial.write_text("half of it")
        with open("/dev/full", "w") as disk:
            disk.write("the other half")

    with pytest.raises(MiradaError, match=r"model\.safetensors: the disk is full; .* intact"):
        write_atomically(path, write_to_a_full_disk)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_an_interrupt_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.json"
    write_json(path, {"accuracy": 1})

    def interrupted(partial: Path) -> None:
        partial.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, interrupted)
    assert read_json(path) == {"accuracy": 1}
    assert os.listdir(tmp_path) == ["result.json"]


def test_an_unwritable_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(MiradaError, match="cannot be written"):
        write_text(tmp_path / "file" / "config.yaml", "x")


def test_tensors_come_back_as_they_were(tmp_path):
    weight = torch.randn(5, 7)
    tensors = {"a": weight, "a view of it": weight[:, 2:4].T, "count": torch.tensor(3)}
    save_tensors(tmp_path / "t.safetensors", tensors)
    loaded = load_tensors(tmp_path / "t.safetensors")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("content", [b"", b"garbage that is no safetensors file", b"\xff" * 64])
def test_a_damaged_file_is_one_sentence(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(MiradaError, match="not a readable safetensors file"):
        load_tensors(path)
