"""The attention core against dense attention and other libraries, in one interleaved run: `make bench`.

    python benchmarks/core.py [window] [sparse] [record] [block]      all jobs, or the named ones; about 10 minutes

Prints tables and writes benchmarks/results/core.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.peers import timm_block
from benchmarks.timing import exponent, gemm_limit, interleave, save, speed_up
from mirada.core import Attend, Attention, Concatenated, Strided, record, window
from mirada.machine.memory import kept_for_reuse
from mirada.nn import MLP, EncoderLayer, pre_norm

LENGTHS = (1024, 2048, 4096, 8192, 16384)
LONGER = (32768, 65536)  # of which a dense mask would take gigabytes: windows only
REACH = 128
HEADS, HEAD_DIM = 4, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help="jobs to run (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peak", nargs=3, metavar=("CANDIDATE", "LENGTH", "PASS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if unknown := set(args.jobs) - set(JOBS):
        parser.error(f"no job is called {', '.join(unknown)}: there are {', '.join(JOBS)}")
    if args.peak:
        candidate, length, direction = args.peak
        print(_peak_here(candidate, int(length), direction))
        return
    limit = gemm_limit(args.threads)
    print(f"Matrix products reach {limit:.0f} GFLOP/s on {args.threads} thread(s) of this machine.\n")
    results: dict = {"threads": args.threads, "gemm_gflops": limit}
    with kept_for_reuse():  # as in training, and for all candidates
        for name in args.jobs or JOBS:
            results[name] = JOBS[name]()
    print("Written:", save("core", results))


# Window attention against dense attention.


def window_candidates(length: int) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    ours = Attend(neighbours=window(REACH))
    if length in LONGER:
        return {"window": ours}
    index = torch.arange(length)
    mask = (index[:, None] - index).abs() <= REACH
    return {
        "window": ours,
        "SDPA, same mask": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        "SDPA, full": F.scaled_dot_product_attention,
        "SDPA, causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    }


def inputs(length: int, requires_grad: bool) -> list[Tensor]:
    return [torch.randn(1, HEADS, length, HEAD_DIM, requires_grad=requires_grad) for _ in range(3)]


def runner(attend: Callable[[Tensor, Tensor, Tensor], Tensor], length: int, direction: str) -> Callable[[], object]:
    q, k, v = inputs(length, direction == "backward")
    gradient = torch.randn(1, HEADS, length, HEAD_DIM)

    def forward() -> object:
        with torch.no_grad():
            return attend(q, k, v)

    return forward if direction == "forward" else lambda: attend(q, k, v).backward(gradient)


def bench_window() -> dict:
    """Window attention, reach 128 to both sides, head width 64, 4 heads, batch 1."""
    results: dict = {}
    for direction in ("forward", "backward"):
        label = "forward" if direction == "forward" else "forward + backward"
        print(f"Window attention (±{REACH}), {label}: ms of CPU time, and how many times faster than dense")
        print(f"{'N':>7} {'window':>9} {'same mask':>17} {'full':>17} {'causal':>17}  {'peak MB':>8} {'same mask':>10}")
        rows = []
        for length in (*LENGTHS, *LONGER):
            candidates = {name: runner(attend, length, direction) for name, attend in window_candidates(length).items()}
            taken = interleave(candidates, rounds=9 if length <= 4096 else 3)
            ours = taken["window"]
            ratios = {name: speed_up(ours, other) for name, other in taken.items() if name != "window"}
            peak = {name: _peak(name, length, direction) for name in ("window", "SDPA, same mask") if name in taken}
            rows.append(
                {
                    "length": length,
                    "ms": {name: timing.ms for name, timing in taken.items()},
                    "faster_than": {name: [r.median, r.low, r.high] for name, r in ratios.items()},
                    "peak_mb": peak,
                }
            )
            cells = " ".join(f"{taken[name].ms:9.0f} {ratio!s:>7}" for name, ratio in ratios.items())
            memory = " ".join(f"{mb:8.0f}" for mb in peak.values())
            print(f"{length:>7} {ours.ms:9.1f} {cells}  {memory}", flush=True)
        slopes = {name: _growth([(row["length"], row["ms"].get(name)) for row in rows]) for name in rows[0]["ms"]}
        memory_slope = _growth([(row["length"], row["peak_mb"]["window"]) for row in rows[1:]])
        print("  time ~ N^" + ", N^".join(f"{slope:.2f} ({name})" for name, slope in slopes.items()))
        print(f"  memory of window ~ N^{memory_slope:.2f}\n")
        results[direction] = {"rows": rows, "time_exponent": slopes, "memory_exponent": memory_slope}
    return results


def _growth(measured: list[tuple[int, float | None]]) -> float:
    """The exponent, over the lengths that were measured."""
    there = [(length, number) for length, number in measured if number is not None]
    return exponent([length for length, _ in there], [number for _, number in there])


def _peak(candidate: str, length: int, direction: str) -> float:
    """MB that a candidate allocates at most, measured in a process of its own."""
    command = [sys.executable, __file__, "--peak", candidate, str(length), direction]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _peak_here(candidate: str, length: int, direction: str) -> float:
    torch.set_num_threads(1)
    attend = window_candidates(length)[candidate]
    runner(window_candidates(512)[candidate], 512, direction)()  # loads what is loaded once
    run = runner(attend, length, direction)
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest memory use so far
    before = _status("VmRSS")
    run()
    return (_status("VmHWM") - before) / 1024


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise KeyError(key)


# Strided attention with l = √N.


def bench_sparse() -> dict:
    """Strided attention, l = √N, against dense attention under the same mask."""
    print("Strided attention (l = √N), forward + backward: ms of CPU time")
    rows = []
    for length in (1024, 4096, 9216):
        stride = round(length**0.5)
        index = torch.arange(length)
        back = index[:, None] - index
        mask = (back >= 0) & ((back <= stride) | (back % stride == 0))
        taken = interleave(
            {
                "strided": runner(Attend(neighbours=Strided(stride)), length, "backward"),
                "SDPA, same mask": runner(
                    lambda q, k, v, m=mask: F.scaled_dot_product_attention(q, k, v, attn_mask=m), length, "backward"
                ),
            },
            rounds=5,
        )
        ratio = speed_up(taken["strided"], taken["SDPA, same mask"])
        rows.append({"length": length, "ms": {name: t.ms for name, t in taken.items()}, "faster": ratio.median})
        print(
            f"{length:>7} {taken['strided'].ms:9.1f}   same mask {taken['SDPA, same mask'].ms:9.1f}  {ratio}",
            flush=True,
        )
    slope = exponent([row["length"] for row in rows], [row["ms"]["strided"] for row in rows])
    print(f"  time ~ N^{slope:.2f}\n")
    return {"rows": rows, "time_exponent": slope}


# Recording.


def bench_record() -> dict:
    """A 12-layer ViT-Tiny-sized stack with fused attention: what recording adds to a forward pass."""
    layers = nn.ModuleList(Attention(Concatenated(192, 3)) for _ in range(12)).eval()
    x_BND = torch.randn(8, 197, 192)

    @torch.no_grad()
    def forward() -> None:
        h = x_BND
        for layer in layers:
            h = h + layer(h)

    def recorded(**options) -> Callable[[], None]:
        def run() -> None:
            with record(layers, **options):
                forward()

        return run

    taken = interleave(
        {
            "plain": forward,
            "observe, all layers": recorded(),
            "observe, one layer": recorded(layers=[-1]),
            "observe, one query": recorded(queries=[0]),
            "differentiate": recorded(mode="differentiate"),
        },
        rounds=15,
    )
    print("Recording, 12 attention layers, 197 tokens, batch 8: time of a forward pass relative to no recording")
    rows = {}
    for name, timing in taken.items():
        cost = speed_up(taken["plain"], timing)
        rows[name] = {"ms": timing.ms, "cost": cost.median}
        print(f"  {name:<22} {timing.ms:8.1f} ms  {cost.median:.2f}")
    print()
    return rows


# A transformer block against other libraries.

SHAPES = {
    "CIFAR ViT (65 tokens, dim 192, batch 64)": (64, 65, 192, 3),
    "ViT-Ti (197 tokens, dim 192, batch 8)": (8, 197, 192, 3),
    "ViT-S (197 tokens, dim 384, batch 4)": (4, 197, 384, 6),
}


def bench_block() -> dict:
    """A pre-norm block (attention and MLP) against nn.TransformerEncoderLayer and timm's Block, same shape."""
    results = {}
    print("Transformer block: ms of CPU time; the ratio is the peer's time over ours, so more than 1 is faster")
    for label, (batch, length, dim, num_heads) in SHAPES.items():
        x_BND = torch.randn(batch, length, dim, requires_grad=True)
        gradient = torch.randn(batch, length, dim)
        blocks: dict[str, nn.Module] = {
            "mirada": EncoderLayer(
                Attention(Concatenated(dim, num_heads)), MLP(dim, 4 * dim), pre_norm(lambda dim=dim: nn.LayerNorm(dim))
            ),
            "nn.TransformerEncoderLayer": nn.TransformerEncoderLayer(
                dim, num_heads, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True
            ),
        }
        if (peer := timm_block(dim, num_heads)) is not None:
            blocks["timm Block"] = peer
        for direction in ("forward", "forward + backward"):
            taken = interleave({name: _step(b, x_BND, gradient, direction) for name, b in blocks.items()}, rounds=25)
            ratios = {name: speed_up(taken["mirada"], t) for name, t in taken.items() if name != "mirada"}
            results[f"{label}, {direction}"] = {
                "ms": {name: t.ms for name, t in taken.items()},
                "faster_than": {name: [r.median, r.low, r.high] for name, r in ratios.items()},
            }
            cells = ", ".join(f"{name} {taken[name].ms:.1f} ({ratio})" for name, ratio in ratios.items())
            print(f"  {label}, {direction}: mirada {taken['mirada'].ms:.1f}, {cells}", flush=True)
    print()
    return results


def _step(block: nn.Module, x: Tensor, gradient: Tensor, direction: str) -> Callable[[], None]:
    def forward() -> None:
        block.eval()
        with torch.no_grad():
            block(x)

    def both() -> None:
        block.train()
        block(x).backward(gradient)

    return forward if direction == "forward" else both


JOBS: dict[str, Callable[[], dict]] = {
    "window": bench_window,
    "sparse": bench_sparse,
    "record": bench_record,
    "block": bench_block,
}

if __name__ == "__main__":
    main()
