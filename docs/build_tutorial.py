"""Turn docs/tutorial/attention.py into the page attention.md and its pictures: `python docs/build_tutorial.py`.

The source is Python in cells, each opened by a line of its own:

    # %% [markdown]     comments, which become text
    # %%                code, shown and run
    # %% [picture]      code that draws; run, folded away under the picture that its `show(figure, name, alt)` makes
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

TUTORIAL = Path(__file__).resolve().parent / "tutorial"
SOURCE = TUTORIAL / "attention.py"
PAGE = TUTORIAL / "attention.md"

CELL = re.compile(r"^# %%(?: \[(\w+)\])?$", re.MULTILINE)


def cells(source: str) -> list[tuple[str, str]]:
    """(kind, text) of every cell; the kind is "markdown", "code" or "picture"."""
    _, *parts = CELL.split(source)
    return [(kind or "code", text.strip("\n")) for kind, text in zip(parts[::2], parts[1::2], strict=True)]


def render(source: str) -> str:
    """The page's text, without running anything."""
    blocks = []
    for kind, text in cells(source):
        if kind == "markdown":
            blocks.append(re.sub(r"^# ?", "", text, flags=re.MULTILINE))
        elif kind == "code":
            blocks.append(f"```python\n{text}\n```")
        else:
            name, alt = shown(text)
            folded = "\n".join(f"    {line}".rstrip() for line in f"```python\n{text}\n```".splitlines())
            blocks.append(f'![{alt}]({name}.png)\n\n??? note "How this picture is drawn"\n\n{folded}')
    return "\n\n".join(blocks) + "\n"


def shown(text: str) -> tuple[str, str]:
    """Name and alt text of the picture that a cell shows."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "show":
            _, name, alt = node.args
            return ast.literal_eval(name), ast.literal_eval(alt)
    raise ValueError(f"a picture cell without show(figure, name, alt):\n{text}")


def run(folder: Path) -> None:
    """Run the whole tutorial, its asserts included; the pictures go to `folder`."""
    import matplotlib

    matplotlib.use("Agg")
    sys.path.insert(0, str(TUTORIAL))
    try:
        import drawing

        drawing.FOLDER = folder
        exec(compile(SOURCE.read_text("utf-8"), SOURCE, "exec"), {"__name__": "tutorial"})
    finally:
        sys.path.remove(str(TUTORIAL))


if __name__ == "__main__":
    run(TUTORIAL)
    PAGE.write_text(render(SOURCE.read_text("utf-8")), "utf-8")
