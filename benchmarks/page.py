"""Write docs/measured.md from the results files: `python benchmarks/page.py`. No number in it is typed by hand."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "measured.md"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def faster(ratio: list[float]) -> str:
    median, low, high = ratio
    return f"{median:.1f}×" if low > 1 or high < 1 else f"tie ({low:.2f}–{high:.2f})"


def page() -> str:
    parts = ["# Measurements\n", "Made by `python benchmarks/page.py` from the files in `benchmarks/results/`.\n"]
    sections = (window_section, sparse_section, record_section, block_section, gat_section, small_data_section)
    return "\n".join([*parts, *filter(None, (section() for section in sections))])


def core() -> dict:
    path = RESULTS / "core.json"
    return json.loads(path.read_text()) if path.exists() else {}


def window_section() -> str:
    results = core()
    if "window" not in results:
        return ""
    machine = results["machine"]
    text = "## Window attention\n\n"
    text += (
        f"`make bench`: ±128 keys, 4 heads of 64, batch 1, {results['threads']} thread of {machine['processor']}, "
        f"torch {machine['torch']}; CPU time, all candidates interleaved in one process. A matrix product reaches "
        f"{results['gemm_gflops']:.0f} GFLOP/s there. Dense is torch's `scaled_dot_product_attention`.\n\n"
    )
    for direction, title in (("forward", "Forward"), ("backward", "Forward and backward")):
        found = results["window"][direction]
        rows = [
            [
                f"{row['length']:,}",
                f"{row['ms']['window']:.0f} ms",
                *(faster(row["faster_than"][name]) for name in ("SDPA, same mask", "SDPA, full", "SDPA, causal")),
                f"{row['peak_mb']['window']:.0f} MB",
                f"{row['peak_mb']['SDPA, same mask']:.0f} MB",
            ]
            for row in found["rows"]
        ]
        head = ["N", "window", "faster than dense, same mask", "than dense, full", "than causal"]
        text += f"{title}:\n\n" + table([*head, "memory", "memory, dense with mask"], rows)
        slopes = found["time_exponent"]
        text += f"\nTime grows as N^{slopes['window']:.2f} (dense: N^{slopes['SDPA, full']:.2f}), "
        text += f"memory as N^{found['memory_exponent']:.2f}.\n\n"
    return text


def sparse_section() -> str:
    if "sparse" not in core():
        return ""
    found = core()["sparse"]
    rows = [
        [f"{row['length']:,}", f"{row['ms']['strided']:.0f} ms", f"{row['ms']['SDPA, same mask']:.0f} ms"]
        for row in found["rows"]
    ]
    text = "## Strided attention\n\nl = √N, forward and backward:\n\n" + table(
        ["N", "strided", "dense, same mask"], rows
    )
    return text + f"\nTime grows as N^{found['time_exponent']:.2f}.\n"


def record_section() -> str:
    if "record" not in core():
        return ""
    rows = [[name, f"{row['ms']:.0f} ms", f"{row['cost']:.2f}"] for name, row in core()["record"].items()]
    text = "## Recording\n\nA forward pass of 12 attention layers, 197 tokens, dim 192, batch 8:\n\n"
    return text + table(["recording", "time", "relative"], rows)


def block_section() -> str:
    if "block" not in core():
        return ""
    rows = []
    for label, row in core()["block"].items():
        peers = {name: faster(row["faster_than"][name]) for name in row["faster_than"]}
        rows.append([label, f"{row['ms']['mirada']:.1f} ms", *peers.values()])
    names = next(iter(core()["block"].values()))["faster_than"]
    text = "## Transformer block\n\nHow many times faster ours is than a block of the same shape elsewhere:\n\n"
    return text + table(["shape", "ours", *(f"than {name}" for name in names)], rows)


def gat_section() -> str:
    path = RESULTS / "gat_cora.jsonl"
    if not path.exists():
        return ""
    runs = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    scores = [100 * run["test_accuracy"] for run in runs]
    each = ", ".join(f"{score:.1f}" for score in scores)
    text = "## GAT on Cora\n\n`python benchmarks/gat_cora.py`, the paper's protocol. "
    return text + (
        f"Accuracy {statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f} over {len(runs)} seeds ({each}); "
        "the paper reports 83.0 ± 0.7.\n"
    )


def small_data_section() -> str:
    path = RESULTS / "small_data.jsonl"
    if not path.exists():
        return ""
    groups: dict[tuple, list[dict]] = {}
    for line in path.read_text().splitlines():
        job = json.loads(line)
        groups.setdefault((job["dataset"], job["minutes"], job["contender"], job["settings"]), []).append(job)
    rows = []
    for (dataset, minutes, contender, _), jobs in sorted(groups.items()):
        scores = [100 * job["accuracy"] for job in jobs]
        spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
        parameters = f"{jobs[0]['num_parameters']:,}"
        accuracy = f"{statistics.mean(scores):.2f}{spread}"
        rows.append(
            [dataset, f"{minutes:g}", contender, parameters, f"{jobs[0]['epochs']:.0f}", accuracy, str(len(jobs))]
        )
    text = (
        "## Small data, equal training time\n\n`python benchmarks/small_data.py`, test accuracy in % on two cores:\n\n"
    )
    return text + table(["data", "minutes", "contender", "parameters", "epochs", "accuracy", "seeds"], rows)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"Written: {PAGE}\n")
