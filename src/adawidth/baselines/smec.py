"""SMEC (Zhang et al. 2025; methods 6): from width to width in steps, each of which chooses the coordinates that go on.

    y = x + A x + b,     x' = y on its chosen coordinates, largest logit first, at length one

A step learns alone, what came before it is frozen: rank loss of y and of x', and the cosines of frozen vectors kept in x'
between rows of the batch and their nearest in a memory of former batches. The choice is a hard mask, whose gradient is
that of a sigmoid around the last logit chosen. Steps end at 32, the narrowest width that every method learns at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..data import Learning, unit
from ..rotation import Rotation
from ..training.pool import sample
from ..training.recipes import TRAINED_WIDTHS
from ..training.task import Task
from ..types import F32, I64, Floats
from .base import Encoding, Role, Rotated, fitted
from .descent import STEPS, Batch, Course, Ground, learned
from .residual import rank_loss

MEMORY = 5_000  # rows of former batches, queries and documents
ANCHORS = 32  # rows of a batch that look for neighbours there
NEIGHBOURS = 10
TAUS = (1.0, 0.2)  # temperature of the choice, from the first to the last gradient step
RATE = 1e-4  # a map that changes faster soon loses what frozen vectors knew of documents without labels
SCALE = 1_000.0  # of logits to their weights: they have to outgrow the noise in a few hundred gradient steps
SAME = 1 - 1e-5  # cosine from which a neighbour is the row itself


@dataclass(frozen=True, eq=False)
class Step:
    """From one width to a narrower one."""

    matrix: F32  # (d, d), I + A
    bias: F32  # (d,)
    order: I64  # (d,) coordinates by their logits, largest first
    width: int  # of what goes on

    def apply(self, x: Floats) -> F32:
        """Unit rows of the chosen coordinates. (n, d) -> (n, width)"""
        chosen = self.order[: self.width]
        return unit(np.asarray(x, np.float32) @ self.matrix[chosen].T + self.bias[chosen])


class SMEC(Encoding):
    """Between the widths of two steps the wider one's leading coordinates are used.

    The vectors of different steps are no prefixes of one another: what is stored is told for an index that serves one width,
    and one that serves several stores them side by side.
    """

    steps: tuple[Step, ...] | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns step after step; returns itself."""
        self.steps = tuple(learned(sample(learning, seed), partial(learned_steps, mapped=True, seed=seed)))
        return self

    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """The leading coordinates of the last step that is wide enough."""
        return unit(passed(x, self._steps(width))[:, :width])

    def query_cost(self, width: int) -> float:
        """The matrices on the way, the chosen rows of each."""
        return sum(step.width * len(step.order) for step in self._steps(width))

    @property
    def parameters(self) -> int:
        """The matrix, bias and logits of every step."""
        return sum(len(step.order) * (len(step.order) + 2) for step in fitted(self, self.steps))

    def _steps(self, width: int) -> list[Step]:
        return [step for step in fitted(self, self.steps) if step.width >= width]


class NestedSMEC(Rotated):
    """Choice and order alone, no map: a permutation of the coordinates, so that one index serves every width."""

    def query_cost(self, width: int) -> float:
        """Reading in another order multiplies nothing."""
        return 0.0

    @property
    def parameters(self) -> int:
        """The logits of every step."""
        return sum(step_widths(fitted(self, self.rotation).width)[:-1])

    def _found(self, learning: Learning, seed: int) -> Rotation:
        steps, width = learned(sample(learning, seed), partial(learned_steps, mapped=False, seed=seed)), learning.documents.width
        return Rotation(np.eye(width, dtype=np.float32)[permutation(steps, width)], "smec")


