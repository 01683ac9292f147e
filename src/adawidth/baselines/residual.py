"""The adapter that Matryoshka-Adaptor and Search-Adaptor share: x̂ = x + f(x), the same small network f for queries and documents."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..data import unit
from ..training.fused import TINY
from ..types import F32, Floats

BLOCK = 16_384  # rows encoded at a time


class Network(nn.Module):
    """f: Linear, ReLU, Linear, each D wide. The last starts at zero, so that x̂ = x."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(width, width), nn.Linear(width, width)
        bound = 1 / math.sqrt(width)
        generator = torch.Generator().manual_seed(seed)
        for weight in (self.hidden.weight, self.hidden.bias):
            nn.init.uniform_(weight, -bound, bound, generator=generator)
        for weight in (self.last.weight, self.last.bias):
            nn.init.zeros_(weight)

    def forward(self, x: Tensor, width: int | None = None) -> Tensor:
        """f(x), or its leading `width` coordinates. (…, D) -> (…, width)"""
        return functional.linear(functional.relu(self.hidden(x)), self.last.weight[:width], self.last.bias[:width])

    def adapt(self, x: Floats, width: int | None = None) -> F32:
        """The leading `width` coordinates of x̂, of length one. (n, D) -> (n, width)"""
        adapted = []
        with torch.no_grad():
            for start in range(0, len(x), BLOCK):
                rows = torch.from_numpy(np.ascontiguousarray(x[start : start + BLOCK], np.float32))
                adapted.append((rows[:, :width] + self(rows, width)).numpy())
        return unit(np.concatenate(adapted))

    @property
    def size(self) -> int:
        """How many weights there are."""
        return sum(weight.numel() for weight in self.parameters())

    def cost(self, width: int) -> float:
        """Multiply-adds for one row at a width: the hidden layer, and the leading rows of the last."""
        whole = len(self.hidden.bias)
        return whole * whole + whole * width


def prefix_scores(q: Tensor, d: Tensor, widths: Sequence[int]) -> Tensor:
    """Cosines of every q with every d at each width, sums going on from width to width. (…, B, D), (…, c, D) -> (W, …, B, c)"""
    scores, sums, low = [], torch.zeros(()), 0
    q_energy, d_energy = torch.zeros(()), torch.zeros(())
    for m in widths:
        q_part, d_part = q[..., low:m], d[..., low:m]
        sums = sums + q_part @ d_part.mT
        q_energy = q_energy + q_part.square().sum(dim=-1, keepdim=True)
        d_energy = d_energy + d_part.square().sum(dim=-1, keepdim=True).mT
        scores.append(sums * q_energy.clamp(min=TINY).rsqrt() * d_energy.clamp(min=TINY).rsqrt())
        low = m
    return torch.stack(scores)


def rank_loss(scores: Tensor, relevant: Tensor) -> Tensor:
    """ln(1 + exp(s of another − s of a relevant)), mean over all such pairs of one query's candidates. (W, B, c), (B, c) 0 or 1"""
    owner, column = relevant.nonzero(as_tuple=True)
    others, own = 1 - relevant[owner], scores.index_select(1, owner)
    losses = functional.softplus(own - own.gather(2, column.expand(len(own), -1)[..., None]))
    return (losses * others).sum() / (len(scores) * others.sum().clamp(min=1))
