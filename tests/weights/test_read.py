"""Where checkpoints come from, and what is refused with which sentence."""

import json
import re
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from transformers import ViTConfig, ViTForImageClassification

from mirada.errors import MiradaError
from mirada.weights import read_checkpoint
from tests.weights.references import SHAPE, assert_same, shaken


@pytest.fixture
def theirs():
    labels = {0: "cat", 1: "dog", 2: "tapir"}
    return shaken(ViTForImageClassification(ViTConfig(**SHAPE, image_size=8, patch_size=4, id2label=labels)))


def test_sharded_folder_with_its_processor(theirs, tmp_path):
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    processor = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    checkpoint = read_checkpoint(str(tmp_path))
    assert_same(checkpoint.model(), theirs, torch.randn(2, 3, 8, 8))
    assert checkpoint.class_names == ("cat", "dog", "tapir")
    assert checkpoint.normalisation == ((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))


def test_half_precision_is_read_as_single(theirs, tmp_path):
    theirs.half().save_pretrained(tmp_path)
    checkpoint = read_checkpoint(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in checkpoint.state.values()} == {torch.float32}
    assert_same(checkpoint.model(), theirs.float(), torch.randn(2, 3, 8, 8))


def test_hub_id_is_fetched(theirs, tmp_path, monkeypatch):
    theirs.save_pretrained(tmp_path)
    asked = []

    def fetch(hub_id, allow_patterns):
        asked.append((hub_id, allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert read_checkpoint("someone/some-vit").start == "someone/some-vit"
    assert asked[0][0] == "someone/some-vit" and not any("bin" in pattern for pattern in asked[0][1])


def test_unreachable_hub_is_one_sentence(monkeypatch):
    def fetch(hub_id, allow_patterns):
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    with pytest.raises(MiradaError, match=r"someone/vit: is no local path, and cannot be fetched .*no route"):
        read_checkpoint("someone/vit")


def test_what_is_no_path_and_no_id_is_refused():
    with pytest.raises(MiradaError, match="there is no such file or folder"):
        read_checkpoint("nothing/of/the-kind")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pth", "last.ckpt", "model.pt"])
@pytest.mark.parametrize("whole_folder", [True, False])
def test_pickles_are_never_opened(name, whole_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("a pickle was opened"))
    (tmp_path / name).write_bytes(b"\x80\x04.")
    with pytest.raises(MiradaError, match=rf"{name}: such files run code .*safetensors only; convert it .*'{name}'"):
        read_checkpoint(tmp_path if whole_folder else tmp_path / name)


def test_the_told_conversion_works(theirs, tmp_path):
    """The command in the sentence is run as it stands."""
    theirs.config.save_pretrained(tmp_path)
    torch.save(theirs.state_dict(), tmp_path / "model.bin")
    with pytest.raises(MiradaError) as refused:
        read_checkpoint(tmp_path)
    code = re.search(r'python -c "(.+)"', str(refused.value))[1]
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert_same(read_checkpoint(tmp_path).model(), theirs, torch.randn(2, 3, 8, 8))


def test_unknown_layout_is_refused(tmp_path):
    save_file({"deep.net": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(MiradaError, match=r"no system of Mirada has the layout of this checkpoint .*deep.net"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(MiradaError, match=r"\(llama\)"):
        read_checkpoint(tmp_path)


def test_broken_files_are_refused(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"not tensors")
    with pytest.raises(MiradaError, match="is not a readable safetensors file"):
        read_checkpoint(tmp_path)
    file.unlink()
    with pytest.raises(MiradaError, match=r"has no model.safetensors"):
        read_checkpoint(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../other.safetensors"}}')
    with pytest.raises(MiradaError, match="outside of its folder"):
        read_checkpoint(tmp_path)


def test_half_a_model_is_refused(theirs, tmp_path):
    theirs.config.save_pretrained(tmp_path)
    state = {n: t for n, t in theirs.state_dict().items() if "patch_embeddings" not in n}
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(MiradaError, match="lacks a tensor of a vit"):
        read_checkpoint(tmp_path)
