"""Masks by torch, ONNX Runtime and OpenVINO: `python benchmarks/mask_engines.py`, five minutes, idle machine.

    --table   only print what there is
    --try     small images, few rounds, on any machine, kept apart

One image at a time through TransUNet and U-Net of size micro, at 128 px, random weights, the same in every engine; each
is a process of its own, in turns, wall time. A ratio is torch's time over the engine's, the median of the pairs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch import nn

from benchmarks import jobs
from benchmarks.engines import Answers, again_and_again, answered, by_engine, by_torch, quartiles, ratio
from benchmarks.jobs import require_idle, told, write_whole
from benchmarks.page_engines import mask_engines_text
from benchmarks.timing import machine
from mirada import systems
from mirada.machine.threads import num_cores
from mirada.train.files import read_json
from mirada.verbs.engines.exported import difference
from mirada.verbs.engines.session import PACKAGES

SYSTEMS = ("transunet", "unet")
MEASURED = {"image_size": 128, "rounds": 15, "calls": 5}
TRIED = {"image_size": 32, "rounds": 2, "calls": 1}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="is_tried", help="small images, kept apart")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    args = parser.parse_args(words)
    results_file = (jobs.RUNS / "mask_engines-try" if args.is_tried else jobs.RESULTS) / "mask_engines.json"
    if not args.table:
        if not args.is_tried:
            require_idle()
        sizes = TRIED if args.is_tried else MEASURED
        found = {name: measured(name, **sizes) for name in SYSTEMS}
        write_whole(results_file, {"machine": machine(), "cores": num_cores(), "sizes": sizes, "systems": found})
    print(mask_engines_text(read_json(results_file)) if results_file.exists() else "Nothing is measured yet.")


def measured(name: str, image_size: int, rounds: int, calls: int) -> dict:
    of_libraries = [(library, name, image_size, calls) for library in ("torch", *PACKAGES)]
    outputs, taken = answered(candidates_of, of_libraries, rounds, calls)
    return {
        "num_parameters": sum(weights.numel() for weights in our_model(name, image_size).parameters()),
        "ms": {engine: quartiles(timing) for engine, timing in taken.items()},
        "faster_than_torch": {engine: ratio(taken[engine], taken["torch"]) for engine in taken if engine != "torch"},
        "difference": {
            engine: difference(own, outputs["torch"]) for engine, own in outputs.items() if engine != "torch"
        },
    }


def our_model(name: str, image_size: int) -> nn.Module:
    torch.manual_seed(0)
    size = (image_size, image_size)
    return systems.create(name, "micro", image_size=size, in_channels=3, num_classes=2).eval()


def candidates_of(library: str, name: str, image_size: int, calls: int) -> Answers:
    """Each answers `calls` times; int8, which masks do not have, is left out."""
    model, image = our_model(name, image_size), torch.randn(1, 3, image_size, image_size)
    once = {library: by_torch(model, image)} if library == "torch" else by_engine(library, model, image)
    return {engine: again_and_again(run, calls) for engine, run in once.items() if "int8" not in engine}


if __name__ == "__main__":
    told(main)
