"""Does a word's vector know which of its senses is meant? Shape letters: N occurrences, D dim, S senses.

    ŝ_n = argmin_s ‖ x_n − mean of the x of sense s ‖,  means from one half of the sentences, judged on the other

A static vector is the same in every sentence, so the best it can do is always to give the most frequent sense.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError


@dataclass(frozen=True)
class Occurrence:
    """A sentence, the word in it, and which sense of the word is meant."""

    sentence: str
    word: str
    sense: str


def read_senses(path: str | Path) -> list[Occurrence]:
    """Lines of sentence, word and sense, separated by tabs."""
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MiradaError(f"text.senses {path}: cannot be read ({error}); give a TSV file.") from error
    found = []
    for number, line in enumerate(lines, start=1):
        cells = line.split("\t")
        if not line.strip():
            continue
        if len(cells) != 3:
            raise MiradaError(
                f"text.senses {path}: line {number} has {len(cells)} columns, expected sentence, word and sense."
            )
        found.append(Occurrence(*(cell.strip() for cell in cells)))
    for word in {each.word for each in found} or {""}:
        senses = Counter(each.sense for each in found if each.word == word)
        if len(senses) < 2 or min(senses.values()) < 2:
            raise MiradaError(
                f"text.senses {path}: {word!r} has {dict(senses)}; expected two senses or more, each in two sentences."
            )
    return found


@torch.inference_mode()
def vectors_in_context(
    model: nn.Module, tokeniser: Tokeniser, occurrences: Sequence[Occurrence], device: torch.device
) -> Tensor:
    """(N, D): of each word in its sentence, the mean over its tokens of the last layer."""
    model.eval()
    found = []
    for each in occurrences:
        tokens, place = located(each, tokeniser)
        row = torch.tensor([[tokeniser.start, *tokens, tokeniser.end]], device=device)
        features_ND = model.features(row)[0, 1:]  # type: ignore[operator]
        found.append(features_ND[place].mean(0).float().cpu())
    return torch.stack(found)


def located(occurrence: Occurrence, tokeniser: Tokeniser) -> tuple[list[int], slice]:
    """The tokens of the sentence, and which of them are the word."""
    tokens = tokeniser.encode(occurrence.sentence)
    for word in map(tokeniser.encode, (occurrence.word, f" {occurrence.word}")):  # bytes have the space in the word
        for start in range(len(tokens) - len(word) + 1) if word else ():
            if tokens[start : start + len(word)] == word:
                return tokens, slice(start, start + len(word))
    raise MiradaError(f"text.senses: {occurrence.word!r} is not a word of {occurrence.sentence!r}.")


def largest_share(senses: Sequence[str]) -> float:
    """What a vector that is the same everywhere gets right at best."""
    return max(Counter(senses).values()) / len(senses)


def nearest_centroid_accuracy(vectors_ND: Tensor, senses: Sequence[str]) -> float:
    """Every second occurrence of each sense makes its mean; the others are judged."""
    names = sorted(set(senses))
    label_N = np.array([names.index(sense) for sense in senses])
    order_N = np.empty(len(label_N), dtype=np.int64)
    for number in range(len(names)):
        places = np.flatnonzero(label_N == number)
        order_N[places] = np.arange(len(places))
    known_N = torch.from_numpy(order_N % 2 == 0)
    label = torch.from_numpy(label_N)
    mean_SD = torch.stack([vectors_ND[known_N & (label == number)].mean(0) for number in range(len(names))])
    judged = ~known_N
    nearest = torch.cdist(vectors_ND[judged].double(), mean_SD.double()).argmin(1)
    return (nearest == label[judged]).double().mean().item()


def two_axes(vectors_ND: Tensor) -> Tensor:
    """(N, 2): along the two directions in which they differ most (PCA)."""
    centred_ND = (vectors_ND - vectors_ND.mean(0)).double()
    _, _, axes = torch.linalg.svd(centred_ND, full_matrices=False)
    plane_N2 = centred_ND @ axes[:2].mT
    return torch.nn.functional.pad(plane_N2, (0, 2 - plane_N2.shape[1]))
