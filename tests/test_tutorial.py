"""The documentation is true: the tutorial and every Python example run, and the built page is that of its source."""

import re
from pathlib import Path

import pytest
import yaml
from docs import build_tutorial
from PIL import Image

import mirada.core

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[(.+?)\]\((.+?)\)")


def examples(page: Path) -> list[str]:
    return EXAMPLE.findall(page.read_text("utf-8"))


@pytest.mark.long
def test_tutorial_runs_and_draws_every_picture_of_its_page(tmp_path):
    build_tutorial.run(tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    pictures = PICTURE.findall(build_tutorial.PAGE.read_text("utf-8"))
    assert len(pictures) == 10
    assert drawn == {name for _, name in pictures} == {path.name for path in build_tutorial.TUTORIAL.glob("*.png")}
    assert all(len(alt) > 40 for alt, _ in pictures)
    for name in drawn:
        with Image.open(tmp_path / name) as new, Image.open(build_tutorial.TUTORIAL / name) as committed:
            assert new.size == committed.size, f"{name} was drawn differently: run docs/build_tutorial.py"


def test_page_is_that_of_its_source():
    source = build_tutorial.SOURCE.read_text("utf-8")
    assert build_tutorial.PAGE.read_text("utf-8") == build_tutorial.render(source), "run docs/build_tutorial.py"


def test_pictures_are_small():
    assert sum(path.stat().st_size for path in DOCS.rglob("*.png")) < 2_000_000


def test_cells_become_text_code_and_pictures():
    text, code = "# %% [markdown]\n# # Title\n#\n#     h = 1\n\n", "# %%\nh = 1\n\n"
    source = f'{text}{code}# %% [picture]\nshow(h, "name", "what is seen")\n'
    assert build_tutorial.render(source) == (
        "# Title\n\n    h = 1\n\n```python\nh = 1\n```\n\n![what is seen](name.png)\n\n"
        '??? note "How this picture is drawn"\n\n    ```python\n    show(h, "name", "what is seen")\n    ```\n'
    )


def test_picture_cell_without_a_picture_is_refused():
    with pytest.raises(ValueError, match="without show"):
        build_tutorial.render("# %% [picture]\nfigure = None\n")


def test_readme_example_prints_what_it_says(capsys):
    (example,) = examples(ROOT / "README.md")
    exec(example, {})
    shapes = re.findall(r"\[[\d, ]+\]", capsys.readouterr().out)
    promised = re.findall(r"\([\d, ]+\)", example.splitlines()[-1].split("#")[1])
    assert [shape[1:-1] for shape in shapes] == [shape[1:-1] for shape in promised] != []


@pytest.mark.parametrize("number", range(len(examples(DOCS / "core.md"))))
def test_example_of_the_parts_runs(number):
    example = examples(DOCS / "core.md")[number]
    assert "assert" in example
    exec(example, {})


@pytest.mark.parametrize("name", mirada.core.__all__)
def test_part_is_documented(name):
    assert f"::: mirada.core.{name}\n" in (DOCS / "reference.md").read_text("utf-8")


def test_site_fetches_nothing():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert yaml.safe_load(text)["theme"]["font"] is False
    assert "://" not in text
