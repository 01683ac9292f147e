"""The state of the stage loop: which candidates a batch of queries still reads, how far, and what that has cost.

A Stage is what a backend hands to a policy. Partial sums grow only by coordinates not yet read, so a query that ends at width m
has read m coordinates per candidate, not m0 + m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..hits import Read
from ..types import F32, F64, I64, Mask, Rows, Widths

if TYPE_CHECKING:
    from .backend import Reader


@dataclass(frozen=True, eq=False)
class Stage:
    """Candidates of Q queries, C each, at the widths they were read to. Columns stay the same from stage to stage."""

    backend: Reader
    queries: F32  # (Q, D), rotated
    candidates: Rows  # (Q, C), best first at stage 1; -1 where a query has fewer
    sums: F32  # (Q, C) partial inner products
    scores: F32  # (Q, C) prefix cosines at the width each candidate was last read at
    alive: Mask  # (Q, C) candidates still in it
    last: Widths  # (Q, C) the width each candidate was last read at
    widths: Widths  # (Q,) the width that each query's living candidates were read to
    coordinates: I64  # (Q,) coordinates read so far, over all candidates

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def mean_widths(self) -> F64:
        """Coordinates read per shortlist candidate, one number per query."""
        size = np.maximum((self.candidates >= 0).sum(axis=1), 1)
        return np.asarray(self.coordinates / size, np.float64)

    def read(self, start: int) -> Read:
        """What this has cost, after a scan at the start width."""
        count = (self.candidates >= 0).sum(axis=1)
        rotated = np.full(len(self), self.queries.shape[1], np.int64)
        return Read(count, self.coordinates, self.backend.bytes_read(start, self.coordinates), rotated)

    def ranked(self, k: int) -> tuple[Rows, F32]:
        """Rows and scores of the k best: those read furthest first, among them by score, then by id as trec_eval does."""
        ties = np.where(self.candidates >= 0, self.backend.documents.tie_rank[self.candidates], np.iinfo(np.int64).max)
        order = np.lexsort((ties, -self.scores, -self.last, self.candidates < 0), axis=1)[:, :k]
        return np.take_along_axis(self.candidates, order, axis=1), np.take_along_axis(self.scores, order, axis=1)


@dataclass(frozen=True, eq=False)
class Decision:
    """What to read next: the candidates that stay, and the width each query goes on to (its present one: it stops)."""

    keep: Mask  # (Q, C)
    widths: Widths  # (Q,)
