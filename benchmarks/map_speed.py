"""Pixels per second of a map: all pixels of a patch at once, against a chip cut for every pixel and called in batches.

    python benchmarks/map_speed.py             a minute or two on an idle machine, one thread
    python benchmarks/map_speed.py --table     only print what there is

Both ways run the same model on the same pixels in turns, in one process; their answers are compared. Six bands, chips
of 9 × 9 pixels, random weights. Numbers go to benchmarks/results/map_speed.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.jobs import RESULTS, require_idle, write_whole
from benchmarks.timing import interleave, speed_up
from mirada import systems
from mirada.nn.windows_of_layers import windows_of

RESULTS_FILE = RESULTS / "map_speed.json"
BANDS, CHIP, PATCH, PLOTS, BATCH, ROUNDS = 6, 9, 64, 2048, 1024, 5
NAMES = ("spatioformer", "spatioformer_paper")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--busy", action="store_true", help="also on a machine that is not idle; nothing is written")
    args = parser.parse_args()
    found = json.loads(RESULTS_FILE.read_text()) if args.table else measure(args.rounds, is_busy=args.busy)
    for name, row in found["systems"].items():
        print(
            f"{name}: {row['shared']:,.0f} pixels/s, cut chip by chip {row['chips']:,.0f}, {row['ratio']:.1f}× "
            f"({row['low']:.1f}–{row['high']:.1f}), largest difference {row['difference']:.1e}"
        )


def measure(rounds: int, *, is_busy: bool) -> dict:
    if not is_busy:
        require_idle()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = torch.randn(1, BANDS + 2, PATCH + CHIP - 1, PATCH + CHIP - 1)
    found = {"patch": PATCH, "chip": CHIP, "bands": BANDS, "plots": PLOTS, "systems": {}}
    for name in NAMES:
        found["systems"][name] = measured(model_named(name), layers, rounds)
    if not is_busy:
        write_whole(RESULTS_FILE, found)
    return found


def model_named(name: str) -> nn.Module:
    if name == "spatioformer_paper":
        return systems.create(name, in_channels=BANDS, chip_size=CHIP).eval()
    model = systems.create(name, in_channels=BANDS, num_covariates=0, num_plots=PLOTS, chip_size=CHIP).eval()
    model.remember(torch.randn(PLOTS, BANDS + 2, CHIP, CHIP), torch.randn(PLOTS))
    return model


@torch.inference_mode()
def measured(model: nn.Module, layers: Tensor, rounds: int) -> dict:
    def shared() -> Tensor:
        made = model.dense(layers)
        return made.flatten(0, -3).flatten(1).T  # pixels, outputs

    def chip_by_chip() -> Tensor:
        chips, _ = windows_of(layers, CHIP)
        return torch.cat([model(some).flatten(1) for some in chips.split(BATCH)])

    difference = float((shared() - chip_by_chip()).abs().max())
    times = interleave({"shared": shared, "chips": chip_by_chip}, rounds)
    ratio = speed_up(times["shared"], times["chips"])
    speeds = {way: 1e3 * PATCH**2 / timing.ms for way, timing in times.items()}
    return speeds | {"ratio": ratio.median, "low": ratio.low, "high": ratio.high, "difference": difference}


if __name__ == "__main__":
    main()
