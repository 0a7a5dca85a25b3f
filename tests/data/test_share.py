"""Shares of a batch: together they give the loss and the gradient of the whole."""

import pytest
import torch
from torch import nn

from mirada.data.batches import Batch
from mirada.data.masked_tokens import IGNORED
from mirada.data.share import SharedBatches
from mirada.machine.processes import Processes
from mirada.tasks.objective import measure_of, supervised
from mirada.tasks.regression import Regression
from mirada.tasks.single_label import SingleLabel
from mirada.tasks.tokens import Tokens


class Given:
    """One batch for ever."""

    def __init__(self, inputs, targets) -> None:
        self.one = Batch(inputs, targets, torch.arange(len(inputs)))
        self.epoch, self.step = 0, 0

    def __len__(self) -> int:
        return 5

    def __iter__(self):
        yield self.one
        self.epoch += 1

    def batch(self, epoch: int, step: int) -> Batch:
        return self.one


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 7)

    def forward(self, tokens, asked_BN):
        return (self.table(tokens) @ self.table.weight.T)[asked_BN]


def of_tokens(rows: int):
    tokens = torch.randint(11, (rows, 5))
    targets = tokens.roll(-1, 1)
    targets[0, :4], targets[-1, 2:] = IGNORED, IGNORED
    return tokens, targets, Words(), Tokens(label_smoothing=0.1)


def of_classes(rows: int):
    weights = torch.tensor([0.2, 1.0, 3.0])
    return torch.randn(rows, 7), torch.arange(rows) % 3, nn.Linear(7, 3), SingleLabel("abc", class_weights=weights)


def of_mixed_classes(rows: int):
    shares = torch.rand(rows, 3)
    return torch.randn(rows, 7), shares / shares.sum(1, keepdim=True), nn.Linear(7, 3), SingleLabel("abc")


def of_numbers(rows: int):
    return torch.randn(rows, 7), torch.randn(rows, 2), nn.Linear(7, 2), Regression(["a", "b"], [0.1, 0.3], [1.3, 0.7])


def learned(batch: Batch, model: nn.Module, objective) -> tuple[float, torch.Tensor]:
    model.zero_grad()
    loss = objective(model, batch.inputs, batch.targets) * batch.weight
    loss.backward()
    return loss.item(), torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("make", [of_tokens, of_classes, of_mixed_classes, of_numbers])
@pytest.mark.parametrize(("rows", "count"), [(12, 2), (13, 2), (13, 3), (2, 3)])
def test_the_mean_over_processes_is_that_of_one(make, rows, count):
    inputs, targets, model, task = make(rows)
    objective = getattr(task, "objective", None) or supervised(task)
    whole_loss, whole_gradient = learned(Batch(inputs, targets, torch.arange(rows)), model, objective)
    loss, gradient, seen = 0.0, torch.zeros_like(whole_gradient), []
    for rank in range(count):
        shared = SharedBatches(Given(inputs, targets), Processes(rank, count), measure_of(task))
        batch = shared.batch(0, 0)
        part_loss, part_gradient = learned(batch, model, objective)
        loss, gradient = loss + part_loss / count, gradient + part_gradient / count
        seen += batch.rows.tolist()
    assert seen == list(range(rows))
    assert loss == pytest.approx(whole_loss, rel=1e-6)
    torch.testing.assert_close(gradient, whole_gradient, rtol=1e-5, atol=1e-7)


def test_position_and_length_are_those_of_the_whole():
    whole = Given(torch.randn(6, 2), torch.zeros(6))
    shared = SharedBatches(whole, Processes(1, 2))
    shared.epoch, shared.step = 3, 1
    assert (whole.epoch, whole.step, len(shared)) == (3, 1, 5)
    (batch,) = shared
    assert batch.rows.tolist() == [3, 4, 5]
    assert batch.weight == 1.0
    assert shared.epoch == 4
