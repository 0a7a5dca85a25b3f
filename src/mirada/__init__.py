"""Mirada: train, compare, explain and serve attention models on your own data.

    run = mirada.train("photos/")                   the verbs of the command line
    mirada.load(run).predict("cat.jpg")             a trained model

Nothing heavy is imported before it is used.
"""

import sys
from importlib import import_module
from types import ModuleType

__version__ = "0.1.0.dev0"

_HOME = {
    "MiradaError": "mirada.errors",
    "anatomy": "mirada.verbs.anatomy",
    "check": "mirada.verbs.check",
    "evaluate": "mirada.verbs.evaluate",
    "export": "mirada.verbs.export",
    "fill": "mirada.verbs.fill",
    "generate": "mirada.verbs.generate",
    "generate_text": "mirada.verbs.generate",
    "load": "mirada.verbs.engines.load",
    "map": "mirada.verbs.map",
    "predict": "mirada.verbs.predict",
    "record": "mirada.core",
    "resume": "mirada.verbs.train",
    "segment": "mirada.verbs.segment",
    "translate": "mirada.verbs.translate",
}
# These are layers of the package and verbs too: mirada.train(...) trains, mirada.train.loop is the training loop.
_VERB_LAYERS = {
    "train": "mirada.verbs.train",
    "report": "mirada.verbs.report",
    "compare": "mirada.verbs.compare",
    "explain": "mirada.verbs.explain",
}

__all__ = ["__version__", *sorted([*_HOME, *_VERB_LAYERS])]


class _VerbLayer(ModuleType):
    """A package that can be called by its name."""

    def __call__(self, *args, **kwargs):
        name = self.__name__.rpartition(".")[2]
        return getattr(import_module(_VERB_LAYERS[name]), name)(*args, **kwargs)


class _Package(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        """Whoever imports a layer first: the import system hands it to us here."""
        if name in _VERB_LAYERS and isinstance(value, ModuleType):
            value.__class__ = _VerbLayer
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str):
    if name in _VERB_LAYERS:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
