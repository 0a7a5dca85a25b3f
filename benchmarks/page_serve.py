"""What the measurements page says about serving."""

from __future__ import annotations

import statistics


def serve_text(results: dict) -> str:
    """Throughput beside offline, waiting times, and what happens to requests that are too many."""
    if not results:
        return ""
    served, overload, machine = results["served"], results["overload"], results["machine"]
    per_second = statistics.median(one["answered"]["per_second"] for one in served)
    alone = statistics.median(one["per_second"] for one in results["offline"])
    refused, answered = (overload[name]["per_second"] for name in ("refused", "answered"))
    size = f":{results['size']}" if results["size"] else ""
    rows = [
        ["offline, `mirada.load(run).rows(files)`", f"{alone:.1f}", "", "", ""],
        [
            f"served to {results['clients']} clients",
            f"{per_second:.1f}",
            *(f"{statistics.median(one['answered'][part] for one in served):.0f} ms" for part in ("p50_ms", "p99_ms")),
            str(results["errors"]),
        ],
    ]
    head = ["", "images per second", "p50", "p99", "errors"]
    table = "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])
    text = (
        "## Serving\n\n`python benchmarks/serve_load.py`: "
        f"`{results['system']}{size}` ({results['num_parameters']:,} parameters) on JPEG files of "
        f"{results['image_size']} px, decoding included, {results['cores']} cores of {machine['processor']}, torch "
        f"{machine['torch']}; {len(served)} rounds of {results['seconds']:g} s each, in turns; clients share the cores"
        f" with the server.\n\n{table}\n\nServed over offline: **{100 * results['ratio']:.0f} %** (rounds: "
        f"{', '.join(f'{100 * ratio:.0f} %' for ratio in results['ratios'])}); by CPU time of an image, "
        f"{100 * results['cpu_ratio']:.0f} %.\n"
    )
    if refused:
        text += (
            f"\nWhen only {overload['waiting']} requests may wait, {100 * refused / (refused + answered):.0f} % are "
            f"refused with 503, after {overload['refused']['p50_ms']:.1f} ms (p99 "
            f"{overload['refused']['p99_ms']:.0f} ms); {answered:.1f} images per second are still answered, and "
            f"{overload['errors']} requests fail otherwise.\n"
        )
    return text
