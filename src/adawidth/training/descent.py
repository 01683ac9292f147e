"""The one optimiser loop: AdamW, gradients clipped at 5, 5 % linear warm-up then cosine to zero (methods 2.5).

Every `EVERY` steps the weights are evaluated on dev; the best are kept, and `PATIENCE` evaluations without a better one end
the run. Budgets are counted in steps, never in seconds, so that a seed gives the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..progress import Advance
from ..types import Rows

EVERY = 100  # steps between two evaluations on dev
PATIENCE = 3
CLIP = 5.0
WARM_UP = 0.05


class Descent(NamedTuple):
    """The best evaluation on dev, the step at which the weights were taken, and how many steps were run."""

    score: float
    step: int
    steps: int


def descend(
    weights: Sequence[Tensor],
    loss: Callable[[], Tensor],
    evaluate: Callable[[], float],
    *,
    steps: int,
    rate: float = 1e-3,
    decay: float = 0.0,
    until: int | None = None,
    advance: Advance | None = None,
) -> Descent:
    """Minimises `loss` over at most so many steps; leaves the weights as they were at the best evaluation on dev.

    The start is evaluated too, so that nothing learned is worse on dev than nothing. With `until` there is no evaluation: the
    weights are left as they are after that step.
    """
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: warm_cosine(step, steps))
    best, best_at, best_score = _copies(weights), 0, evaluate() if until is None else 0.0
    step = 0
    for step in range(1, (steps if until is None else until) + 1):
        optimiser.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, CLIP)
        optimiser.step()
        schedule.step()
        if advance is not None:
            advance()
        if until is None and (step % EVERY == 0 or step == steps):
            score = evaluate()
            if score > best_score:
                best, best_at, best_score = _copies(weights), step, score
            elif step - best_at >= PATIENCE * EVERY:
                break
    if until is not None:
        return Descent(best_score, until, until)
    with torch.no_grad():
        for weight, kept in zip(weights, best, strict=True):
            weight.copy_(kept)
    return Descent(best_score, best_at, step)


def endless_batches(usable: Rows, size: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Batches without end: a new order for each epoch, the remainder carried over."""
    left = np.empty(0, np.int64)
    while True:
        while len(left) < size:
            left = np.concatenate([left, rng.permutation(usable)])
        yield left[:size]
        left = left[size:]


def warm_cosine(step: int, steps: int) -> float:
    """The share of the learning rate at a step: a linear warm-up, then a cosine to zero."""
    warm = max(1, round(WARM_UP * steps))
    return min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))


def _copies(weights: Sequence[Tensor]) -> list[Tensor]:
    return [weight.detach().clone() for weight in weights]
