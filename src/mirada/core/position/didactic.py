"""Position codes that lectures start from, kept to show why they are not used. Each maps positions (N,) to (N, D)."""

from __future__ import annotations

import torch
from torch import Tensor


def integer(position_N: Tensor) -> Tensor:
    """pe = pos: one channel whose magnitude grows without bound."""
    return position_N[:, None].to(torch.get_default_dtype())


def normalised(position_N: Tensor, length: int) -> Tensor:
    """pe = pos / length: position 4 of 6 and position 2 of 3 become the same code."""
    return position_N[:, None] / length


def binary(position_N: Tensor, num_bits: int) -> Tensor:
    """pe_b = bit b of pos, the most significant first: bit b flips every 2^b positions."""
    bits = torch.arange(num_bits - 1, -1, -1, device=position_N.device)
    return ((position_N[:, None] >> bits) & 1).to(torch.get_default_dtype())


def harmonic(position_N: Tensor, dim: int) -> Tensor:
    """pe_m = sin(pos / m), m = 1 … D: harmonic frequencies, where sinusoidal positions use geometric ones."""
    return torch.sin(position_N[:, None] / torch.arange(1, dim + 1, device=position_N.device))
