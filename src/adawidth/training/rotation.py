"""Learning one rotation by gradient descent on products of reflections, on top of a closed-form start.

R = R_learned R_start
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..progress import Advance
from ..rotation import Rotation
from ..types import F64, Mask
from .descent import descend, endless_batches
from .fused import prefix_objective
from .householder import materialise, paired_start, rotate, verify
from .losses import columns, geometry_loss, log_shares, rank_loss, score_loss
from .recipes import Recipe
from .task import Task, mean

Turn = Callable[[Tensor, int], Tensor]  # rows and a width -> their leading coordinates under a map


@dataclass(frozen=True, eq=False)
class LearnedRotation:
    """A learned rotation and the step it was taken at."""

    rotation: Rotation
    step: int
    steps: int


def learn(
    recipe: Recipe, start: Rotation, task: Task, seed: int = 0, advance: Advance | None = None, *, until: int | None = None
) -> LearnedRotation:
    """The rotation that was best on dev, the start included; or, without an evaluation on dev, that of the step `until`."""
    rng = np.random.default_rng(seed)
    u = paired_start(recipe.even_reflections(task.width), task.width, seed)
    verify(u)
    u = functional.normalize(u, dim=1).requires_grad_(True)
    queries, documents = (torch.from_numpy(start.apply(x)) for x in (task.queries, task.documents))
    evaluated = task.without_dev_beyond()
    if recipe.shared:
        losses = _shared_losses(recipe, task, queries, documents, u, rng)
    else:
        losses = private_losses(recipe, task, queries, documents, lambda x, m: rotate(x, u, m), rng)
    found = descend(
        [u],
        lambda: next(losses),
        lambda: mean(evaluated.dev_curve(_materialised(u, start, recipe.name))),
        steps=recipe.steps,
        rate=recipe.rate,
        until=until,
        advance=advance,
    )
    verify(u)
    rotation = _materialised(u, start, recipe.name) if found.step else Rotation(start.matrix, recipe.name)
    return LearnedRotation(rotation, found.step, found.steps)


def private_losses(
    recipe: Recipe, task: Task, queries: Tensor, documents: Tensor, turn: Turn, rng: np.random.Generator
) -> Iterator[Tensor]:
    """The paper's three terms on batch after batch, mean over the recipe's widths, of any map. Each query has candidates of its own,
    drawn once.
    """
    widths, usable = recipe.widths_below(task.width), task.candidates.usable()
    rows, mask = task.candidates.private(usable, recipe.private, rng)
    for batch in endless_batches(np.arange(len(usable)), recipe.batch, rng):
        q, d, positive = queries[usable[batch]], documents[rows[batch]], columns(mask[batch])  # (B, D), (B, c, D), (B, P)
        both = turn(torch.cat([q, d.reshape(-1, task.width)]), widths[-1])
        q_all, d_all = both[: len(q)], both[len(q) :].reshape(*d.shape[:2], -1)
        teacher = torch.einsum("bd,bcd->bc", q, d)
        total = torch.zeros(())
        for m in widths:
            prefix = functional.normalize(q_all[:, :m], dim=-1)
            scores = torch.einsum("bm,bcm->bc", prefix, functional.normalize(d_all[..., :m], dim=-1))
            total = total + recipe.rank * rank_loss(log_shares(scores, recipe.theta), positive)
            total = total + recipe.score * score_loss(scores, teacher, recipe.theta_b)
            total = total + recipe.geometry * geometry_loss(prefix, q)
        yield total / len(widths)


def _shared_losses(recipe: Recipe, task: Task, queries: Tensor, documents: Tensor, u: Tensor, rng: np.random.Generator) -> Iterator[Tensor]:
    """Rank and KL losses over the candidates that a batch shares; the preservation losses of the paper are not for these."""
    widths = recipe.widths_below(task.width)
    for batch in endless_batches(task.candidates.usable(), recipe.batch, rng):
        rows, mask = task.candidates.shared(batch, recipe.shared, rng)
        q, d = queries[batch], documents[rows]  # (B, D), (c, D)
        if recipe.synthetic:
            more, answers = synthesise(q, d, mask, rng)
            q, mask = torch.cat([q, more]), np.concatenate([mask, answers])
        teacher = torch.softmax(q @ d.T / recipe.theta, dim=1) if recipe.kl else torch.empty(0)  # read by the KL term alone
        both = rotate(torch.cat([q, d]), u, widths[-1])
        positive = torch.from_numpy(mask.astype(np.float32))
        terms = {"rank": recipe.rank, "kl": recipe.kl, "theta": recipe.theta}
        yield prefix_objective(both[: len(q)], both[len(q) :], positive, teacher, widths, **terms)


def synthesise(q: Tensor, d: Tensor, relevant: Mask, rng: np.random.Generator) -> tuple[Tensor, Mask]:
    """One synthetic query for each real one: a document, moved as the query is from its positive, is the answer to it. (B, D), (B, c)"""
    positives = (relevant * rng.random(relevant.shape)).argmax(axis=1)
    answers = rng.integers(0, len(d), len(q))
    return functional.normalize(d[answers] + q - d[positives], dim=-1), np.arange(len(d)) == answers[:, None]


def _materialised(u: Tensor, start: Rotation, kind: str) -> Rotation:
    learned: F64 = materialise(u).numpy()
    return Rotation((learned @ start.matrix.astype(np.float64)).astype(np.float32), kind)
