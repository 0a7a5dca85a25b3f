"""C12: on a task that needs order, attention without positions is at chance and every position solves it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import (
    Appended,
    Attention,
    BiasTable,
    Concatenated,
    Learned,
    Places,
    Rotary,
    Shaw,
    Sinusoidal,
    plane,
)

HEIGHT, WIDTH, DIM, HEADS, VOCABULARY = 3, 4, 16, 2, 7
LENGTH, HEAD_DIM = HEIGHT * WIDTH, DIM // HEADS


def which_comes_first(num_samples: int) -> tuple[Tensor, Tensor]:
    """Tokens 0 and 1 planted among others; the class is whether 0 comes before 1."""
    token_BN = torch.randint(2, VOCABULARY, (num_samples, LENGTH))
    spot_B2 = torch.rand(num_samples, LENGTH).argsort(-1)[:, :2]
    token_BN.scatter_(1, spot_B2, torch.tensor([0, 1]).expand(num_samples, 2))
    return token_BN, (spot_B2[:, 0] < spot_B2[:, 1]).long()


class Reader(nn.Module):
    """Embedding, one attention layer, mean over tokens: blind to order but for its positions."""

    def __init__(self, added: nn.Module | None, inside: nn.Module | None, width: int) -> None:
        super().__init__()
        self.embedding, self.added = nn.Embedding(VOCABULARY, DIM), added
        self.attention = Attention(Concatenated(width, HEADS, head_dim=HEAD_DIM, out_dim=DIM), position=inside)
        self.classify = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.ReLU(), nn.Linear(2 * DIM, 2))

    def forward(self, token_BN: Tensor, places: Places) -> Tensor:
        x = self.embedding(token_BN)
        x = x if self.added is None else self.added(x, places)
        return self.classify(F.relu(self.attention(x, places=places)).mean(1))


POSITIONS = {
    "none": lambda: Reader(None, None, DIM),
    "learned": lambda: Reader(Learned((HEIGHT, WIDTH), DIM, std=1.0), None, DIM),
    "sinusoidal": lambda: Reader(Sinusoidal(DIM), None, DIM),
    "sinusoidal on a plane": lambda: Reader(Sinusoidal(DIM, axes=2), None, DIM),
    "sinusoidal, appended": lambda: Reader(Appended(Sinusoidal(DIM)), None, 2 * DIM),
    "rotary on a plane": lambda: Reader(None, Rotary(HEAD_DIM, axes=2), DIM),
    "Shaw": lambda: Reader(None, Shaw(HEAD_DIM, LENGTH - 1, HEAD_DIM), DIM),
    "bias table": lambda: Reader(None, BiasTable((HEIGHT, WIDTH), HEADS), DIM),
}


def accuracy_after_training(model: nn.Module, max_steps: int = 300) -> float:
    places = plane(HEIGHT, WIDTH)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    recent = 1.0
    for _ in range(max_steps):
        token_BN, label_B = which_comes_first(128)
        optimiser.zero_grad()
        loss = F.cross_entropy(model(token_BN, places), label_B)
        loss.backward()
        optimiser.step()
        recent = 0.8 * recent + 0.2 * loss.item()
        if recent < 0.1:
            break
    token_BN, label_B = which_comes_first(1_000)
    with torch.no_grad():
        return (model(token_BN, places).argmax(-1) == label_B).float().mean().item()


@pytest.mark.parametrize("name", POSITIONS)
def test_C12_every_position_beats_none(name):
    accuracy = accuracy_after_training(POSITIONS[name]())
    if name == "none":
        assert 0.42 < accuracy < 0.58
    else:
        assert accuracy > 0.9
