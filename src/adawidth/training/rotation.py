"""Learning one rotation by gradient descent on products of reflections, on top of a closed-form start.

R = R_learned R_start
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..progress import Tick
from ..rotation import Rotation
from ..types import F64, Mask, Rows
from .descent import descend, endless_batches
from .fused import prefix_objective
from .householder import materialise, paired_start, rotate, verify
from .losses import columns, geometry_loss, log_shares, rank_loss, score_loss
from .recipes import Recipe
from .task import Task, mean


@dataclass(frozen=True, eq=False)
class LearnedRotation:
    """A learned rotation and the step it was taken at."""

    rotation: Rotation
    step: int
    steps: int


def learn(
    recipe: Recipe, start: Rotation, task: Task, seed: int = 0, advance: Tick | None = None, *, until: int | None = None
) -> LearnedRotation:
    """The rotation that was best on dev, the start included; or, without an evaluation on dev, that of the step `until`."""
    rng = np.random.default_rng(seed)
    u = paired_start(recipe.even_reflections(task.width), task.width, seed)
    verify(u)
    u = functional.normalize(u, dim=1).requires_grad_(True)
    queries, documents = (torch.from_numpy(start.apply(x)) for x in (task.queries, task.documents))
    evaluated = task.without_dev_beyond()
    batches = endless_batches(task.candidates.usable(), recipe.batch, rng)
    found = descend(
        [u],
        lambda: _loss(recipe, task, next(batches), queries, documents, u, rng),
        lambda: mean(evaluated.dev_curve(_materialised(u, start, recipe.name))),
        steps=recipe.steps,
        rate=recipe.rate,
        until=until,
        advance=advance,
    )
    verify(u)
    rotation = _materialised(u, start, recipe.name) if found.step else Rotation(start.matrix, recipe.name)
    return LearnedRotation(rotation, found.step, found.steps)


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
    if recipe.synthetic:
        more, answers = synthesise(q, d, mask, rng)
        q, mask = torch.cat([q, more]), np.concatenate([mask, answers])
    teacher = torch.softmax(q @ d.T / recipe.theta, dim=1)
    both = rotate(torch.cat([q, d]), u, widths[-1])
    positive = torch.from_numpy(mask.astype(np.float32))
    return prefix_objective(both[: len(q)], both[len(q) :], positive, teacher, widths, rank=recipe.rank, kl=recipe.kl, theta=recipe.theta)


def synthesise(q: Tensor, d: Tensor, relevant: Mask, rng: np.random.Generator) -> tuple[Tensor, Mask]:
    """One synthetic query for each real one: a document, moved as the query is from its positive, is the answer to it. (B, D), (B, c)"""
    positives = (relevant * rng.random(relevant.shape)).argmax(axis=1)
    answers = rng.integers(0, len(d), len(q))
    return functional.normalize(d[answers] + q - d[positives], dim=-1), np.arange(len(d)) == answers[:, None]


def _materialised(u: Tensor, start: Rotation, kind: str) -> Rotation:
    learned: F64 = materialise(u).numpy()
    return Rotation((learned @ start.matrix.astype(np.float64)).astype(np.float32), kind)
