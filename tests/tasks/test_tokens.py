"""Predicted tokens are counted by hand, in pieces as at once; where nothing is asked for, that is said."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from mirada.data.batches import Batch
from mirada.data.masked_tokens import IGNORED
from mirada.errors import MiradaError
from mirada.systems import card, create
from mirada.tasks import tokens
from mirada.tasks.tokens import Neighbouring, Tally, Tokens, Translated

CPU, PAD, T = torch.device("cpu"), 0, 13
TASKS = {"gpt": Tokens(label_smoothing=0.1), "bert": Tokens(), "transformer": Translated(pad=PAD, label_smoothing=0.1)}


def model_of(name: str):
    torch.manual_seed(3)
    return create(name, **{**card(name).tiny, "num_tokens": T}).eval()


def batches_of(name: str) -> list[Batch]:
    """Of 5 and 2 rows; of the masked ones a third is asked for, and nothing of one row."""
    found = []
    for count, length, first in ((5, 7, 0), (2, 4, 5)):
        inputs, targets = torch.randint(1, T, (2, count, length), generator=torch.Generator().manual_seed(count))
        if name == "bert":
            targets = targets.masked_fill(targets % 3 != 0, IGNORED)
            targets[1] = IGNORED
        if name == "transformer":
            targets[1, 3:] = PAD
        found.append(Batch(inputs, targets, torch.arange(first, first + count)))
    return found


def all_logits(name: str, model, batch: Batch):
    """(logits_BNT, wanted_BN) at all places."""
    if name != "transformer":
        return model(batch.inputs), batch.targets
    wanted = batch.targets[:, 1:]
    return model(batch.inputs, batch.targets[:, :-1]), wanted.masked_fill(wanted == PAD, IGNORED)


@pytest.mark.parametrize("name", TASKS)
def test_the_loss_is_that_of_all_logits(name):
    model, task, batch = model_of(name), TASKS[name], batches_of(name)[0]
    logits, wanted = all_logits(name, model, batch)
    expected = F.cross_entropy(logits.mT, wanted, ignore_index=IGNORED, label_smoothing=task.label_smoothing)
    torch.testing.assert_close(task.objective(model, batch.inputs, batch.targets), expected)


@pytest.mark.parametrize("at_once", [1, 6 * T, 9 * T, 2**25])
@pytest.mark.parametrize("name", TASKS)
def test_a_tally_in_pieces_is_that_of_all_logits(name, at_once, monkeypatch):
    monkeypatch.setattr(tokens, "LOGITS_AT_ONCE", at_once)
    model, batches, sizes = model_of(name), batches_of(name), []
    model.register_forward_hook(lambda _, inputs, logits: sizes.append((len(inputs[0]), logits.numel())))
    tally = TASKS[name].tally(model, iter(batches), CPU)
    assert all(rows == 1 or numel <= at_once for rows, numel in sizes)
    for batch in batches:
        with torch.no_grad():
            logits, wanted = all_logits(name, model, batch)
        asked = wanted != IGNORED
        nats = F.cross_entropy(logits.mT, wanted, ignore_index=IGNORED, reduction="none").sum(1)
        np.testing.assert_allclose(tally.nats_S[batch.rows], nats, rtol=1e-5)
        assert tally.count_S[batch.rows].tolist() == asked.sum(1).tolist()
        assert tally.right_S[batch.rows].tolist() == ((logits.argmax(-1) == wanted) & asked).sum(1).tolist()
    assert tally.row_S.tolist() == list(range(7))


def test_rows_without_asked_tokens_count_for_nothing():
    """Most draws of the bootstrap would have none but them."""
    nats, count = np.array([0, 6.0, 0, 0, 0]), np.array([0, 3, 0, 0, 0])
    result = Tokens().result(Tally(nats, count, np.array([0, 1, 0, 0, 0]), np.arange(5)))
    assert result["low"] == result["value"] == result["high"] == pytest.approx(math.exp(2))
    assert (result["n"], result["num_tokens_asked"], result["token_accuracy"]) == (1, 3, pytest.approx(1 / 3))


@pytest.mark.parametrize("task", [Tokens().tally, Neighbouring().quick], ids=["tokens", "neighbours"])
def test_no_batches_are_refused(task):
    with pytest.raises(MiradaError, match="no token to ask for"):
        task(model_of("gpt"), iter([]), CPU)


def test_nothing_asked_is_refused():
    batch = batches_of("bert")[0]
    nothing = Batch(batch.inputs, torch.full_like(batch.targets, IGNORED), batch.rows)
    with pytest.raises(MiradaError, match="no token to ask for"):
        Tokens().tally(model_of("bert"), [nothing], CPU)
