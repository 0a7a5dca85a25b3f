"""Rules about the source itself: the direction of imports, one home for attention, names, nothing of one machine."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mirada"
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}

# A module imports from its own layer and the layers before it. "mirada" is the package's __init__: the public verbs.
LAYERS = (
    *("errors", "machine", "core", "nn", "systems", "weights", "data", "tasks", "train", "explain", "report"),
    *("compare", "config", "verbs", "mirada", "serve", "studio", "cli", "__main__"),
)
# Besides the standard library; layers not listed here may import any dependency.
MAY_IMPORT = {"errors": (), "core": ("torch",)}

# Attention is computed in core/ only, so nothing else may even name these.
ATTENTION = {
    *("softmax", "Softmax", "scaled_dot_product_attention", "flex_attention"),
    *("MultiheadAttention", "multi_head_attention_forward"),
}
# ... but for these: "file:function" or, for the whole file, "file:*". A softmax over class logits is listed here.
MAY_NAME_ATTENTION = {
    "explain/capture.py:*",  # taking weights out of foreign models
    "explain/any_model.py:_arguments",  # knows one by its class
    "tasks/single_label.py:probabilities",  # of classes, not of keys
    "tasks/segment.py:probabilities",
}

FORBIDDEN_NAMES = re.compile(r"(utils?|helpers?|misc|common|managers?|base)|(base_.*)|(.*_(utils?|helpers?|manager))")

# Folders of one machine, and hosts of package registries, which lock files like to record.
MACHINE = re.compile(
    r"(?<![\w.~])/(?:work|opt|root|home|Users|mnt)/\w"
    r"|\bpypi\.org|pythonhosted\.org|download\.pytorch\.org|\bnpmjs\.(?:org|com)|\banaconda\.org"
)
NOT_OURS = {
    ".git",
    ".hypothesis",
    ".venv",
    ".venv-peers",
    "node_modules",
    "__pycache__",
    "build",
    "dist",
    "site",
    "static",
    "runs",
}


def layer_of_file(file: str) -> str:
    top = file.split("/")[0].removesuffix(".py")
    return "mirada" if top == "__init__" else top


def imports(source: str, file: str) -> Iterator[str]:
    """Absolute dotted names of everything that `file` (relative to the package) imports, wherever in the file."""
    package = ("mirada", *Path(file).parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            yield from (".".join((*start, *filter(None, [node.module]), alias.name)) for alias in node.names)


def import_faults(source: str, file: str) -> list[str]:
    layer, faults = layer_of_file(file), []
    for name in imports(source, file):
        top, *rest = name.split(".")
        if top == "mirada" and rest != ["__version__"]:
            imported = rest[0] if rest and rest[0] in LAYERS else "mirada"
            if LAYERS.index(imported) > LAYERS.index(layer):
                faults.append(f"{file}: {layer} imports {name} of the higher layer {imported}")
        elif layer in MAY_IMPORT and top not in {*sys.stdlib_module_names, *MAY_IMPORT[layer]}:
            faults.append(f"{file}: {layer} imports {name}")
    return faults


def attention_faults(source: str, file: str) -> list[str]:
    def visit(node: ast.AST, function: str) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        names = {getattr(node, key, None) for key in ("attr", "id", "name")}
        if names & ATTENTION and f"{file}:{function}" not in MAY_NAME_ATTENTION:
            yield f"{file}:{function} has {(names & ATTENTION).pop()}"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function)

    if file.startswith("core/") or f"{file}:*" in MAY_NAME_ATTENTION:
        return []
    return list(visit(ast.parse(source), ""))


def test_every_module_belongs_to_a_layer():
    assert {layer_of_file(file) for file in MODULES} <= set(LAYERS)


@pytest.mark.parametrize("file", MODULES)
def test_imports_point_downwards(file):
    assert not import_faults(MODULES[file].read_text("utf-8"), file)


def test_importing_the_package_does_not_import_torch():
    code = "import sys, mirada; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("file", MODULES)
def test_attention_is_computed_in_core_only(file):
    assert not attention_faults(MODULES[file].read_text("utf-8"), file)


@pytest.mark.parametrize("file", MODULES)
def test_file_is_named_after_its_idea(file):
    assert not [part for part in Path(file).with_suffix("").parts if FORBIDDEN_NAMES.fullmatch(part)]


def our_files(folder: Path = ROOT) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.name.endswith("_cache"):
            continue
        elif path.is_dir():
            yield from our_files(path)
        else:
            yield path


def test_nothing_of_one_machine_is_written_down():
    faults = []
    for path in our_files():
        lines = path.read_bytes().decode("utf-8", errors="replace").splitlines()
        faults += [f"{path.relative_to(ROOT)}:{n}" for n, line in enumerate(lines, 1) if MACHINE.search(line)]
    assert not faults


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/a.py", "import numpy"),
        ("core/a.py", "from mirada.nn import mlp"),
        ("core/a.py", "from ..nn import mlp"),
        ("core/a.py", "from mirada import nn"),
        ("core/a.py", "import mirada"),
        ("errors.py", "import torch"),
        ("nn/blocks/a.py", "from ...systems.vit import ViT"),
        ("nn/a.py", "def f():\n    from mirada.train import loop"),
    ],
)
def test_upward_import_is_found(file, source):
    assert import_faults(source, file)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/a.py", "import math, torch.nn.functional as F\nfrom ..errors import MiradaError\nfrom . import score"),
        ("report/a.py", "from mirada import __version__\nimport numpy"),
        ("cli/a.py", "import mirada"),
    ],
)
def test_downward_import_is_allowed(file, source):
    assert not import_faults(source, file)


@pytest.mark.parametrize(
    "source",
    [
        "F.softmax(x, -1)",
        "x.softmax(-1)",
        "from torch import softmax as s",
        "partial(scaled_dot_product_attention)",
        "nn.MultiheadAttention(8, 2)",
    ],
)
def test_attention_outside_core_is_found(source, monkeypatch):
    source = f"def probabilities():\n    {source}"
    assert attention_faults(source, "tasks/classify.py")
    assert not attention_faults(source, "core/kernels.py")
    assert not attention_faults(source, "explain/capture.py")
    monkeypatch.setattr(sys.modules[__name__], "MAY_NAME_ATTENTION", {"tasks/classify.py:probabilities"})
    assert not attention_faults(source, "tasks/classify.py")
    assert attention_faults(source.replace("probabilities", "f"), "tasks/classify.py")
