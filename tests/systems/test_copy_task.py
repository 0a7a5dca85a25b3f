"""Both translators learn to copy and to reverse sentences of ten tokens: 99 of 100 are written without a fault.

The vocabulary of the Annotated Transformer's first example (V = 11: one of them starts a sentence), new random
sentences at every step, greedy writing of sentences that were not seen.
"""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.systems import create

TOKENS, LENGTH, BATCH = 11, 10, 64
PAD, START = 0, 1

pytestmark = pytest.mark.long

# Arguments of the system, its peak learning rate and the number of steps.
LEARNERS = {
    "transformer": ({"size": "tiny", "dropout": 0.0}, 1e-3, 700),
    "seq2seq": ({"size": "tiny", "dropout": 0.0}, 3e-3, 800),
}


def sentences(count: int, generator: torch.Generator) -> Tensor:
    return torch.randint(START + 1, TOKENS, (count, LENGTH), generator=generator)


def trained(system: str, is_reversed: bool) -> nn.Module:
    arguments, learning_rate, num_steps = LEARNERS[system]
    model = create(system, num_tokens=TOKENS, pad=PAD, **arguments).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, num_steps, pct_start=0.1)
    generator = torch.Generator().manual_seed(5)
    for _ in range(num_steps):
        source = sentences(BATCH, generator)
        target = source.flip(1) if is_reversed else source
        loss = F.cross_entropy(model(source, F.pad(target[:, :-1], (1, 0), value=START)).mT, target)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def written(model: nn.Module, source: Tensor) -> Tensor:
    token, state, tokens = torch.full((len(source), 1), START), model.begin(source), []
    for _ in range(LENGTH):
        token = model.next_logits(token, state).argmax(-1)
        tokens.append(token)
    return torch.cat(tokens, dim=1)


@pytest.mark.parametrize("is_reversed", [False, True], ids=["copy", "reverse"])
@pytest.mark.parametrize("system", LEARNERS)
def test_G5_G9_at_least_99_percent_of_new_sentences_are_right(system, is_reversed):
    model = trained(system, is_reversed)
    source = sentences(500, torch.Generator().manual_seed(99))
    expected = source.flip(1) if is_reversed else source
    assert (written(model, source) == expected).all(1).float().mean() >= 0.99
