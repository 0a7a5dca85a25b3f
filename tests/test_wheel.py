"""The built wheel holds everything, installs into an empty environment, and trains far from the repository."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch

from mirada import __version__

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mirada"

pytestmark = pytest.mark.long


def run(*words: object, folder: Path, path: str = os.environ["PATH"]) -> str:
    """All that a command says that knows nothing of this environment but where wheels and caches are."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PYTEST"))
    }
    environment = {**kept, "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""), "OMP_NUM_THREADS": "1", "PATH": path}
    ended = subprocess.run([str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def uv() -> str:
    beside = Path(sys.executable).with_name("uv")  # where the Makefile puts it
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        pytest.skip("uv is neither beside python nor on the path; `make test-all` installs it")
    return found


@pytest.fixture(scope="module")
def wheel(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(uv, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(uv: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin/ of an environment with the wheel and what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    python = folder / "venv" / "bin" / "python"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv", folder=folder)
    # The very build of torch that runs these tests: it is in uv's cache, and no CUDA comes with a CPU build.
    (folder / "torch.txt").write_text(f"torch=={torch.__version__}\n")
    constraints = ("-c", ROOT / "constraints.txt", "-c", folder / "torch.txt")
    run(uv, "pip", "install", "--quiet", "--python", python, *constraints, wheel, folder=folder)
    return python.parent


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path):
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("mirada/")}
    ours = {
        f"mirada/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == ours
    for ending in (".yaml", ".html.j2", ".css"):
        assert any(name.endswith(ending) for name in shipped)


def pages(wheel: Path) -> dict[str, bytes]:
    archive = zipfile.ZipFile(wheel)
    start = "mirada/studio/static/"
    return {name.removeprefix(start): archive.read(name) for name in archive.namelist() if name.startswith(start)}


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm to build the studio's pages with")
def test_wheel_carries_the_pages_of_the_studio(uv: str, wheel: Path, tmp_path: Path):
    static = PACKAGE / "studio" / "static"
    shipped = {name: hashlib.sha256(content).hexdigest() for name, content in pages(wheel).items()}
    assert shipped == {
        path.relative_to(static).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in static.rglob("*")
        if path.is_file()
    }
    loaded = re.findall(r'(?:src|href)="([^"]+)"', pages(wheel)["index.html"].decode())
    assert any(address.endswith(".js") for address in loaded) and any(address.endswith(".css") for address in loaded)
    assert {address.removeprefix("./") for address in loaded} <= set(shipped)
    # A wheel that is made from the sdist has the same, and needs no npm.
    run(uv, "build", "--quiet", "--sdist", "--out-dir", tmp_path, ROOT, folder=tmp_path)
    (packed,) = tmp_path.glob("*.tar.gz")
    python = ("--python", sys.executable)
    run(uv, "build", "--quiet", "--wheel", *python, "--out-dir", tmp_path, packed, folder=tmp_path, path="/nowhere")
    (again,) = tmp_path.glob("*.whl")
    assert pages(again) == pages(wheel)
    with tarfile.open(packed) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"frontend/package-lock.json", "frontend/src/main.tsx", "hatch_build.py"} <= names
    assert not [name for name in names if "node_modules" in name]


def test_without_npm_all_but_the_pages_is_built(uv: str, wheel: Path, tmp_path: Path):
    tree, tools, called = tmp_path / "tree", tmp_path / "tools", tmp_path / "called"
    left_out = (".*", "node_modules", "static", "tests", "docs", "benchmarks", "runs", "site", "dist", "__pycache__")
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*left_out))
    tools.mkdir()
    python = ("--python", sys.executable)
    said = run(uv, "build", "--wheel", *python, "--out-dir", tmp_path, tree, folder=tmp_path, path="/nowhere")
    (bare,) = tmp_path.glob("*.whl")
    assert "without the studio's pages: there is no npm" in said
    assert not pages(bare)
    code = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("mirada/") and "/static/" not in name]
    assert set(code) <= set(zipfile.ZipFile(bare).namelist())
    # An npm that fails is no reason to fail, and an editable install does not even ask it.
    (tools / "npm").write_text(f"#!/bin/sh\necho no network >&2\necho x >>{called}\nexit 1\n")
    (tools / "npm").chmod(0o755)
    path = f"{tools}:/usr/bin:/bin"
    run(uv, "venv", "--quiet", *python, tmp_path / "venv", folder=tmp_path)
    into = ("--quiet", "--no-deps", "--python", tmp_path / "venv" / "bin" / "python")
    run(uv, "pip", "install", *into, "-e", tree, folder=tmp_path, path=path)
    assert not called.exists()
    said = run(uv, "build", "--wheel", *python, "--out-dir", tmp_path / "again", tree, folder=tmp_path, path=path)
    assert called.exists() and "`npm install --no-save` failed" in said and "no network" in said


def test_wheel_says_what_it_is_and_brings_its_command(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    texts = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert f"\nVersion: {__version__}\n" in texts["METADATA"]
    assert "mirada = mirada.cli:main" in texts["entry_points.txt"]
    assert "LICENSE" in texts


def test_empty_environment_runs_the_demo(installed: Path, tmp_path: Path):
    assert run(installed / "mirada", "--version", folder=tmp_path) == f"mirada {__version__}\n"
    home = run(installed / "python", "-c", "import mirada; print(mirada.__file__)", folder=tmp_path)
    assert Path(home.strip()).is_relative_to(installed.parent)
    if torch.version.cuda is None:
        packages = {path.name for path in (installed.parent / "lib").rglob("*.dist-info")}
        assert not [name for name in packages if name.startswith(("nvidia", "cuda", "triton"))]
    shortened = ("train.steps=8", "train.evaluations=2", "train.batch_size=32", "train.device=cpu")
    said = run(installed / "mirada", "train", "digits", *shortened, folder=tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    page = (folder / "report.html").read_text("utf-8")
    assert str(folder.relative_to(tmp_path) / "report.html") in said and "baseline" in said
    assert page.startswith("<!") and "</html>" in page and "<style" in page
    assert (folder / "baseline" / "result.json").exists()
