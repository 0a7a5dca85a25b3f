"""The training loop: one readable function on Accelerate. Every step is a function of (weights, seed, step), so a run
that is stopped anywhere and resumed ends in the same bits as one that was not.
"""

from __future__ import annotations

import copy
import logging
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from mirada.data.batches import Batch, Batches
from mirada.errors import MiradaError
from mirada.machine.memory import kept_for_reuse
from mirada.machine.processes import others_needed, together
from mirada.tasks.image import Task
from mirada.tasks.objective import Objective, supervised
from mirada.train.average import STRIDE, LastMean, MovingAverage
from mirada.train.checkpoint import load_header, load_optimiser, load_tensors, optimiser_tensors, save_tensors
from mirada.train.files import remove_partials
from mirada.train.folder import RunFolder
from mirada.train.optimiser import OptimiserName, make_optimiser
from mirada.train.schedule import Schedule, learning_rate
from mirada.train.sharding import Sharding, fill, load_into, place_optimiser, shard, whole
from mirada.train.stopping import StopRequest
from mirada.train.synced_norm import synchronise

log = logging.getLogger(__name__)

ChooseBy = Literal["metric", "loss"]
Evaluate = Callable[[nn.Module], dict[str, float]]
OTHER_SEEDS = 2**32  # between processes: those of one process stay what they are


@dataclass(frozen=True)
class Recipe:
    """How to train, whatever the model."""

    steps: int
    evaluate_every: int  # steps
    optimiser: OptimiserName = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: Schedule = "cosine"
    warmup: int = 0  # steps
    average: float = 0.0  # β of the moving average of the weights; 0: none
    average_last: int = 0  # how many of the last evaluated weights are averaged at the end; 0: none
    clip: float = 0.0  # largest norm of the gradient; 0: no limit
    accumulate: int = 1  # batches per step
    choose_by: ChooseBy = "metric"
    patience: int = 0  # evaluations without improvement before stopping; 0: never
    checkpoint_seconds: float = 60.0
    seed: int = 0
    fused: bool = True  # one update of all weights at once
    sharding: Sharding = "none"  # what processes that train together divide besides the batch


@dataclass(frozen=True)
class Progress:
    """What a watcher is told after every step."""

    step: int
    steps: int
    epoch: int
    samples: int
    seconds: float
    train_loss: float
    learning_rate: float
    evaluation: dict | None  # the latest row of metrics.csv
    is_evaluated: bool  # that row is of this very step


@dataclass
class State:
    """What a checkpoint holds beside tensors."""

    step: int = 0
    samples: int = 0
    seconds: float = 0.0  # spent in training steps, evaluations excluded
    loss_sum: float = 0.0  # since the last evaluation
    loss_count: int = 0
    best: float | None = None
    best_step: int = 0
    best_is_mean: bool = False  # the weights kept are the mean of the last evaluated ones
    stale: int = 0  # evaluations since the best one
    is_finished: bool = False
    optimiser: str = ""  # whose state is saved beside


