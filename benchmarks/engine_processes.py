"""Whole processes that predict, ours and those of others, in turns: what benchmarks/engines.py measures of files and of
starting. Each is charged what it and its children used, from its start to its end."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from benchmarks.peers import timm_vit
from benchmarks.timing import Timing, speed_up

SCRIPT = Path(__file__).with_name("engine_peers.py")
SIZE, CLASSES = 64, 4
# timm's ViT, whatever our preset for such data would take.
PLAIN = {"stem": "linear", "mlp_ratio": 4.0, "pooling": "class", "layer_scale": "null", "drop_path": 0.0}


@dataclass(frozen=True)
class Used:
    """By a process and its children."""

    seconds: float  # wall
    cpu_seconds: float
    peak_mb: float  # of the largest of them


def of_files(folder: Path, shape: dict, steps: int, num_files: int, repeats: int) -> dict:
    """`mirada predict RUN FOLDER` by its engines, and timm's script, in turns."""
    run = trained(folder, shape, steps)
    files = make_photos(folder / "files", num_files)
    mirada = [sys.executable, "-m", "mirada", "predict", str(run), str(files), "-o", str(folder / "answers.csv"), "-q"]
    commands = {
        f"mirada {name}": [*mirada, *options]
        for name, options in {
            "torch": (),
            "onnx float32": ("--engine", "onnx"),
            "onnx int8": ("--engine", "onnx", "--precision", "int8"),
            **({"openvino float32": ("--engine", "openvino")} if is_there("openvino") else {}),
        }.items()
    }
    if is_there("timm"):
        theirs = [sys.executable, str(SCRIPT), "timm-files", whole(shape), str(files), str(folder / "theirs.csv")]
        commands["timm"] = theirs
    measured = in_turns(commands, repeats)
    rounded = json.loads((run / "engines" / "onnx-int8" / "data.json").read_text())["onnx"]["held_out"]
    return {"num_files": num_files, "size": SIZE, "shape": shape, "int8": rounded, **measured}


def cold_start(folder: Path, shape: dict, steps: int, repeats: int) -> dict:
    """The first answer of a new process about one photo."""
    run = trained(folder, shape, steps)
    photo = next(make_photos(folder / "files", 1).rglob("*.jpg"))
    exported = folder / "exported"
    mirada = [sys.executable, "-m", "mirada"]
    subprocess.run([*mirada, "export", str(run), "--to", "onnx", "-o", str(exported), "-q"], check=True)
    commands = {
        "mirada predict, exported folder": [*mirada, "predict", str(exported), str(photo)],
        "mirada predict, run by torch": [*mirada, "predict", str(run), str(photo)],
        "import mirada": [sys.executable, "-c", "import mirada"],
        "python": [sys.executable, "-c", "pass"],
    }
    for name in ("timm", "transformers"):
        if is_there(name):
            commands[name] = [sys.executable, str(SCRIPT), name, whole(shape), str(photo)]
    return {"shape": shape, **in_turns(commands, repeats)}


def whole(shape: dict) -> str:
    return json.dumps({**shape, "image_size": SIZE, "num_classes": CLASSES})


def in_turns(commands: dict[str, list[str]], repeats: int) -> dict:
    """Medians of what each used, after a first time that makes files and fills caches; ratios to timm's wall time."""
    used: dict[str, list[Used]] = {name: [] for name in commands}
    for number in range(repeats + 1):
        for name in commands if number % 2 else reversed(commands):
            found = watched(commands[name])
            if number:
                used[name].append(found)
    rows = {name: {key: [getattr(one, key) for one in some] for key in asdict(some[0])} for name, some in used.items()}
    medians = {
        name: {key: statistics.median(numbers) for key, numbers in row.items()} | {"rounds": row}
        for name, row in rows.items()
    }
    ratios = {}
    if "timm" in rows:
        other = Timing(tuple(rows["timm"]["seconds"]))
        for name in rows:
            if name.startswith("mirada"):
                found = speed_up(Timing(tuple(rows[name]["seconds"])), other)
                ratios[name] = [found.median, found.low, found.high]
    return {"used": medians, "faster_than_timm": ratios}


# A process begins with the memory of the one that starts it on its account, so a small one does.
STARTER = """
import json, os, sys, time
started = time.perf_counter()
nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=nowhere)
_, status, used = os.wait4(process, 0)
seconds = time.perf_counter() - started
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def watched(command: list[str]) -> Used:
    """Run it to its end; its modules are compiled once, as on a user's machine, and not every time."""
    starter = [sys.executable, "-I", "-S", "-c", STARTER, *command]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ended = subprocess.run(starter, capture_output=True, text=True, env=environment)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{ended.stderr[-2000:]}")
    return Used(*json.loads(ended.stdout))


def is_there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def trained(folder: Path, shape: dict, steps: int) -> Path:
    """A ViT that tells how blurred photos are, which is soon learned; with as many weights as timm's of the shape."""
    import mirada

    photos = make_photos(folder / "photos", 40 + 4 * steps)
    size = f"data.image_size=[{SIZE},{SIZE}]"
    settings = [size, f"train.steps={steps}", "train.evaluations=1", "train.batch_size=16", "train.learning_rate=1e-3"]
    arguments = [f"system.arguments.{name}={value}" for name, value in (PLAIN | shape).items()]
    settings += ["baseline.name=none", "train.device=cpu", *arguments]
    run = mirada.train(photos, system="vit", settings=settings, out=folder / "run")
    require_same_size(json.loads((run.best / "model.json").read_text())["num_parameters"], shape)
    return run.path


def require_same_size(num_parameters: int, shape: dict) -> None:
    theirs = timm_vit(**json.loads(whole(shape)))
    if theirs is not None and (num := sum(weights.numel() for weights in theirs.parameters())) != num_parameters:
        sys.exit(f"Our ViT has {num_parameters:,} weights and timm's {num:,}: they are not the same model.")


def make_photos(folder: Path, num: int) -> Path:
    """folder/class<k>/<number>.jpg: noise, the more blurred the higher its class."""
    generator = np.random.default_rng(num)
    for number in range(num):
        kind = number % CLASSES
        pixels = generator.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
        path = folder / f"class{kind}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(0.5 + kind)).save(path, quality=90)
    return folder
