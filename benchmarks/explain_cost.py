"""What an explanation costs beside a plain forward, and the memory of explaining a large model.

    python benchmarks/explain_cost.py            about five minutes; on an idle machine
    python benchmarks/explain_cost.py --try      small models, two rounds, not kept

A ViT runs on its fused kernels (the forward) and is explained by every method, in turns in one process on one thread:
median of the paired ratios, and quartiles. Integrated gradients and occlusion are left out: they are many forwards by
construction. Memory is the resident memory of a process of its own that explains one image by a method, libraries
included. Numbers go to benchmarks/results/explain_cost.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.jobs import require_idle
from benchmarks.timing import RESULTS, interleave, save, speed_up
from mirada.explain.image import explain_images
from mirada.explain.methods import METHODS
from mirada.systems import create

MANY_FORWARDS = ("integrated_gradients", "occlusion")
TIMED = [name for name in METHODS if name not in MANY_FORWARDS]
# size of the ViT, side of the image, images at once
MODELS = {"ViT-Ti/16 at 224 px": ("Ti/16", 224), "ViT-B/16 at 224 px": ("B/16", 224)}
TRIED = {"ViT-nano at 32 px": ("nano", 32)}
BATCHES = (1, 8)
MEGABYTE = 2**20


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="is_tried", help="small models, two rounds, not kept")
    parser.add_argument("--table", action="store_true", help="print what there is and stop")
    parser.add_argument("--memory-of", nargs=3, metavar=("SIZE", "SIDE", "METHOD"), help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.memory_of:
        size, side, method = args.memory_of
        print(peak_memory(size, int(side), method))
        return
    if args.table:
        print(cost_text(json.loads((RESULTS / "explain_cost.json").read_text())))
        return
    if not args.is_tried:
        require_idle()
    torch.set_num_threads(1)
    found = measure(TRIED if args.is_tried else MODELS, rounds=2 if args.is_tried else 7)
    if not args.is_tried:
        save("explain_cost", found)
    print(cost_text(found))


def measure(models: dict[str, tuple[str, int]], rounds: int) -> dict:
    found: dict = {"cost": {}, "memory": {}}
    for title, (size, side) in models.items():
        model, images = made(size, side, max(BATCHES))
        found["cost"][title] = {str(batch): _ratios(model, images[:batch], rounds) for batch in BATCHES}
    title, (size, side) = list(models.items())[-1]
    found["memory"] = {"model": title, "peak": {name: _peak_elsewhere(size, side, name) for name in METHODS}}
    return found


def made(size: str, side: int, batch: int) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    model = create("vit", size, image_size=(side, side), in_channels=3, num_classes=10).eval()
    return model, torch.randn(batch, 3, side, side)


def _ratios(model: nn.Module, images_BCHW: Tensor, rounds: int) -> dict[str, list[float]]:
    def forward() -> None:
        with torch.inference_mode():
            model(images_BCHW)

    candidates: dict[str, Callable[[], object]] = {"forward": forward}
    candidates |= {name: partial(explain_images, model, images_BCHW, method=name) for name in TIMED}
    taken = interleave(candidates, rounds)
    ratios = {name: speed_up(taken["forward"], taken[name]) for name in TIMED}
    return {name: [ratio.median, ratio.low, ratio.high] for name, ratio in ratios.items()}


def _peak_elsewhere(size: str, side: int, method: str) -> float:
    command = [sys.executable, __file__, "--memory-of", size, str(side), method]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_memory(size: str, side: int, method: str) -> float:
    """MB of this process at its largest, after one image was explained."""
    torch.set_num_threads(1)
    model, images = made(size, side, 1)
    explain_images(model, images, method=method)
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / MEGABYTE


def cost_text(found: dict) -> str:
    """For docs/measured.md."""
    columns = [(title, batch) for title, batches in found["cost"].items() for batch in batches]
    memory = found["memory"]
    heads = [f"{title}, {batch} at once" for title, batch in columns]
    lines = [
        f"| method | {' | '.join(heads)} | memory, {memory['model']} |",
        "| --- " * (len(columns) + 2) + "|",
    ]
    for name, method in METHODS.items():
        cells = [_written(found["cost"][title][batch].get(name)) for title, batch in columns]
        lines.append(f"| {method.title} | {' | '.join(cells)} | {memory['peak'][name]:,.0f} MB |")
    return "\n".join(lines)


def _written(ratio: list[float] | None) -> str:
    return "many" if ratio is None else f"{ratio[0]:.1f}× ({ratio[1]:.1f} to {ratio[2]:.1f})"


if __name__ == "__main__":
    main()
