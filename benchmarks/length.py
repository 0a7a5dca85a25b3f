"""Does a recurrent net forget long sentences, and does attention help? After Bahdanau 2015, figure 2, in small.

    python benchmarks/length.py             everything that is missing, a few minutes
    python benchmarks/length.py --table     only print what there is, and draw it
    python benchmarks/length.py --try       a few steps of a small net

The task is to reverse a row of random letters. A GRU with additive attention and the same GRU without it see the same
rows, of 2 to 30 letters, for the same number of steps; they are asked to reverse new rows of every length, letter by
letter. Without attention all of a row must fit into one state. Numbers are appended to benchmarks/results/length.jsonl,
the picture is docs/images/length.png.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import jobs
from benchmarks.jobs import ROOT, append_line, read_lines, run_all
from benchmarks.length_figure import draw_file, finding
from mirada import systems
from mirada.tasks.search import greedy

PAD, START, END, LETTERS = 0, 1, 2, 20
SHORTEST, LONGEST = 2, 30
CONTENDERS = {"attention": "additive", "no attention": "none"}
MEASURED = {"dim": 96, "steps": 1000, "batch": 64, "rate": 3e-3, "asked": 200}
TRIED = {"dim": 16, "steps": 3, "batch": 8, "rate": 3e-3, "asked": 5}
SEEDS = (0, 1)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=2, help="trainings at a time, one thread each")
    parser.add_argument("--try", action="store_true", dest="is_tried", help="a few steps of a small net, kept apart")
    parser.add_argument("--table", action="store_true", help="print and draw the results so far and stop")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.job:
        run_job(json.loads(args.job))
        return
    wanted = [
        {"contender": name, "seed": seed, **(TRIED if args.is_tried else MEASURED)}
        for seed in (SEEDS[:1] if args.is_tried else SEEDS)
        for name in CONTENDERS
    ]
    missing = [key for key in wanted if not any(key.items() <= job.items() for job in read_lines(file_of(key)))]
    if not args.table and args.at_once == 1:
        for key in missing:
            run_job(key)
    elif not args.table:
        run_all(__file__, missing, args.at_once)
    found = read_lines(file_of(wanted[0]))
    if found:
        print(finding(found))
    if found and not args.is_tried:
        draw_file(file_of(wanted[0]), ROOT / "docs" / "images")


def file_of(key: dict) -> Path:
    folder = jobs.RUNS / "length-try" if key["steps"] == TRIED["steps"] else jobs.RESULTS
    return folder / "length.jsonl"


def run_job(key: dict) -> None:
    begin = time.process_time()
    model = trained(key)
    lengths = range(SHORTEST, LONGEST + 1, 2)
    by_length = {length: accuracy(model, length, key["asked"]) for length in lengths}
    job = {
        **key,
        "num_parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": round(time.process_time() - begin, 1),
        "letters_right": {length: letters for length, (letters, _) in by_length.items()},
        "rows_right": {length: rows for length, (_, rows) in by_length.items()},
    }
    file_of(key).parent.mkdir(parents=True, exist_ok=True)
    append_line(file_of(key), job)


def rows(count: int, length: int, generator: torch.Generator) -> Tensor:
    return torch.randint(END + 1, END + 1 + LETTERS, (count, length), generator=generator)


def trained(key: dict) -> nn.Module:
    """All rows of a batch are of one length, so that nothing is padded."""
    torch.manual_seed(key["seed"])
    model = systems.create(
        "seq2seq",
        num_tokens=END + 1 + LETTERS,
        pad=PAD,
        dim=key["dim"],
        score=CONTENDERS[key["contender"]],
        dropout=0.0,
    ).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=key["rate"], betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, key["rate"], key["steps"], pct_start=0.1)
    generator = torch.Generator().manual_seed(key["seed"])
    for step in range(key["steps"]):
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        source = rows(key["batch"], length, generator)
        target = F.pad(source.flip(1), (0, 1), value=END)
        logits = model(F.pad(source, (0, 1), value=END), F.pad(target[:, :-1], (1, 0), value=START))
        loss = F.cross_entropy(logits.mT, target)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 200 == 0:
            print(f"{key['contender']}, seed {key['seed']}: {step}/{key['steps']} loss {loss.item():.3f}", flush=True)
    return model.eval()


def accuracy(model: nn.Module, length: int, count: int) -> tuple[float, float]:
    """Shares of letters and of whole rows that are right, of rows that no seed has seen in training."""
    source = rows(count, length, torch.Generator().manual_seed(10_000 + length))
    written = greedy(model, F.pad(source, (0, 1), value=END), start=START, end=END, max_length=length + 1)  # type: ignore[arg-type]
    said = torch.tensor([(each.tokens + [PAD] * length)[:length] for each in written])
    is_right = said == source.flip(1)
    whole = is_right.all(1) & torch.tensor([each.is_finished and len(each.tokens) == length for each in written])
    return is_right.double().mean().item(), whole.double().mean().item()


if __name__ == "__main__":
    main()
