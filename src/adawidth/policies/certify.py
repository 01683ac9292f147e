"""Certify: reads on until the top k and its order are proved, by Cauchy–Schwarz, to be those of the target width.

What is left of an inner product beyond width m lies within the sum of |q_B| |d_B| over the blocks B between the ladder's
widths, and, since the queries' share of the documents' mean is known, also within the same sum for documents measured
from their mean. The true score lies in both intervals; their intersection is used. One block instead of several is the
plain bound, which is never tighter. The index brings the blocks' lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..stages import Decision, Stage
from ..types import F64, I64, Mask
from .base import ladder_from

MARGIN = 1e-6  # a gap between bounds counts from here on: float32 sums are off by less

Bounds = F64  # (Q, C)


@dataclass(frozen=True)
class Certify:
    """The shortlist's exact top k at width `target`; a query stops as soon as it is proved in the order that it ranks them in."""

    start: int
    target: int
    k: int = 10
    name = "certify"

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return self.target

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """The widths at which a proof is tried."""
        return ladder_from(self.start, self.target)

    def decide(self, stage: Stage) -> Decision:
        """Drops what is proved to be outside the top k, stops what is proved, and takes the rest one ladder width on."""
        lower, upper = self.bounds(stage)
        k = min(self.k, lower.shape[1])
        kth = -np.partition(-lower, k - 1, axis=1)[:, k - 1, None]
        keep = stage.alive & (upper >= kth - MARGIN)
        following = dict(pairwise(self.ladder))
        widths = np.array([following.get(width, width) for width in stage.widths.tolist()], np.int64)
        return Decision(keep, np.where(self._proved(stage, keep, lower, upper), stage.widths, widths))

    def bounds(self, stage: Stage) -> tuple[Bounds, Bounds]:
        """Lower and upper bound of every living candidate's score at the target width; -inf for the others."""
        lower = np.full(stage.candidates.shape, -np.inf)
        upper = lower.copy()
        for width in np.unique(stage.widths).tolist():
            here = np.flatnonzero(stage.widths == width)
            queries, rows = stage.queries[here], stage.candidates[here]
            edges = tuple(m for m in self.ladder if m >= width)
            sums = stage.sums[here].astype(np.float64)
            slack = spread(stage, here, edges)
            middle = sums + (queries[:, width : self.target] @ stage.backend.centre[width : self.target])[:, None]
            centred_slack = spread(stage, here, edges, centred=True)
            scale = stage.backend.norms(self.target)[rows] * np.linalg.norm(queries[:, : self.target], axis=1).astype(np.float64)[:, None]
            lower[here] = np.maximum(sums - slack, middle - centred_slack) / scale
            upper[here] = np.minimum(sums + slack, middle + centred_slack) / scale
        return np.where(stage.alive, lower, -np.inf), np.where(stage.alive, upper, -np.inf)

    def _proved(self, stage: Stage, keep: Mask, lower: Bounds, upper: Bounds) -> Mask:
        """Queries with k candidates left, ranked by prefix score in an order that the bounds prove, ahead of those dropped. (Q,)"""
        wanted = np.minimum(self.k, stage.alive.sum(axis=1))
        scores = np.where(keep, stage.scores, -np.inf)
        k = min(self.k, scores.shape[1])
        first = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        order = np.take_along_axis(first, np.argsort(-np.take_along_axis(scores, first, axis=1), axis=1), axis=1)
        ranked, low, high = (np.take_along_axis(values, order, axis=1) for values in (scores, lower, upper))
        empty = ~np.take_along_axis(keep, order, axis=1)  # places that a query with fewer than k candidates leaves open
        settled = ((low[:, :-1] > high[:, 1:] + MARGIN) & (ranked[:, :-1] > ranked[:, 1:])) | empty[:, 1:]
        dropped = np.where(stage.alive & ~keep, stage.scores, -np.inf).max(axis=1)
        last = np.where(empty, np.inf, ranked).min(axis=1)
        return np.asarray((keep.sum(axis=1) == wanted) & settled.all(axis=1) & (last > dropped))


def spread(stage: Stage, here: I64, edges: Sequence[int], *, centred: bool = False) -> Bounds:
    """How far the inner products of the queries `here` can be moved by the coordinates from the first to the last edge: Σ |q_B| |d_B|."""
    rows = stage.candidates[here]
    total = np.zeros(rows.shape)
    for begin, end in pairwise(edges):
        lengths = np.linalg.norm(stage.queries[here, begin:end], axis=1).astype(np.float64)
        total += lengths[:, None] * stage.backend.block_norms(begin, end, centred=centred)[rows]
    return total
