"""Learning a query map (methods 17): labels move the queries, documents stay where the rotation put them.

    q̂ = (I + s A) R q + s b,     A and b by AdamW from zero, rank loss and KL to the frozen scores at several widths at once

Every recipe is evaluated on dev as it learns; the strength s of what it found is chosen there too, and s = 0, the rotation
alone, is always among the trials. Widths below 64 are learned at, so that stages may begin there, but they count
in no choice. Grades weigh a query's relevant documents against each other; documents judged not relevant (grade 0 or below)
come first among its negatives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..data import Judged, Learning
from ..progress import Advance
from ..rotation import QueryMap, Rotation
from ..types import F32, Rows
from .candidates import Candidates
from .descent import descend, endless_batches
from .fused import prefix_objective
from .ranking import DevCurve, Ranker
from .recipes import TRAINED_WIDTHS
from .rotation import synthesise
from .task import DEV_QUERIES, Task, mean

SUPERVISED_WIDTHS = (32, 64, 96, 128, 192, 256)  # over a rotation trained on labels, which is best well below the encoder width
COUNTED_FROM = 64  # the narrowest width that evaluations and choices count
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
FEWEST_QUERIES = 20  # with fewer usable train queries nothing is learned


@dataclass(frozen=True)
class MapRecipe:
    """One way to learn a query map."""

    name: str
    kl: float  # weight of the KL term to the frozen scores; the rank loss has 1
    low_rank: int | None = None  # A = U Vᵀ with so many columns; None: any A
    synthetic: int = 0  # synthetic queries added for each real one
    shared: int = 6  # negatives each query adds to the candidates that the whole batch shares
    rate: float = 1e-3
    steps: int = 1_000
    batch: int = 128
    theta: float = 0.05


RECIPES = (
    MapRecipe("rank + ¼ kl", kl=0.25),  # many labels
    MapRecipe("rank + ½ kl, synthetic queries", kl=0.5, synthetic=2),  # few labels
)
SUPERVISED_RECIPES = (  # over a supervised rotation: the frozen scores are no longer what its prefixes should keep
    MapRecipe("rank", kl=0.0),
    MapRecipe("rank, slowly", kl=0.0, rate=3e-4),
)


@dataclass(frozen=True, eq=False)
class Change:
    """What a recipe found: q̂ = q̃ + q̃ Aᵀ + b for a rotated query q̃."""

    matrix: F32  # (D, D), A
    bias: F32  # (D,), b

    def apply(self, rotated: F32, strength: float = 1.0) -> F32:
        """Rotated queries mapped, at this strength."""
        return rotated + np.float32(strength) * (rotated @ self.matrix.T + self.bias)

    def fold(self, rotation: Rotation, strength: float) -> QueryMap:
        """As one matrix with the rotation."""
        return QueryMap.fold(rotation, strength * self.matrix, strength * self.bias)


@dataclass(frozen=True, eq=False)
class Lesson:
    """A task under a rotation: what every recipe learns from and is judged by."""

    task: Task  # all vectors rotated
    ranker: Ranker

    @classmethod
    def of(cls, learning: Learning, rotation: Rotation, *, supervised: bool = False) -> Lesson:
        """Candidates are mined at the frozen full width, judged negatives first. `supervised`: the rotation was trained on labels."""
        task = Task.of(learning)
        documents, queries, dev = (rotation.apply(rows) for rows in (task.documents, task.queries, task.dev))
        task = replace(task, documents=documents, queries=queries, dev=dev, candidates=judged_first(task.candidates, task.judged))
        below = tuple(m for m in (SUPERVISED_WIDTHS if supervised else TRAINED_WIDTHS) if m < rotation.width)
        return cls(task, Ranker(task.documents, below if supervised and below else (*below, rotation.width)))

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths trained for, ascending."""
        return self.ranker.widths

    def dev_curve(self, change: Change | None = None, strength: float = 1.0, most: int | None = None) -> DevCurve:
        """nDCG@10 of the dev queries (or at most so many of them) under a change, or under the rotation alone."""
        task = self.task if most is None else self.task.without_dev_beyond(most)
        queries = task.dev if change is None else change.apply(task.dev, strength)
        return self.ranker.curve(queries, task.dev_judged, task.dev_own)


@dataclass(frozen=True, eq=False)
class LearnedMap:
    """What was found (nothing if no evaluation on dev was better than the start) and the step it was taken at."""

    change: Change | None
    step: int
    steps: int


