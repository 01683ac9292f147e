"""Learning one rotation by gradient descent on products of reflections, on top of a closed-form start.

    R = R_learned R_start,     AdamW, gradients clipped at 5, 5 % linear warm-up then cosine to zero (methods 2.5).

Every `LOOK` steps dev queries are ranked; the best look is kept and `PATIENCE` looks without a better one end the run.
Budgets are counted in steps, never in seconds, so that a seed gives the same rotation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..progress import Tick
from ..rotation import Rotation
from ..types import F64, Mask, Rows
from .fused import prefix_objective
from .householder import materialise, paired_start, rotate, verify
from .losses import columns, geometry_loss, log_shares, rank_loss, score_loss
from .recipes import Recipe
from .task import Task, mean

LOOK = 100
PATIENCE = 3
LOOKED_AT = 500  # dev queries ranked at each look
CLIP = 5.0
WARM_UP = 0.05


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned rotation and the step it was taken at."""

    rotation: Rotation
    step: int
    steps: int


def learn(
    recipe: Recipe,
    start: Rotation,
    task: Task,
    seed: int = 0,
    tick: Tick = lambda steps=1, note="": None,
    *,
    until: int | None = None,
) -> Learned:
    """The rotation at the best look on dev, the start itself being the first look; or, without a look, at the step `until`."""
    if until == 0:
        return Learned(start, 0, 0)
    rng = np.random.default_rng(seed)
    usable = task.candidates.usable()
    u = paired_start(recipe.even_reflections(task.width), task.width, seed)
    verify(u)
    u = functional.normalize(u, dim=1).requires_grad_(True)
    queries, documents = (torch.from_numpy(start.apply(x)) for x in (task.queries, task.documents))
    optimiser = torch.optim.AdamW([u], lr=recipe.rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: warm_cosine(step, recipe.steps))
    looked_at = task.without_dev_beyond(LOOKED_AT)
    best, best_at, best_score = start, 0, mean(looked_at.dev_curve(start)) if until is None else 0.0
    batches = endless_batches(usable, recipe.batch, rng)
    step = 0
    for step in range(1, recipe.steps + 1):
        loss = _loss(recipe, task, next(batches), queries, documents, u, rng)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([u], CLIP)
        optimiser.step()
        schedule.step()
        tick()
        if step == until:
            best, best_at = _materialised(u, start, recipe.name), step
            break
        if until is None and (step % LOOK == 0 or step == recipe.steps):
            found = _materialised(u, start, recipe.name)
            score = mean(looked_at.dev_curve(found))
            if score > best_score:
                best, best_at, best_score = found, step, score
            elif step - best_at >= PATIENCE * LOOK:
                break
    verify(u)
    return Learned(Rotation(best.matrix, recipe.name), best_at, step)


def _loss(recipe: Recipe, task: Task, batch: Rows, queries: Tensor, documents: Tensor, u: Tensor, rng: np.random.Generator) -> Tensor:
    """The recipe's objective on one batch, mean over its widths: with candidates of each query's own, the paper's three terms."""
    widths = recipe.widths_below(task.width)
    if recipe.shared:
        return _shared_loss(recipe, task, batch, queries, documents, u, rng, widths)
    rows, mask = task.candidates.private(batch, recipe.private, rng)
    q, d, positive = queries[batch], documents[rows], columns(mask)  # (B, D), (B, c, D), (B, P)
    both = rotate(torch.cat([q, d.reshape(-1, task.width)]), u, widths[-1])
    q_all, d_all = both[: len(q)], both[len(q) :].reshape(*rows.shape, -1)
    teacher = torch.einsum("bd,bcd->bc", q, d)
    total = torch.zeros(())
    for m in widths:
        prefix = functional.normalize(q_all[:, :m], dim=-1)
        scores = torch.einsum("bm,bcm->bc", prefix, functional.normalize(d_all[..., :m], dim=-1))
        total = total + recipe.rank * rank_loss(log_shares(scores, recipe.theta), positive)
        total = total + recipe.score * score_loss(scores, teacher, recipe.theta_b)
        total = total + recipe.geometry * geometry_loss(prefix, q)
    return total / len(widths)


def _shared_loss(
    recipe: Recipe,
    task: Task,
    batch: Rows,
    queries: Tensor,
    documents: Tensor,
    u: Tensor,
    rng: np.random.Generator,
    widths: list[int],
) -> Tensor:
    """Rank and KL losses over the candidates that the batch shares; the preservation losses of the paper are not for these."""
    rows, mask = task.candidates.shared(batch, recipe.shared, rng)
    q, d = queries[batch], documents[rows]  # (B, D), (c, D)
    if recipe.imagined:
        more, answers = imagine(q, d, mask, rng)
        q, mask = torch.cat([q, more]), np.concatenate([mask, answers])
    teacher = torch.softmax(q @ d.T / recipe.theta, dim=1)
    both = rotate(torch.cat([q, d]), u, widths[-1])
    positive = torch.from_numpy(mask.astype(np.float32))
    return prefix_objective(both[: len(q)], both[len(q) :], positive, teacher, widths, rank=recipe.rank, kl=recipe.kl, theta=recipe.theta)


def imagine(q: Tensor, d: Tensor, relevant: Mask, rng: np.random.Generator) -> tuple[Tensor, Mask]:
    """One imagined query for each real one: a document, moved as the query is from its positive, is the answer to it. (B, D), (B, c)"""
    positives = (relevant * rng.random(relevant.shape)).argmax(axis=1)
    answers = rng.integers(0, len(d), len(q))
    return functional.normalize(d[answers] + q - d[positives], dim=-1), np.arange(len(d)) == answers[:, None]


def endless_batches(usable: Rows, size: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Batches without end: a new order each time round, the remainder carried over."""
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


def _materialised(u: Tensor, start: Rotation, kind: str) -> Rotation:
    learned: F64 = materialise(u).numpy()
    return Rotation((learned @ start.matrix.astype(np.float64)).astype(np.float32), kind)
