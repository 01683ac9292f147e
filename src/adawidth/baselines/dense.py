"""The loss-matched rival of a rotation (methods 5.1): one free linear map for queries and documents, under our own objective.

    x̂ = (I + s A) R x + s b,     R the principal axes; A and b by AdamW from zero

Recipes, losses, candidates, evaluations and the choice of the strength s are those of the query map, down to the last learning from
train and dev together. What is lost is what rotations and query maps keep: full-width scores change and every document is
encoded again.

`dense:paper` is the same comparison for the paper's rotation: a free matrix from the identity under its three losses, its candidates,
its widths, its optimiser and its schedule, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..data import Learning, unit
from ..rotation import QueryMap, Rotation
from ..training.descent import descend, endless_batches
from ..training.fused import prefix_objective
from ..training.pool import sample, together
from ..training.query_map import RECIPES, STRENGTHS, Change, Lesson, MapRecipe, drawn
from ..training.ranking import Ranker
from ..training.recipes import PAPER
from ..training.rotation import private_losses
from ..training.task import DEV_WIDTHS, Task, mean
from ..types import F32, Floats
from .base import Encoding, Role, fitted
from .descent import Batch, steps_for
from .paper import enough, paper_task


class _Linear(Encoding):
    """One linear map of queries and documents."""

    map: QueryMap | None = None

    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """The leading coordinates of the mapped rows."""
        return unit(fitted(self, self.map).apply(x, width))

    def query_cost(self, width: int) -> float:
        """The leading rows of the matrix."""
        return fitted(self, self.map).width * width


class Dense(_Linear):
    """Kept folded with its rotation into one matrix and a bias."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns the map by every recipe and takes the best, with its strength, on dev; learns it again from train and dev together."""
        rotation, pool = Rotation.pca(learning.documents, seed=seed), sample(learning, seed)
        lesson = Lesson.of(pool, rotation)
        learned = [(recipe, *_learned(recipe, lesson, seed)) for recipe in RECIPES]
        trials = [(_score(lesson, lesson.task, change, s), recipe, step, s) for recipe, change, step in learned for s in (0.0, *STRENGTHS)]
        _, recipe, step, strength = max(trials, key=lambda trial: trial[0])
        whole = Lesson.of(replace(pool, train=together(pool.train, pool.dev)), rotation)
        self.map = _learned(recipe, whole, seed, until=step)[0].fold(rotation, strength)
        return self

    @property
    def parameters(self) -> int:
        """The matrix and the bias."""
        width = fitted(self, self.map).width
        return width * (width + 1)


class PaperDense(_Linear):
    """The paper's unconstrained twin: its training, with a matrix in place of the reflections."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns the matrix by the paper's recipe; returns itself."""
        task, width = paper_task(sample(learning, seed)), learning.documents.width
        matrix = torch.eye(width, requires_grad=True)
        evaluated = task.without_dev_beyond()
        widths = tuple(m for m in DEV_WIDTHS if m < width) or (width,)

        def found() -> QueryMap:
            return QueryMap(matrix.detach().numpy().copy(), np.zeros(width, np.float32), Rotation.identity(width).fingerprint)

        def score() -> float:
            turned = found()
            ranker = Ranker(turned.apply(task.documents, max(widths)), widths)
            return mean(ranker.curve(turned.apply(evaluated.dev, max(widths)), evaluated.dev_judged, evaluated.dev_own))

        queries, documents = torch.from_numpy(task.queries), torch.from_numpy(task.documents)
        losses = private_losses(PAPER, task, queries, documents, lambda x, m: x @ matrix[:m].T, np.random.default_rng(seed))
        if enough(task):
            descend([matrix], lambda: next(losses), score, steps=PAPER.steps, rate=PAPER.rate)
        self.map = found()
        return self

    @property
    def parameters(self) -> int:
        """The matrix."""
        return fitted(self, self.map).width ** 2


def _learned(recipe: MapRecipe, lesson: Lesson, seed: int, until: int | None = None) -> tuple[Change, int]:
    """The map that was best on dev and its step, or, without an evaluation, that of the step `until`."""
    width = lesson.task.width
    matrix, bias = torch.zeros(width, width, requires_grad=True), torch.zeros(width, requires_grad=True)
    evaluated = lesson.task.without_dev_beyond()

    def loss(batch: Batch) -> Tensor:
        q, d = (x + x @ matrix.T + bias for x in (batch.queries, batch.documents))
        teacher = torch.softmax(batch.queries @ batch.documents.T / recipe.theta, dim=1)
        return prefix_objective(q, d, batch.relevant, teacher, lesson.widths, rank=1.0, kl=recipe.kl, theta=recipe.theta)

    def found() -> Change:
        return Change(matrix.detach().numpy().copy(), bias.detach().numpy().copy())

    batches = _batches(recipe, lesson.task, np.random.default_rng(seed))
    steps = steps_for(lesson.task) // len(RECIPES)
    best = descend(
        [matrix, bias],
        lambda: loss(next(batches)),
        lambda: _score(lesson, evaluated, found()),
        steps=steps,
        rate=recipe.rate,
        until=until,
    )
    return found(), best.step


def _batches(recipe: MapRecipe, task: Task, rng: np.random.Generator) -> Iterator[Batch]:
    """Batches without end, as the query map has them: graded, and with synthetic queries where the recipe asks for them."""
    queries, documents = torch.from_numpy(task.queries), torch.from_numpy(task.documents)
    for picked in endless_batches(task.candidates.usable(), recipe.batch, rng):
        yield Batch(*drawn(recipe, task, picked, queries, documents, rng))


def _score(lesson: Lesson, task: Task, change: Change, strength: float = 1.0) -> float:
    """nDCG@10 on dev, mean over the widths, documents mapped too."""
    ranker = Ranker(change.apply(task.documents, strength), lesson.widths)
    return mean(ranker.curve(change.apply(task.dev, strength), task.dev_judged, task.dev_own))
