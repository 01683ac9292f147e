"""The paper as it stands: its rotation (64 reflections, its three losses) and its router over pairs of 64, 128 and 256 coordinates."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Self

from ..data import Learning
from ..policies import Policy
from ..policies.router import RouterModel, Transductive
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..training.choose import FEWEST_QUERIES
from ..training.extras import require
from ..training.pool import sample
from ..training.recipes import PAPER
from ..training.rotation import learn
from ..training.router import fit_paper_router
from ..training.task import Task
from .base import Rotated, Staged, plain

REFLECTIONS = 64
MINED_AT, SHORTLIST = 64, 500  # frozen coordinates by which training candidates are mined, and how many

log = logging.getLogger("adawidth")


class PaperRotation(Rotated):
    """The paper's rotation with so many reflections, at most the encoder width."""

    def __init__(self, reflections: int = REFLECTIONS) -> None:
        super().__init__()
        self.reflections = reflections

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return learned_rotation(sample(learning, seed), self.reflections, seed)

    @property
    def parameters(self) -> int:
        """The reflections' directions."""
        return count(self.rotation, self.reflections)


class Paper(Staged):
    """The queries searched together are the workload of which the router escalates a share.

    At the ends of a pair, and outside the widths it routes between, every document is ranked at the budget.
    """

    router: RouterModel | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns the rotation by the paper's recipe, then the router under it; returns itself."""
        require("lightgbm")
        pool = sample(learning, seed)
        self.rotation = self._found(pool, seed)
        self.router = fit_paper_router(pool, MemoryBackend(pool.documents, self.rotation), self.rotation, seed)
        return self

    def policy(self, budget: int, k: int) -> Policy:
        """The share of the queries that makes this mean width, over the pair that did best on dev."""
        router = self.router
        if router is None or not router.heads or not router.start <= budget <= router.widths[-1]:
            return plain(budget)
        policy = router.policy(budget=budget, transductive=True)
        return plain(budget) if isinstance(policy, Transductive) and budget in policy.head.widths else policy

    @property
    def parameters(self) -> int:
        """The reflections' directions."""
        return count(self.rotation, REFLECTIONS)

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return learned_rotation(learning, REFLECTIONS, seed)

    def _furthest(self, policy: Policy) -> int:
        return policy.reach


class RouterOnly(Paper):
    """The paper's router over the frozen axes."""

    parameters = 0

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.identity(learning.documents.width)


def paper_task(pool: Learning) -> Task:
    """What the paper learns from: candidates mined once at 64 frozen coordinates."""
    return Task.of(pool, width=MINED_AT, shortlist=SHORTLIST)


def enough(task: Task) -> bool:
    """Whether there are queries enough to learn from; says so where not."""
    usable = len(task.candidates.usable())
    if usable < FEWEST_QUERIES:
        log.warning("%d usable train queries, learning by gradient needs %d: the axes stay as they are", usable, FEWEST_QUERIES)
    return usable >= FEWEST_QUERIES


def learned_rotation(pool: Learning, reflections: int, seed: int) -> Rotation:
    """The paper's recipe from the frozen axes; these themselves where there are too few queries to learn from."""
    start, task = Rotation.identity(pool.documents.width), paper_task(pool)
    if not enough(task):
        return start
    return learn(replace(PAPER, reflections=min(reflections, start.width // 2 * 2)), start, task, seed).rotation


def count(rotation: Rotation | None, reflections: int) -> int:
    """Numbers in the directions of so many reflections, at most the encoder width."""
    return 0 if rotation is None else min(reflections, rotation.width) * rotation.width
