"""The studio's pages are part of every wheel and sdist: built from frontend/ where that is needed and npm is there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = ("src", "public", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


class StudioPages(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        page = root / "src" / "mirada" / "studio" / "static" / "index.html"
        # An editable install takes what `make studio` leaves in the tree, and an unpacked sdist brings its pages.
        if version == "editable" or is_built(page, root):
            return
        problem = build(root / "frontend")
        if problem:
            pages = "with older pages of the studio" if page.exists() else "without the studio's pages"
            self.app.display_warning(f"mirada: {self.target_name} {pages}: {problem}.")


def is_built(page: Path, root: Path) -> bool:
    if not page.exists():
        return False
    if (root / "PKG-INFO").exists():
        return True
    built = page.stat().st_mtime
    return all(path.stat().st_mtime <= built for path in sources(root / "frontend"))


def sources(frontend: Path) -> Iterator[Path]:
    for name in SOURCES:
        path = frontend / name
        yield from (file for file in (path, *path.rglob("*")) if file.is_file())


def build(frontend: Path) -> str | None:
    """Why there are no new pages; None if there are."""
    npm = shutil.which("npm")
    if npm is None:
        return "there is no npm to build them with"
    installed = frontend / "node_modules" / ".package-lock.json"  # npm writes it last
    is_new = installed.exists() and installed.stat().st_mtime >= (frontend / "package-lock.json").stat().st_mtime
    for words in (["run", "build"],) if is_new else (["install", "--no-save"], ["run", "build"]):
        ended = subprocess.run([npm, *words], cwd=frontend, capture_output=True, text=True)
        if ended.returncode:
            last = (ended.stderr or ended.stdout).strip().splitlines()[-1:] or ["it says nothing"]
            return f"`npm {' '.join(words)}` failed in {frontend} ({last[0]})"
    return None
