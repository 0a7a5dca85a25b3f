"""A run that translates numbers: the files that `mirada train` leaves, made in a moment with any arguments."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada import systems
from mirada.data.text.tokeniser import Tokeniser
from mirada.train.checkpoint import describe_model, save_tensors
from mirada.train.files import write_json
from mirada.train.folder import RunFolder
from tests.verbs.text.texts import NUMBERS, sentence

SHAPES = {
    "transformer": {"dim": 20, "depth": 2, "decoder_depth": 3, "num_heads": 2, "mlp_ratio": 3.0, "max_length": 47},
    "seq2seq": {"dim": 12},
}
RARE = -30.0  # the score that special tokens start with where the output has a bias


def tiny_run(
    path: Path, *, system: str = "transformer", shared: bool = True, num_steps: int = 0, **arguments: Any
) -> Path:
    folder = RunFolder(path)
    folder.best.mkdir(parents=True)
    english, spanish = list(NUMBERS), [*NUMBERS.values(), "cero"]
    source = Tokeniser.train([*english, *spanish] if shared else english, "word")
    target = source if shared else Tokeniser.train(spanish, "word")
    source.save(folder.tokeniser)
    if not shared:
        target.save(folder.target_tokeniser)
        arguments["num_target_tokens"] = len(target)
    arguments = {"num_tokens": len(source), "dropout": 0.0, **SHAPES[system], **arguments}
    model = systems.create(system, **arguments)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))  # so that biases and norms matter
        if arguments.get("output_bias"):
            model.tokens.bias[sorted(set(target.special.values()) - {target.end})] = RARE
    learn(model, source, target, num_steps)
    describe_model(folder.best / "model.json", system, None, arguments, 0)
    save_tensors(folder.best / "model.safetensors", model.state_dict())
    write_json(folder.data, {"inputs": "pairs", "task": "translate", "class_names": [], "shared": shared})
    return path


def learn(model: nn.Module, source: Tokeniser, target: Tokeniser, num_steps: int) -> None:
    generator = random.Random(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(num_steps):
        words = [sentence(generator) for _ in range(16)]
        read_BM = padded([[*source.encode(" ".join(each)), source.end] for each in words])
        translated = [target.encode(" ".join(NUMBERS[word] for word in each)) for each in words]
        written_BN = padded([[target.start, *each, target.end] for each in translated])
        logits_BNT = model(read_BM, written_BN[:, :-1])
        loss = F.cross_entropy(logits_BNT.flatten(0, 1), written_BN[:, 1:].flatten(), ignore_index=target.pad)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def padded(rows: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)  # with 0, our padding
