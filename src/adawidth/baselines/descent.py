"""Learning by gradient, on equal terms: every method has the same candidates, number of steps and evaluations on dev.

Once settings and steps are chosen on dev, a supervised method is trained once more, on train and dev queries together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from ..data import Learning
from ..training.descent import EVERY, descend, endless_batches
from ..training.pool import together
from ..training.ranking import Ranker
from ..training.recipes import TRAINED_WIDTHS
from ..training.task import Task, mean
from ..types import F32

STEPS = 2_000  # in all, over the stages and settings of one fit: what AdaWidth's own recipes take together
PASSES = 400  # over the train queries, at most: a small collection is learned by then
BATCH = 128
SHARED = 6  # negatives each query adds to the candidates that the batch shares

Encode = Callable[[F32], F32]  # (n, D) -> (n, D), whose every prefix is used
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some train queries and the candidates that they share."""

    queries: Tensor  # (B, D)
    documents: Tensor  # (c, D)
    relevant: Tensor  # (B, c) 1 where a document is relevant to a query, else 0


@dataclass(frozen=True, eq=False)
class Ground:
    """What a method learns from and is evaluated on. Without labels the frozen first document stands in for the relevant one."""

    task: Task
    evaluated: Task  # the same with fewer dev queries
    steps: int  # of gradient, for one fit

    @classmethod
    def of(cls, pool: Learning) -> Ground:
        """Of a sample that is held in memory."""
        task = Task.of(pool)
        return cls(task, task.without_dev_beyond(), steps_for(task))

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths to learn at, the encoder width last."""
        return (*(m for m in TRAINED_WIDTHS if m < self.task.width), self.task.width)

    def batches(self, rng: np.random.Generator) -> Iterator[Batch]:
        """Batches without end."""
        queries, documents = torch.from_numpy(self.task.queries), torch.from_numpy(self.task.documents)
        for picked in endless_batches(self.task.candidates.usable(), BATCH, rng):
            rows, mask = self.task.candidates.shared(picked, SHARED, rng)
            yield Batch(queries[picked], documents[rows], torch.from_numpy(mask.astype(np.float32)))

    def evaluate(self, encode: Encode, asked: Encode | None = None, widths: tuple[int, ...] | None = None) -> float:
        """nDCG@10 on dev, mean over the widths, of a map for documents and queries (or another, `asked`, for queries)."""
        ranker = Ranker(encode(self.task.documents), widths or self.widths)
        return mean(ranker.curve((asked or encode)(self.evaluated.dev), self.evaluated.dev_judged, self.evaluated.dev_own))


def steps_for(task: Task) -> int:
    """Gradient steps for one fit: the same for every method, fewer where train queries are few."""
    return min(STEPS, max(EVERY, PASSES * len(task.candidates.usable()) // BATCH))


class Course:
    """The choices of a fit: the settings chosen on dev and the steps at which descents stopped, in their order.

    Made from another course it repeats those choices without evaluating: only what was chosen is learned, for as many steps.
    """

    def __init__(self, before: Course | None = None) -> None:
        self.way: list[int] = []
        self.score = 0.0  # of the last descent, on dev
        self._before = None if before is None else iter(before.way)

    def descend(
        self,
        weights: Sequence[Tensor],
        loss: Callable[[T], Tensor],
        evaluate: Callable[[], float],
        batches: Iterator[T],
        *,
        steps: int,
        rate: float = 1e-3,
        decay: float = 0.0,
    ) -> None:
        """Leaves the weights as they were at the best evaluation, or as they are after as many steps as before."""
        until = None if self._before is None else next(self._before)
        found = descend(weights, lambda: loss(next(batches)), evaluate, steps=steps, rate=rate, decay=decay, until=until)
        self.score = found.score
        self.way.append(found.step)

    def choose(self, settings: Sequence[S], learn: Callable[[S, Course], T]) -> tuple[S, T]:
        """The setting whose last descent scores best, and what it learned; or what the one chosen before learns now."""
        if self._before is not None:
            setting = settings[next(self._before)]
            return setting, learn(setting, self)
        courses = [Course() for _ in settings]
        found = [learn(setting, course) for setting, course in zip(settings, courses, strict=True)]
        best = max(range(len(settings)), key=lambda place: courses[place].score)
        self.score = courses[best].score
        self.way += [best, *courses[best].way]
        return settings[best], found[best]


def learned(pool: Learning, learn: Callable[[Ground, Course], T]) -> T:
    """What a method learns from a sample: chosen on dev and then, where there are labels, again from train and dev together."""
    ground, course = Ground.of(pool), Course()
    found, queries = learn(ground, course), together(pool.train, pool.dev)
    if queries.judged is None:
        return found
    everything = Ground.of(replace(pool, train=queries))
    return learn(replace(everything, steps=ground.steps), Course(course))