def learn(recipe: MapRecipe, lesson: Lesson, seed: int = 0, advance: Advance | None = None, *, until: int | None = None) -> LearnedMap:
    """Gradient descent from the rotation alone to the best evaluation on dev, or, without one, to the step `until`."""
    task, rng = lesson.task, np.random.default_rng(seed)
    weights = _start(task.width, recipe.low_rank, seed)
    queries, documents = torch.from_numpy(task.queries), torch.from_numpy(task.documents)
    batches = endless_batches(task.candidates.usable(), recipe.batch, rng)
    found = descend(
        weights,
        lambda: _loss(recipe, lesson, next(batches), queries, documents, weights, rng),
        lambda: counted_mean(lesson.dev_curve(_change(weights), most=DEV_QUERIES)),
        steps=recipe.steps,
        rate=recipe.rate,
        until=until,
        advance=advance,
    )
    return LearnedMap(_change(weights) if found.step else None, found.step, found.steps)


def counted_mean(curve: DevCurve) -> float:
    """Mean over queries and the widths that count."""
    return mean(counted(curve))


def counted(curve: DevCurve) -> DevCurve:
    """The widths that evaluations and choices count; all of them where none is wide enough."""
    return {m: values for m, values in curve.items() if m >= COUNTED_FROM} or curve


def _start(width: int, low_rank: int | None, seed: int) -> list[Tensor]:
    """b, and A itself or its two factors: the second is random, so that the first, zero, can move."""
    bias = torch.zeros(width, requires_grad=True)
    if low_rank is None:
        return [bias, torch.zeros(width, width, requires_grad=True)]
    random = torch.randn(width, low_rank, generator=torch.Generator().manual_seed(seed)) / math.sqrt(width)
    return [bias, torch.zeros(width, low_rank, requires_grad=True), random.requires_grad_(True)]


def _change(weights: list[Tensor]) -> Change:
    bias, left, *right = (weight.detach().numpy().copy() for weight in weights)
    return Change(left @ right[0].T if right else left, bias)


def _mapped(q: Tensor, weights: list[Tensor]) -> Tensor:
    bias, left, *right = weights
    return q + (q @ right[0] @ left.T if right else q @ left.T) + bias


def _loss(
    recipe: MapRecipe, lesson: Lesson, batch: Rows, queries: Tensor, documents: Tensor, weights: list[Tensor], rng: np.random.Generator
) -> Tensor:
    """Rank and KL losses of mapped queries over the candidates that the batch shares."""
    q, d, relevant = drawn(recipe, lesson.task, batch, queries, documents, rng)
    teacher = torch.softmax(q @ d.T / recipe.theta, dim=1)
    return prefix_objective(_mapped(q, weights), d, relevant, teacher, lesson.widths, rank=1.0, kl=recipe.kl, theta=recipe.theta)


def drawn(
    recipe: MapRecipe, task: Task, batch: Rows, queries: Tensor, documents: Tensor, rng: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """The batch's queries and the synthetic ones, the candidates that they share, and how relevant these are. (B, D), (c, D), (B, c)"""
    rows, mask = task.candidates.shared(batch, recipe.shared, rng)
    q, d = queries[batch], documents[rows]
    more = [synthesise(q, d, mask, rng) for _ in range(recipe.synthetic)]
    relevant = [relevance(task.candidates, batch, rows), *(answers.astype(np.float32) for _, answers in more)]
    return torch.cat([q, *(asked for asked, _ in more)]), d, torch.from_numpy(np.concatenate(relevant))


def relevance(candidates: Candidates, batch: Rows, rows: Rows) -> F32:
    """Grades of the batch's relevant documents among `rows` (sorted), each query's largest brought to 1. (B, c)"""
    judged = candidates.positives.select(batch)
    owner = np.repeat(np.arange(len(batch)), np.diff(judged.offsets))
    weights = np.zeros((len(batch), len(rows)), np.float32)
    weights[owner, np.searchsorted(rows, judged.documents)] = judged.grades
    return np.asarray(weights / np.maximum(weights.max(axis=1, keepdims=True), 1e-30), np.float32)


def judged_first(candidates: Candidates, judged: Judged) -> Candidates:
    """The same candidates with the documents judged not relevant to a query as the first of its negatives."""
    negatives, counts = candidates.negatives.copy(), candidates.counts.copy()
    owner = np.repeat(np.arange(len(judged)), np.diff(judged.offsets))
    for query in np.unique(owner[judged.grades <= 0]).tolist():
        part = slice(judged.offsets[query], judged.offsets[query + 1])
        refused = judged.documents[part][judged.grades[part] <= 0][: negatives.shape[1]]
        others = negatives[query, : counts[query]]
        found = np.concatenate([refused, others[~np.isin(others, refused)]])[: negatives.shape[1]]
        counts[query] = len(found)
        negatives[query] = np.resize(found, negatives.shape[1])
    return replace(candidates, negatives=negatives, counts=counts)
