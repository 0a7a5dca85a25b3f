"""mirada.<verb> is there, light, and the layers of the same name stay packages."""

import inspect
import subprocess
import sys

import pytest

import mirada


@pytest.mark.parametrize("name", [name for name in mirada.__all__ if name != "__version__"])
def test_public_name_can_be_called(name):
    assert callable(getattr(mirada, name))


def test_layers_that_are_verbs_are_packages_too():
    import mirada.train.loop
    from mirada.train import loop

    assert mirada.train.loop is loop
    with pytest.raises(mirada.MiradaError, match="nowhere"):
        mirada.train("nowhere")


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tarin'"):
        mirada.tarin  # noqa: B018


def test_record_is_that_of_the_core():
    from mirada.core import record

    assert mirada.record is record
    assert inspect.isfunction(mirada.load)


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["--help"], "torch numpy pydantic yaml sklearn PIL matplotlib accelerate"),
        (["train", "--help"], "torch numpy yaml sklearn PIL matplotlib accelerate"),  # typer itself imports pydantic
    ],
)
def test_help_imports_nothing_heavy(words, heavy):
    code = f"""if True:
        import sys
        from mirada.cli.app import app
        try:
            app({words}, prog_name="mirada")
        except SystemExit as end:
            assert end.code == 0
        sys.exit(" ".join(set({heavy.split()}) & set(sys.modules)) or 0)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Example:" in done.stdout
