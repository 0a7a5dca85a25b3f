"""Who goes through the model with whom, too many at once, and work that takes too long."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mirada.serve.turns import Turns
from tests.serve.untrained import picture

FILES = [("image", ("a.png", picture()))]


class Model:
    """Notes the batches that it is given; waits before each until it may go on."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.may_go_on = threading.Semaphore(0), threading.Semaphore(0)

    def doubled(self, numbers: list[int]) -> list[int]:
        self.begun.release()
        self.may_go_on.acquire()
        self.batches.append(numbers)
        if -1 in numbers:
            raise ValueError("a bad one")
        return [2 * number for number in numbers]


@pytest.fixture
def turns():
    made = Turns(most=4, linger=0.0)
    yield made
    made.close()


def test_what_came_while_the_model_was_busy_runs_together(turns):
    model = Model()

    async def ask() -> list:
        first = asyncio.create_task(turns.together(model.doubled, [1]))
        await asyncio.to_thread(model.begun.acquire)
        others = [asyncio.create_task(turns.together(model.doubled, n)) for n in ([2, 3], [4], [5, 6], [7])]
        await asyncio.sleep(0)
        model.may_go_on.release(9)
        return await asyncio.gather(first, *others)

    assert asyncio.run(ask()) == [[2], [4, 6], [8], [10, 12], [14]]
    assert model.batches == [[1], [2, 3, 4], [5, 6, 7]]


def test_one_that_fails_does_not_fail_the_others(turns):
    model = Model()

    async def ask() -> list:
        first = asyncio.create_task(turns.together(model.doubled, [1]))
        await asyncio.to_thread(model.begun.acquire)
        others = [asyncio.create_task(turns.together(model.doubled, n)) for n in ([2], [-1], [3])]
        await asyncio.sleep(0)
        model.may_go_on.release(9)
        return await asyncio.gather(first, *others, return_exceptions=True)

    first, second, bad, third = asyncio.run(ask())
    assert (first, second, third) == ([2], [4], [6]) and str(bad) == "a bad one"


def test_what_nobody_waits_for_any_more_is_not_done(turns):
    model = Model()

    async def ask() -> list[int]:
        first = asyncio.create_task(turns.together(model.doubled, [1]))
        await asyncio.to_thread(model.begun.acquire)
        gone = asyncio.create_task(turns.together(model.doubled, [2]))
        await asyncio.sleep(0)
        gone.cancel()
        last = asyncio.create_task(turns.alone(lambda: 3))
        await asyncio.sleep(0)
        model.may_go_on.release(9)
        return [*(await first), await last]

    assert asyncio.run(ask()) == [2, 3] and model.batches == [[1]]


@pytest.fixture
def held(monkeypatch) -> Model:
    """The model of the server waits until it may go on."""
    from mirada.tasks.single_label import SingleLabel

    model, answers = Model(), SingleLabel.answers

    def waits(task, logits):
        model.begun.release()
        model.may_go_on.acquire()
        return answers(task, logits)

    monkeypatch.setattr(SingleLabel, "answers", waits)
    return model


def test_too_many_at_once_are_refused_while_the_others_wait(run, served, held):
    client = served(run, waiting=2)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.post, "/predict", files=FILES)
        held.begun.acquire()
        second = pool.submit(client.post, "/predict", files=FILES)
        while "mirada_requests_in_progress 3" not in client.get("/metrics").text:  # both, and who asks
            pass
        for _ in range(5):
            refused = client.post("/predict", files=FILES)
            assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
            assert "2 requests are waiting" in refused.json()["error"]
        assert client.get("/health").status_code == 200
        held.may_go_on.release(9)
        assert first.result().status_code == second.result().status_code == 200
    assert client.post("/predict", files=FILES).status_code == 200
    assert "mirada_refused_total 5" in client.get("/metrics").text


def test_what_takes_too_long_is_given_up(run, served, held):
    client = served(run, seconds=0.3)
    answer = client.post("/predict", files=FILES)
    assert answer.status_code == 503 and "within 0.3 seconds" in answer.json()["error"]
    held.may_go_on.release(9)
    assert "mirada_given_up_total 1" in client.get("/metrics").text
