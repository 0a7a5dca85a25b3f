"""One small image is predicted by one thread, many by all of them."""

import numpy as np
import pytest
import torch

from mirada.verbs.load import load


@pytest.mark.parametrize(("items", "expected"), [(1, 1), (9, 2)])
def test_threads_of_a_prediction(run, monkeypatch, items, expected):
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    trained, seen = load(run), []
    trained.model.register_forward_pre_hook(lambda module, inputs: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        trained.of_pixels(np.zeros((items, 3, 8, 8), np.uint8))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen[-1] == expected
    if items == 1:
        assert trained.flops_of(torch.zeros(1, 3, 8, 8)) > 0
