"""Learning by gradient, on equal terms: every method has the same candidates, the same number of steps and the same looks at dev."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data import Learning
from ..training.pool import sample
from ..training.query_map import Ranker
from ..training.rotation import CLIP, LOOK, LOOKED_AT, PATIENCE, endless_batches, warm_cosine
from ..training.task import Task, mean

STEPS = 2_000  # in all, over the stages and settings of one fit: what AdaWidth's own recipes take together
PASSES = 400  # over the train queries, at most: a small collection is learned by then
BATCH = 128
SHARED = 6  # negatives each query adds to the candidates that the batch shares
WIDTHS = (32, 64, 128, 256)  # trained at, and the encoder width

Encode = Callable[[NDArray[np.float32]], NDArray[np.float32]]  # (n, D) -> (n, D), whose every prefix is used
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some train queries and the candidates that they share."""

    queries: Tensor  # (B, D)
    documents: Tensor  # (c, D)
    relevant: Tensor  # (B, c) 1 where a document is relevant to a query, else 0


@dataclass(frozen=True, eq=False)
class Ground:
    """What a method learns from and is looked at by. Without labels the frozen first document stands in for the relevant one."""

    task: Task
    looked_at: Task  # the same with fewer dev queries

    @classmethod
    def of(cls, learning: Learning, seed: int) -> Ground:
        """At most a pool of documents and queries."""
        task = Task.of(sample(learning, seed))
        return cls(task, task.without_dev_beyond(LOOKED_AT))

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths to learn at, the encoder width last."""
        return (*(m for m in WIDTHS if m < self.task.width), self.task.width)

    @property
    def steps(self) -> int:
        """How many there are for one fit."""
        return steps_for(self.task)

    def batches(self, rng: np.random.Generator) -> Iterator[Batch]:
        """Batches without end."""
        queries, documents = torch.from_numpy(self.task.queries), torch.from_numpy(self.task.documents)
        for picked in endless_batches(self.task.candidates.usable(), BATCH, rng):
            rows, mask = self.task.candidates.shared(picked, SHARED, rng)
            yield Batch(queries[picked], documents[rows], torch.from_numpy(mask.astype(np.float32)))

    def look(self, encode: Encode, asked: Encode | None = None, widths: tuple[int, ...] | None = None) -> float:
        """nDCG@10 on dev, mean over the widths, of a map for documents and queries (or another, `asked`, for queries)."""
        ranker = Ranker(encode(self.task.documents), widths or self.widths)
        return mean(ranker.curve((asked or encode)(self.looked_at.dev), self.looked_at.dev_judged, self.looked_at.dev_own))


def steps_for(task: Task) -> int:
    """Gradient steps for one fit: the same for every method, fewer where train queries are few."""
    return min(STEPS, max(LOOK, PASSES * len(task.candidates.usable()) // BATCH))


class Found(NamedTuple):
    """The best look on dev: what it was worth, and its step."""

    worth: float
    step: int


def descend(
    weights: Sequence[Tensor],
    loss: Callable[[T], Tensor],
    look: Callable[[], float],
    batches: Iterator[T],
    *,
    steps: int,
    rate: float = 1e-3,
    decay: float = 0.0,
    until: int | None = None,
) -> Found:
    """AdamW over at most so many steps; leaves the weights as they were at the best look on dev.

    The start counts as a look, so that nothing learned is worse on dev than nothing. With `until` there is no look: the weights
    are left as they are after that step.
    """
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: warm_cosine(step, steps))
    best, best_at, best_score = [w.detach().clone() for w in weights], 0, look() if until is None else 0.0
    for step in range(1, (steps if until is None else until) + 1):
        optimiser.zero_grad()
        loss(next(batches)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, CLIP)
        optimiser.step()
        schedule.step()
        if until is None and (step % LOOK == 0 or step == steps):
            score = look()
            if score > best_score:
                best, best_at, best_score = [w.detach().clone() for w in weights], step, score
            elif step - best_at >= PATIENCE * LOOK:
                break
    if until is not None:
        return Found(best_score, until)
    with torch.no_grad():
        for weight, kept in zip(weights, best, strict=True):
            weight.copy_(kept)
    return Found(best_score, best_at)
