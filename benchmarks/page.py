"""Write docs/measured.md, the pictures of docs/train.md and the scores in the presets, all from the results files:
`python benchmarks/page.py`.

No number in them is typed by hand.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.curves import draw_all, draw_together
from benchmarks.explain_cost import cost_text
from benchmarks.goals import goals_text
from benchmarks.jobs import read_lines
from benchmarks.page_compared import masks_text, shortcuts_text, systems_text, transfer_text
from benchmarks.page_engines import engines_text, mask_engines_text, rounding_text
from benchmarks.page_explain import explain_text
from benchmarks.page_maps import MEMORY_TEXT, SPEED_TEXT, maps_rows, maps_text, maps_verdict, memory_rows, speed_rows
from benchmarks.page_masks import tiles_text
from benchmarks.page_serve import serve_text
from benchmarks.page_speed import busy_text, precision_text, scale_text
from benchmarks.page_text import text_sections
from benchmarks.preset_scores import with_scores
from benchmarks.relations import relations_text
from benchmarks.small_data_table import Group, read_groups
from benchmarks.startup import startup_text
from benchmarks.time_to_accuracy import compared_groups, time_to_accuracy_text

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs"
PRESETS = ROOT / "src" / "mirada" / "config" / "presets"
# Around the pictures in docs/train.md.
BEGIN, END = "<!-- pictures of benchmarks/page.py -->", "<!-- end of pictures -->"
MASKED = "SDPA, same mask"
INTRODUCTION = (
    "Made by `python benchmarks/page.py` from the files in `benchmarks/results/`. The data of the benchmarks is public "
    "(CIFAR-10, Fashion-MNIST, Oxford-IIIT Pet, DSB 2018 nuclei, Tatoeba, Tiny Shakespeare, Cora and others) and lies "
    "in the folder that `MIRADA_TEST_DATA` names.\n"
)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def faster(ratio: list[float]) -> str:
    median, low, high = ratio
    return f"{median:.1f}×" if low > 1 or high < 1 else f"tie ({low:.2f}–{high:.2f})"


def page() -> str:
    parts = ["# Measurements\n", INTRODUCTION]
    training = (
        *(small_data_section, time_to_accuracy_section, shortcuts_section, systems_section, transfer_section),
        *(masks_section, mask_tiles_section, text_section, maps_section),
    )
    explaining = (explain_section, explain_cost_section, relations_section)
    speed = (
        *(profile_section, step_section, precision_section, engines_section, mask_engines_section),
        *(rounding_section, serve_section, startup_section, busy_section),
        *(scale_section, map_speed_section, map_memory_section),
    )
    sections = (
        lambda: goals_text(RESULTS),
        *training,
        *explaining,
        *speed,
        window_section,
        sparse_section,
        record_section,
        block_section,
        gat_section,
    )
    return "\n".join([*parts, *filter(None, (section() for section in sections))])


def core() -> dict:
    return read("core")


def read(name: str) -> dict:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def window_section() -> str:
    results = core()
    if "window" not in results:
        return ""
    machine = results["machine"]
    text = "## Window attention\n\n"
    text += (
        f"`make bench`: ±128 keys, 4 heads of 64, batch 1, {results['threads']} thread of {machine['processor']}, "
        f"torch {machine['torch']}; CPU time, all candidates interleaved in one process, with memory kept as in "
        "training. A matrix product reaches "
        f"{results['gemm_gflops']:.0f} GFLOP/s there. Dense is torch's `scaled_dot_product_attention`.\n\n"
    )
    for direction, title in (("forward", "Forward"), ("backward", "Forward and backward")):
        found = results["window"][direction]
        rows = [
            [
                f"{row['length']:,}",
                f"{row['ms']['window']:.0f} ms",
                *(
                    faster(row["faster_than"][name]) if name in row["faster_than"] else "–"
                    for name in (MASKED, "SDPA, full", "SDPA, causal")
                ),
                *(f"{row['peak_mb'][name]:.0f} MB" if name in row["peak_mb"] else "–" for name in ("window", MASKED)),
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


def profile_section() -> str:
    results = read("throughput")
    if "profile" not in results:
        return ""
    profiles, machine = results["profile"], results["machine"]
    first = next(iter(profiles.values()))
    rows = [[part, *(f"{100 * found['share'][part]:.1f} %" for found in profiles.values())] for part in first["share"]]
    outside = (f"**{100 * found['outside']:.1f} %**" for found in profiles.values())
    rows.append(["**outside forward, backward and optimiser**", *outside])
    rows.append(["an epoch", *(f"{found['seconds_per_epoch']:.2g} s" for found in profiles.values())])
    rows.append(["evaluation beside it", *(f"{100 * found['evaluation']:.1f} %" for found in profiles.values())])
    return (
        "## Where the time of an epoch goes\n\n"
        f"`make bench`: `mirada train` on {first['num_images']['train']:,} images of 32 × 32 × 3 in memory, "
        f"{first['epochs']} epochs with an evaluation and a checkpoint each (`tiny-images`: digits, many epochs, 20 "
        f"evaluations), {results['threads']} threads of {machine['processor']}, torch {machine['torch']}; wall "
        "time.\n\n"
    ) + table(["part", *(f"preset {name}" for name in profiles)], rows)


def step_section() -> str:
    results = read("throughput")
    found = results.get("step", {}).get("shapes")
    if not found:
        return ""
    names = list(next(iter(found.values()))["faster_than"])
    rows = [
        [
            label,
            f"{row['ms']['mirada']:.1f} ms",
            f"{100 * row['of_the_limit']:.0f} %",
            *(faster_or_not(row["faster_than"][name]) for name in names),
        ]
        for label, row in found.items()
    ]
    first = next(iter(found.values()))
    num_steps = first["rounds"] * first["calls"]
    return (
        "## Training step\n\nForward, loss, backward and fused AdamW of `vit` and of ViTs of the same shape elsewhere "
        "(linear patches, a class token, learned positions; timm's has the same number of parameters, others a few "
        f"norms or biases more or less), each in a process of its own with {results['threads']} threads, in turns; "
        f"wall time, {num_steps} steps each. Ours has the memory policy of `mirada train`; our model "
        "without it is in the table too. A ratio is their time over ours: the median of the pairs and their quartiles; "
        "then the share of what a product of 2048 × 2048 matrices reaches there "
        f"({results['step']['gemm_gflops']:.0f} GFLOP/s).\n\n"
    ) + table(["shape", "ours", "of a product's rate", *(f"than {name}" for name in names)], rows)


def faster_or_not(ratio: list[float]) -> str:
    median, low, high = ratio
    if low <= 1 <= high:
        return f"tie ({low:.2f}–{high:.2f})"
    return f"{median:.2f} ({low:.2f}–{high:.2f}), {'faster' if median > 1 else 'slower'}"


def small_data_section() -> str:
    groups = read_groups(RESULTS / "small_data.jsonl")
    if not groups:
        return ""
    rows = [
        [
            *(group.dataset, f"{group.minutes:g}", group.contender, f"{group.num_parameters:,}"),
            *(f"{group.epochs:.0f}", group.accuracy, str(len(group.jobs))),
        ]
        for group in groups
    ]
    text = (
        "## Small data, equal training time\n\n`python benchmarks/small_data.py`: test accuracy in % after so many "
        "minutes on two cores, mean over the seeds and 95 % interval of the mean. A name that ends in `adamw` is a "
        "recipe by AdamW, as the presets were before Muon.\n\n"
    )
    text += table(["data", "minutes", "contender", "parameters", "epochs", "accuracy", "seeds"], rows)
    return text + "\n" + pictures(groups)


def time_to_accuracy_section() -> str:
    text = time_to_accuracy_text(RESULTS)
    drawn = [draw_together(dataset, groups, DOCS / "images") for dataset, groups in compared_groups(RESULTS).items()]
    return text + "".join(f"\n![{reading}](images/{path.name})\n" for path, reading in drawn)


def shortcuts_section() -> str:
    return shortcuts_text(read("shortcuts"))


def systems_section() -> str:
    return systems_text(read("systems"))


def transfer_section() -> str:
    return transfer_text(read("transfer"))


def maps_section() -> str:
    head, rows, seeds = maps_rows(RESULTS)
    return maps_text(seeds) + table(head, rows) + maps_verdict(RESULTS) if rows else ""


def masks_section() -> str:
    return masks_text(read("masks"))


def mask_tiles_section() -> str:
    return tiles_text(read("mask_tiles"))


def explain_section() -> str:
    return explain_text(RESULTS)


def explain_cost_section() -> str:
    results = read("explain_cost")
    if not results:
        return ""
    return (
        "## What an explanation costs\n\n`python benchmarks/explain_cost.py`: in plain forwards of the same images on "
        "the fused kernels, in turns in one process, CPU time of one thread, median and quartiles. Memory is that of a "
        f"process that explains one image, libraries included.\n\n{cost_text(results)}\n"
    )


def relations_section() -> str:
    results = read("relations")
    if not results:
        return ""
    return (
        "## Heads and relations of words\n\n`python benchmarks/relations.py`: a small BERT "
        f"({results['num_parameters']:,} parameters, {results['steps']:,} steps) learns {results['lines']:,} Spanish "
        "sentences of a known grammar. The head is chosen on every other sentence of "
        f"{results['asked']:,} new ones and judged on the rest; the interval is Wilson's, 95 %.\n\n"
        f"{relations_text(results)}\n"
    )


def engines_section() -> str:
    return engines_text(read("engines"))


def mask_engines_section() -> str:
    return mask_engines_text(read("mask_engines"))


def rounding_section() -> str:
    return rounding_text(read_lines(RESULTS / "rounding.jsonl"))


def serve_section() -> str:
    return serve_text(read("serve_load"))


def startup_section() -> str:
    return startup_text(read("startup"))


def busy_section() -> str:
    return busy_text(read("busy"))


def precision_section() -> str:
    return precision_text(read("precision"))


def scale_section() -> str:
    return scale_text(read("scale_out"))


def map_speed_section() -> str:
    head, rows = speed_rows(RESULTS)
    return SPEED_TEXT + table(head, rows) if rows else ""


def map_memory_section() -> str:
    head, rows = memory_rows(RESULTS)
    return MEMORY_TEXT + table(head, rows) if rows else ""


def text_section() -> str:
    return text_sections(RESULTS, DOCS / "images")


def pictures(groups: list[Group]) -> str:
    """Accuracy against time, drawn into docs/images/, as Markdown."""
    drawn = draw_all(groups, DOCS / "images").values()
    images = "\n\n".join(f"![{reading}](images/{path.name})" for path, reading in drawn)
    return images + "\n\nLines are means over the seeds, bands reach from the lowest to the highest seed.\n"


def with_pictures(text: str) -> str:
    """The text of a page with the pictures between its two marks; without results it stays as it is."""
    groups = read_groups(RESULTS / "small_data.jsonl")
    if not groups:
        return text
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{pictures(groups)}\n{END}{after}"


def main() -> None:
    (DOCS / "measured.md").write_text(page())
    (DOCS / "train.md").write_text(with_pictures((DOCS / "train.md").read_text()))
    groups = read_groups(RESULTS / "small_data.jsonl", budgets=None)
    for file in sorted(PRESETS.glob("*.yaml")):
        file.write_text(with_scores(file.read_text(), file.stem, groups))
    sys.stdout.write(f"Written: {DOCS / 'measured.md'}, the pictures of {DOCS / 'train.md'}, the scores in {PRESETS}\n")


if __name__ == "__main__":
    main()
