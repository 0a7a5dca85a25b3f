"""How many images a served run answers beside the same model offline: `python benchmarks/serve_load.py`.

Trains a small ViT on generated photos of 224 px for a few steps (how good it is does not matter), then in turns lets
`mirada.load(run).rows(files)` answer, and 32 clients of `mirada serve` on the same JPEG files, each in a process of
their own. At last the server may hold only few requests, and the refusals are counted and timed.

    --try      a few seconds in all, on a busy machine too, into the temporary folder: to see that it works
    --run RUN  another run of images instead
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from PIL import Image, ImageFilter

from benchmarks.jobs import RESULTS, busy_share, require_idle, told, write_whole
from benchmarks.timing import machine

CLIENTS, OVERLOAD_WAITING = 32, 4
SIZE, NUM_FILES, CLASSES = 224, 256, 4
BOUNDARY = "serve-load-boundary"


def make_photos(folder: Path, num: int = NUM_FILES) -> list[Path]:
    """folder/<class>/<number>.jpg: soft colours with an edge, so that they compress as photos do."""
    generator = np.random.default_rng(0)
    files = []
    for number in range(num):
        kind = number % CLASSES
        pixels = generator.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
        image = Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(1 + kind))
        path = folder / f"class{kind}" / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, quality=90)
        files.append(path)
    return files


def train(folder: Path, photos: Path) -> Path:
    import mirada

    settings = [f"data.image_size=[{SIZE},{SIZE}]", "train.steps=4", "train.evaluations=1", "train.batch_size=16"]
    arguments = ["system.arguments.patch_size=16", "baseline.name=none", "train.device=cpu"]
    return mirada.train(photos, system="vit:mini", settings=[*settings, *arguments], out=folder / "run").path


@contextmanager
def serving(run: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Port and process of a server of the run, which is ended afterwards."""
    command = [sys.executable, "-m", "mirada", "serve", str(run), "--port", "0", "--device", "cpu", *options]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if " answers at " not in said:
                sys.exit("`mirada serve` did not start; try it by hand.")
            yield int(said.split("127.0.0.1:")[1].split(";")[0]), process.pid
        finally:
            process.terminate()
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def cpu_seconds(process: int) -> float:
    """What a process has used so far, all of its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def offline(run: Path, files: list[Path], seconds: float) -> dict:
    """Images per second and CPU time of one, by the model in this process: files are read and decoded."""
    import mirada

    trained = mirada.load(run, device="cpu")
    names = [str(file) for file in files]
    trained.rows(names[:64])
    start, used, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < seconds:
        trained.rows(names)
        done += len(names)
    used = time.process_time() - used
    return {"per_second": done / (time.perf_counter() - start), "cpu_ms": 1000 * used / done}


def in_process(job: dict) -> dict:
    """This script again, for one round: neither round inherits threads or caches of another."""
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def request_of(path: Path, port: int) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="{path.name}"\r\n\r\n'
    body = head.encode() + path.read_bytes() + f"\r\n--{BOUNDARY}--\r\n".encode()
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    lines = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\n"
    return f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def client(
    port: int, requests: list[bytes], first: int, until: float, seen: list[tuple[int, float, float]]
) -> None:
    """Asks on one connection after the other is answered; a connection that ends is opened again, and counted."""
    number, reader, writer = first, None, None
    while time.perf_counter() < until:
        start = time.perf_counter()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert reader is not None
            writer.write(requests[number % len(requests)])
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            status = int(head.split(b" ", 2)[1])
        except (OSError, asyncio.IncompleteReadError, StopIteration):
            status, writer = 0, None
        seen.append((status, start, time.perf_counter()))
        number += CLIENTS
    if writer is not None:
        writer.close()


async def load(port: int, server: int, files: list[Path], seconds: float) -> dict:
    """What so many clients see in this time, after a second that does not count."""
    requests = [request_of(file, port) for file in files]
    begin = time.perf_counter() + 1
    used = cpu_seconds(server)
    seen: list[tuple[int, float, float]] = []
    await asyncio.gather(*(client(port, requests, first, begin + seconds, seen) for first in range(CLIENTS)))
    used = cpu_seconds(server) - used
    counted = [(status, end - start) for status, start, end in seen if begin <= end <= begin + seconds]
    found: dict = {"seconds": seconds, "statuses": {str(s): n for s, n in Counter(s for s, _ in counted).items()}}
    for name, wanted in (("answered", {200}), ("refused", {429, 503})):
        taken = sorted(1000 * time for status, time in counted if status in wanted)
        found[name] = {"per_second": len(taken) / seconds, "p50_ms": _part(taken, 0.5), "p99_ms": _part(taken, 0.99)}
    # Of all requests, the first second included: the server cannot tell its seconds apart.
    found["cpu_ms"] = 1000 * used / max(1, sum(status == 200 for status, _, _ in seen))
    found["errors"] = sum(status not in (200, 429, 503) for status, _ in counted)
    return found


def _part(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def run_job(job: dict) -> dict:
    files = [Path(file) for file in job["files"]]
    if job["what"] == "offline":
        return offline(Path(job["run"]), files, job["seconds"])
    return asyncio.run(load(job["port"], job["server"], files, job["seconds"]))


def measure(run: Path, files: list[Path], rounds: int, seconds: float, overload_seconds: float, is_trial: bool) -> dict:
    """Before every round the machine must be idle: neighbours slow the two sides differently, by ten times and more."""
    busy_of = busy_share if is_trial else require_idle
    job = {"run": str(run), "files": [str(file) for file in files], "seconds": seconds}
    alone, served, busy = [], [], []
    for number in range(rounds):
        busy.append(busy_of())
        alone.append(in_process(job | {"what": "offline"}))
        with serving(run) as (port, server):
            busy.append(busy_of())
            served.append(in_process(job | {"what": "served", "port": port, "server": server}))
        print(f"round {number + 1} of {rounds} is done", flush=True)
    with serving(run, "--waiting", str(OVERLOAD_WAITING)) as (port, server):
        busy.append(busy_of())
        asked = {"what": "served", "port": port, "server": server, "seconds": overload_seconds}
        overload = in_process(job | asked)
    pairs = list(zip(served, alone, strict=True))
    ratios = [one["answered"]["per_second"] / other["per_second"] for one, other in pairs]
    return {
        "clients": CLIENTS,
        "image_size": SIZE,
        "num_files": len(files),
        "cores": len(os.sched_getaffinity(0)),
        "seconds": seconds,
        "busy": busy,
        "offline": alone,
        "served": served,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "cpu_ratio": statistics.median(other["cpu_ms"] / one["cpu_ms"] for one, other in pairs),
        "errors": sum(one["errors"] for one in served),
        "overload": overload | {"waiting": OVERLOAD_WAITING},
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--try", dest="is_trial", action="store_true")
    words.add_argument("--run", type=Path)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--job", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.job:
        print(json.dumps(run_job(json.loads(given.job))))
        return
    if not given.is_trial:
        require_idle()
    with tempfile.TemporaryDirectory(prefix="serve-load-") as folder:
        files = make_photos(Path(folder) / "photos", 32 if given.is_trial else NUM_FILES)
        run = given.run or train(Path(folder), Path(folder) / "photos")
        rounds, seconds, overload = (1, 3.0, 2.0) if given.is_trial else (given.rounds, 60.0, 20.0)
        found = measure(run, files, rounds, seconds, overload, given.is_trial)
        model = json.loads((run / "best" / "model.json").read_text())
    about = {"machine": machine(), "system": model["system"], "size": model["size"]}
    name = "try_serve_load" if given.is_trial else "serve_load"
    place = Path(tempfile.gettempdir()) if given.is_trial else RESULTS
    write_whole(place / f"{name}.json", about | {"num_parameters": model["num_parameters"]} | found)
    said = "It works; its numbers mean nothing" if given.is_trial else f"Served {100 * found['ratio']:.0f} % of offline"
    print(f"{said}; written: {place / name}.json")


if __name__ == "__main__":
    told(main)
