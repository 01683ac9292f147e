"""What a search answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

from .data import Vectors
from .types import F32, F64, I64, Id, Rows


class Read(NamedTuple):
    """What each query has read: candidates, their coordinates, and bytes of both the scan and the candidates. (queries,) each"""

    candidates: I64
    coordinates: I64
    bytes: I64


@dataclass(frozen=True, eq=False)
class Hits:
    """Answers, best first: document rows (-1 where there are fewer than k) and scores, and the mean width each query was read at."""

    rows: Rows  # (queries, k)
    scores: F32  # (queries, k)
    widths: F64  # (queries,) coordinates read per shortlist candidate
    documents: Vectors | None = None
    read: Read | None = None  # of answers by stages

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def mean_width(self) -> float:
        """Coordinates read per candidate, averaged over the queries."""
        return float(self.widths.mean()) if len(self.widths) else 0.0

    @cached_property
    def ids(self) -> list[list[Id]]:
        """Document ids, one list a query, without padding."""
        names: Sequence[Id] = self.documents.ids if self.documents is not None else range(int(self.rows.max(initial=-1)) + 1)
        return [[names[row] for row in ranked if row >= 0] for ranked in self.rows.tolist()]

    def top(self, k: int) -> Self:
        """The first k of every answer."""
        return replace(self, rows=self.rows[:, :k], scores=self.scores[:, :k])