class Training:
    """Everything that changes while a model is trained."""

    def __init__(self, model: nn.Module, recipe: Recipe, folder: RunFolder, accelerator: Accelerator) -> None:
        self.recipe, self.folder, self.accelerator = recipe, folder, accelerator
        self.processes = together()
        self.processes.copy_first(model.state_dict().values())
        if self.processes.count > 1:
            synchronise(model)
        self.is_sharded = recipe.sharding == "full" and self.processes.count > 1
        if self.is_sharded:
            self.evaluated = copy.deepcopy(model).to(accelerator.device)
            shard(model.to(accelerator.device))
        optimiser = make_optimiser(
            recipe.optimiser,
            model,
            learning_rate=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            betas=recipe.betas,
            fused=recipe.fused,
            processes=self.processes,
        )
        self.model, self.optimiser = model, optimiser
        if not self.is_sharded:
            self.model, self.optimiser = accelerator.prepare(model, optimiser)
        self.plain: nn.Module = accelerator.unwrap_model(self.model)
        copied = self.evaluated if self.is_sharded else self.plain
        # An average that has not moved since the last evaluation would look like one that does not improve.
        stride = min(STRIDE, recipe.evaluate_every)
        self.average = MovingAverage(copied, recipe.average, stride) if recipe.average else None
        if self.is_sharded and self.average is not None:
            shard(self.average.module)
            self.average.follow(model)
        self.last = LastMean(recipe.average_last)
        self.state = State(optimiser=recipe.optimiser)
        self.rows: list[dict] = []

    @property
    def kept(self) -> nn.Module:
        """The weights that are evaluated and kept; where they are divided, a whole copy, which all must ask for."""
        followed = self.plain if self.average is None else self.average.module
        return fill(self.evaluated, followed) if self.is_sharded else followed

    def restore(self) -> None:
        """Continue from last/, if it is there."""
        if self.processes.is_first:
            remove_partials(self.folder.path)
        if not self.folder.state.exists():
            return
        tensors, header = load_tensors(self.folder.state), load_header(self.folder.state)
        saved_by, now = header.get("optimiser"), self.recipe.optimiser
        if saved_by and saved_by != now:
            raise MiradaError(
                f"{self.folder.state}: was saved by train.optimiser={saved_by}, and config.yaml says {now}; set it "
                "back, or train another run."
            )
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "optimiser": {}, "last": {}}
        for name, tensor in tensors.items():
            part, rest = name.split(".", 1)
            parts[part][rest] = tensor
        try:
            load_into(self.plain, parts["model"])
            if self.average is not None:
                load_into(self.average.module, parts["average"])
        except RuntimeError as error:
            raise MiradaError(
                f"{self.folder.state}: does not fit the model of this run; was config.yaml edited?"
            ) from error
        load_optimiser(self.optimiser, place_optimiser(self.optimiser, parts["optimiser"]))
        self.last.load(parts["last"])
        self.state = State(**{**header, "optimiser": now})
        self.rows = [row for row in self.folder.read_metrics() if int(row["step"]) <= self.state.step]
        log.info("continuing after step %d of %d", self.state.step, self.recipe.steps)

    def save(self) -> None:
        if not (self.processes.is_first or self.is_sharded):  # what is divided is collected from all
            return
        tensors = {f"model.{name}": tensor for name, tensor in self.plain.state_dict().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.module.state_dict().items()}
        tensors |= {f"optimiser.{name}": tensor for name, tensor in optimiser_tensors(self.optimiser).items()}
        tensors |= {f"last.{name}": tensor for name, tensor in self.last.tensors().items()}
        tensors = {name: whole(tensor) for name, tensor in tensors.items()}
        if not self.processes.is_first:
            return
        self.folder.write_metrics(self.rows)
        save_tensors(self.folder.state, tensors, asdict(self.state))

    def step(self, objective: Objective, batches: Iterator[Batch]) -> float:
        """One update of the weights, from `accumulate` batches."""
        recipe, state = self.recipe, self.state
        started = time.monotonic()
        rate = learning_rate(
            state.step, peak=recipe.learning_rate, total=recipe.steps, warmup=recipe.warmup, schedule=recipe.schedule
        )
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        # Dropout and the like draw from the global generator: seeding it by the step makes them resumable.
        seed = recipe.seed * 1_000_003 + state.step + OTHER_SEEDS * self.processes.rank
        # torch.manual_seed does the same on a CPU, but writes down a stack trace for devices that are not there.
        (torch.default_generator if self.accelerator.device.type == "cpu" else torch).manual_seed(seed)
        loss, samples = 0.0, 0.0
        for number in range(recipe.accumulate):
            batch = next(batches)
            inputs, targets = (t.to(self.accelerator.device) for t in (batch.inputs, batch.targets))
            is_last = number == recipe.accumulate - 1  # gradients go to other processes once a step
            with nullcontext() if is_last else self.accelerator.no_sync(self.model):
                with self.accelerator.autocast():
                    share = objective(self.model, inputs, targets) / recipe.accumulate
                if batch.weight != 1.0:
                    share = share * batch.weight
                self.accelerator.backward(share)
            loss, samples = loss + share.item(), samples + len(batch.rows)
        loss, samples = self.processes.sums(loss, samples)
        loss, state.samples = loss / self.processes.count, state.samples + int(samples)
        if recipe.clip:
            self.accelerator.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update(state.step)
        if not math.isfinite(loss):
            raise MiradaError(
                f"{self.folder.path}: the loss became {loss} at step {state.step}; lower train.learning_rate "
                f"(now {recipe.learning_rate:g}) or set train.clip=1.0. What was saved before is intact."
            )
        state.step += 1
        state.loss_sum, state.loss_count = state.loss_sum + loss, state.loss_count + 1
        state.seconds += time.monotonic() - started
        return loss

    def evaluate(self, evaluate: Evaluate, metric: str, epoch: float) -> None:
        """Add a row to the metrics, keep the weights if they are the best so far, and notice when to stop."""
        state, recipe = self.state, self.recipe
        kept = self.kept
        watched = self.processes.as_first(evaluate(kept))
        self.model.train()
        self.rows.append(
            {
                "step": state.step,
                "epoch": round(epoch, 3),
                "seconds": round(state.seconds, 2),
                "samples": state.samples,
                "learning_rate": self.optimiser.param_groups[0]["lr"],
                "train_loss": state.loss_sum / state.loss_count,
                **{f"val_{name}": value for name, value in watched.items()},
            }
        )
        state.loss_sum, state.loss_count = 0.0, 0
        log.info("step %d: %s", state.step, _described(watched))
        state.stale = 0 if self._keep_if_best(kept, watched, metric) else state.stale + 1
        state.is_finished = state.step >= recipe.steps or bool(recipe.patience and state.stale >= recipe.patience)
        if recipe.average_last:
            self.last.add(kept)
            if state.is_finished and len(self.last.kept) > 1:
                self._try_mean(kept, evaluate, metric)
        if state.is_finished and state.best is None:
            raise MiradaError(
                f"{self.folder.path}: every evaluation gave {watched}, so there are no weights to keep; lower "
                f"train.learning_rate (now {recipe.learning_rate:g}) or set train.clip=1.0."
            )

    def _try_mean(self, kept: nn.Module, evaluate: Evaluate, metric: str) -> None:
        """metrics.csv has a row for every evaluated step; the mean, which is of no step, stands in the state only."""
        mean = self.last.mean(kept)
        watched = self.processes.as_first(evaluate(mean))
        self.state.best_is_mean = self._keep_if_best(mean, watched, metric)
        words = "the best, and kept" if self.state.best_is_mean else "not the best, so it is not kept"
        log.info("mean of the last %d: %s: %s", len(self.last.kept), _described(watched), words)

    def _keep_if_best(self, model: nn.Module, watched: dict[str, float], metric: str) -> bool:
        state = self.state
        value = watched[metric] if self.recipe.choose_by == "metric" else -watched["loss"]
        if math.isnan(value) or (state.best is not None and value <= state.best):
            return False
        state.best, state.best_step = value, state.step
        if self.processes.is_first:
            save_tensors(self.folder.best / "model.safetensors", model.state_dict())
        return True