def step_widths(width: int) -> tuple[int, ...]:
    """The encoder width halved as long as that leaves more than 256, then every width that is learned at, down to 32."""
    halves = [width]
    while halves[-1] // 2 > TRAINED_WIDTHS[-1]:
        halves.append(halves[-1] // 2)
    return (*halves, *(m for m in reversed(TRAINED_WIDTHS) if m < width))


def permutation(steps: list[Step], width: int) -> I64:
    """All coordinates, those first that went furthest, each step's own by their logits."""
    order = np.arange(width)
    for step in steps:
        order = np.concatenate([order[: len(step.order)][step.order], order[len(step.order) :]])
    return order


def choice(logits: Tensor, noise: Tensor, width: int, tau: float) -> Tensor:
    """1 for the `width` largest noisy logits, 0 for the others; the gradient is a sigmoid's around the last one chosen. (d,)"""
    noisy = logits + noise
    chosen = noisy.topk(width)
    soft = torch.sigmoid((noisy - chosen.values[-1].detach()) / tau)
    return torch.zeros_like(soft).scatter(0, chosen.indices, 1.0) + soft - soft.detach()


class Memory:
    """The latest rows of former batches, first in, first out; a row is a step's input and, behind it, the frozen vector."""

    def __init__(self, width: int) -> None:
        self.rows, self.count = torch.empty(MEMORY, width), 0

    def add(self, rows: Tensor) -> None:
        """Overwrites the oldest rows."""
        rows = rows[-MEMORY:]
        self.rows[(self.count + torch.arange(len(rows))) % MEMORY] = rows
        self.count += len(rows)

    def neighbours(self, frozen: Tensor) -> tuple[Tensor, Tensor]:
        """The nearest by frozen vectors that are not the row itself, and their cosines. (a, D) -> (a, K, d + D), (a, K)"""
        held = self.rows[: self.count]
        cosines = frozen @ held[:, -frozen.shape[1] :].T
        found = cosines.masked_fill(cosines > SAME, -1.0).topk(min(NEIGHBOURS, len(held)))
        return held[found.indices], found.values


def learned_steps(ground: Ground, course: Course, *, mapped: bool, seed: int) -> list[Step]:
    """One step after the other; without maps they only choose. The gradient steps are shared out evenly."""
    steps: list[Step] = []
    widths = step_widths(ground.task.width)
    for before, width in pairwise(widths):
        task = carrying(ground.task, steps)
        here = replace(ground, task=task, evaluated=task.without_dev_beyond())
        steps.append(StepInTraining(here, before, width, STEPS // (len(widths) - 1), mapped=mapped, seed=seed).learn(course))
    return steps


class StepInTraining:
    """What one step learns, over rows that are its input and, behind it, the frozen vector."""

    def __init__(self, ground: Ground, before: int, width: int, steps: int, *, mapped: bool, seed: int) -> None:
        self.ground, self.before, self.width, self.steps, self.mapped = ground, before, width, steps, mapped
        self.change = torch.zeros(before, before, requires_grad=mapped)
        self.bias = torch.zeros(before, requires_grad=mapped)
        self.logits = torch.zeros(before, requires_grad=True)
        self.memory = Memory(ground.task.width)
        self.rng, self.generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        self.done = 0

    def learn(self, course: Course) -> Step:
        """The step where the descent leaves it."""
        weights = [weight for weight in (self.change, self.bias, self.logits) if weight.requires_grad]
        course.descend(weights, self.loss, self.evaluate, self.ground.batches(self.rng), steps=self.steps, rate=RATE)
        return self.step()

    def step(self) -> Step:
        """As it stands."""
        matrix, bias = torch.eye(self.before) + self.change.detach(), self.bias.detach().clone()
        order = torch.argsort(self.logits.detach(), descending=True, stable=True)
        return Step(matrix.numpy(), bias.numpy(), order.numpy(), self.width)

    def evaluate(self) -> float:
        """nDCG@10 on dev at the width of what goes on."""
        step = self.step()
        return self.ground.evaluate(lambda rows: step.apply(rows[:, : self.before]), widths=(self.width,))

    def loss(self, batch: Batch) -> Tensor:
        """Rank losses before and after the choice, and how far cosines after it are from frozen ones."""
        tau = TAUS[0] * (TAUS[1] / TAUS[0]) ** (self.done / self.steps)
        self.done += 1
        noise = -torch.log(torch.empty(self.before).exponential_(generator=self.generator))  # Gumbel's
        mask = choice(SCALE * self.logits, noise, self.width, tau)
        q, d = self._changed(batch.queries), self._changed(batch.documents)
        total = rank_loss(_cosines(q * mask, d * mask), batch.relevant)
        if self.mapped:
            total = total + rank_loss(_cosines(q, d), batch.relevant)
        rows = torch.cat([batch.queries, batch.documents])
        if self.memory.count:
            picked = rows[torch.randperm(len(rows), generator=self.generator)[:ANCHORS]]
            near, frozen = self.memory.neighbours(picked[:, self.before :])
            kept = functional.cosine_similarity((self._changed(picked) * mask)[:, None], self._changed(near) * mask, dim=-1)
            total = total + (frozen - kept).abs().mean()
        self.memory.add(rows)
        return total

    def _changed(self, rows: Tensor) -> Tensor:
        x = rows[..., : self.before]
        return x + functional.linear(x, self.change, self.bias) if self.mapped else x


def carrying(task: Task, steps: list[Step]) -> Task:
    """The same task, each row led by what the steps make of it."""
    documents, queries, dev = (np.hstack([passed(x, steps), x]) for x in (task.documents, task.queries, task.dev))
    return replace(task, documents=documents, queries=queries, dev=dev)


def passed(x: Floats, steps: Iterable[Step]) -> Floats:
    """Rows through one step after the other."""
    for step in steps:
        x = step.apply(x)
    return x


def _cosines(q: Tensor, d: Tensor) -> Tensor:
    """(B, d), (c, d) -> (1, B, c), as the rank loss takes them."""
    return (functional.normalize(q, dim=1) @ functional.normalize(d, dim=1).T)[None]
