"""From files to batches: images are read into a table, looked at, split, and handed out as batches.

    table = open_source("photos/")                       what is there
    print(render(inspect("photos/")))                    what is odd about it
    store = open_images(table)                           uint8 in memory, or streamed
    split = make_split(store.table, seed=0, hashes=store.hashes())
    batches = TrainBatches(store, split.train, batch_size=128, normalisation=store.normalisation(split.train),
                           augmentation=augmentation_named("light"))

Names are loaded on first use, so that importing this package does not import torch.
"""

from importlib import import_module

_HOME = {
    "Augmentation": "recipe",
    "Batch": "batches",
    "BrokenImage": "table",
    "ImageShape": "sizing",
    "ImageTable": "table",
    "Inspection": "check",
    "MemoryImages": "memory",
    "Normalisation": "normalise",
    "STRENGTHS": "recipe",
    "Split": "splits",
    "StreamedImages": "stream",
    "TrainBatches": "batches",
    "augmentation_named": "recipe",
    "decode_image": "decode",
    "evaluation_batches": "batches",
    "find_images": "discover",
    "fit_image": "resize",
    "flipping_is_safe": "recipe",
    "infer_image_size": "sizing",
    "infer_shape": "sizing",
    "inspect": "check",
    "load_images": "memory",
    "make_split": "splits",
    "match_channels": "resize",
    "open_images": "stream",
    "open_source": "sources",
    "read_header": "decode",
    "render": "check_text",
    "require_trainable": "suspicions",
}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
