"""What `train.precision=auto` chooses, and whether it is right: `python benchmarks/precision.py`, about 3 minutes.

For each model the guard decides by its own short trial; then training steps (forward, loss, backward, fused AdamW) in
float32 and bfloat16 are timed in turns, on two threads and an idle machine. It must not choose what these find slower.

    --try     two rounds of the smallest model, on any machine, nothing published
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch.nn import functional as F

from benchmarks.jobs import require_idle
from benchmarks.page_speed import precision_text
from benchmarks.timing import interleave, save, speed_up
from mirada import systems
from mirada.config.load import resolve
from mirada.machine.memory import kept_for_reuse
from mirada.verbs.pace import Learner, with_precision

THREADS, ROUNDS = 2, 11
MODELS: dict[str, tuple[str, str, int, int]] = {  # system, size, side of the image, batch
    "vit:nano, 8 px, batch 64": ("vit", "nano", 8, 64),
    "vit:micro, 32 px, batch 64": ("vit", "micro", 32, 64),
    "vit:mini, 64 px, batch 64": ("vit", "mini", 64, 64),
    "vit:Ti/16, 224 px, batch 8": ("vit", "Ti/16", 224, 8),
    "vit:S/16, 224 px, batch 8": ("vit", "S/16", 224, 8),
    "cnn:micro, 32 px, batch 64": ("cnn", "micro", 32, 64),
}


class OneBatch:
    """The same images again and again."""

    epoch, step = 0, 0

    def __init__(self, side: int, batch: int) -> None:
        self.batch = SimpleNamespace(inputs=torch.randn(batch, 3, side, side), targets=torch.arange(batch) % 10)

    def __iter__(self) -> Iterator[SimpleNamespace]:
        yield self.batch


def learner_of(system: str, size: str, side: int, batch: int) -> Learner:
    torch.manual_seed(0)
    model = systems.create(system, size, image_size=(side, side), in_channels=3, num_classes=10).train()
    return Learner(model, None, OneBatch(side, batch), torch.device("cpu"), loss_of)  # type: ignore[arg-type]


def loss_of(model: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(inputs).float(), targets)


def steps_of(learner: Learner) -> dict[str, Callable[[], None]]:
    (batch,) = learner.batches
    update = torch.optim.AdamW(learner.model.parameters(), lr=1e-6, fused=True)

    def step(is_bfloat16: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16):
            loss = learner.objective(learner.model, batch.inputs, batch.targets)
        loss.backward()
        update.step()
        update.zero_grad(set_to_none=True)

    return {"float32": partial(step, False), "bfloat16": partial(step, True)}


def measure(model: tuple[str, str, int, int], rounds: int) -> dict:
    learner, said = learner_of(*model), list[str]()
    chosen = with_precision(resolve({"train": {"precision": "auto"}}), learner, said.append).train.precision
    with kept_for_reuse():
        taken = interleave(steps_of(learner), rounds, clock=time.perf_counter)
    ratio = speed_up(taken["bfloat16"], taken["float32"])
    return {
        "chosen": chosen,
        "said": said[0],
        "ms": {precision: timing.ms for precision, timing in taken.items()},
        "bfloat16_faster": [ratio.median, ratio.low, ratio.high],
        "rounds": rounds,
    }


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="is_trial")
    args = parser.parse_args(words)
    models, rounds = (dict([next(iter(MODELS.items()))]), 2) if args.is_trial else (MODELS, ROUNDS)
    if not args.is_trial:
        require_idle()
        torch.set_num_threads(THREADS)
    found = {}
    for label, model in models.items():
        found[label] = measure(model, rounds)
        print(f"{label}: {found[label]['said']}", flush=True)
    results = {"threads": torch.get_num_threads(), "models": found}
    if not args.is_trial:
        print("Written:", save("precision", results))
    print(precision_text(results | {"machine": {"processor": "this machine", "torch": torch.__version__}}))


if __name__ == "__main__":
    main()