def fit(
    model: nn.Module,
    task: Task,
    batches: Batches,
    evaluate: Evaluate,
    recipe: Recipe,
    folder: RunFolder,
    *,
    objective: Objective | None = None,
    accelerator: Accelerator | None = None,
    stop: StopRequest | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> State:
    """Train for `recipe.steps`, keeping the best evaluated weights in best/ and all state in last/.

    If last/ has a state, training continues from it. Without an `objective` the loss of the task is made small.
    """
    with others_needed(), kept_for_reuse():
        training = Training(model, recipe, folder, accelerator or Accelerator())
        training.restore()
        return _fit(training, task, batches, evaluate, objective or supervised(task), stop, watch)


def _fit(
    training: Training,
    task: Task,
    batches: Batches,
    evaluate: Evaluate,
    objective: Objective,
    stop: StopRequest | None,
    watch: Callable[[Progress], None] | None,
) -> State:
    recipe, folder, processes = training.recipe, training.folder, training.processes
    state = training.state
    stream = endless(batches, state.step * recipe.accumulate)
    saved = time.monotonic()
    training.model.train()
    while not state.is_finished:
        loss = training.step(objective, stream)
        epoch = state.step * recipe.accumulate / len(batches)
        is_evaluated = state.step % recipe.evaluate_every == 0 or state.step >= recipe.steps
        if is_evaluated:
            training.evaluate(evaluate, task.metric, epoch)
        if watch is not None:
            rate, latest = training.optimiser.param_groups[0]["lr"], training.rows[-1] if training.rows else None
            watch(
                Progress(
                    state.step, recipe.steps, int(epoch), state.samples, state.seconds, loss, rate, latest, is_evaluated
                )
            )
        is_due = time.monotonic() - saved > recipe.checkpoint_seconds
        is_asked, is_due = processes.any(stop is not None and stop.is_requested, is_due)
        if is_evaluated or is_asked or is_due:
            training.save()
            saved = time.monotonic()
        if stop is not None and is_asked and not state.is_finished:
            if not stop.is_requested:  # but another process was asked
                stop.request(signal.SIGTERM)
            raise stop.exception(folder.path)
    return state


def _described(watched: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in watched.items())


def endless(batches: Batches, position: int) -> Iterator[Batch]:
    """Epoch after epoch, from the given number of batches on."""
    batches.epoch, batches.step = divmod(position, len(batches))
    while True:
        yield from batches
