"""What methods share that mask queries: each coordinate of a query has an importance, the most important are kept, documents stay whole.

A mask saves multiplications, not memory: which coordinates are read is known only when the query is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from ..data import Judged, Learning, Queries, Vectors
from ..errors import OptionError
from ..hits import Hits
from ..metrics import evaluate
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..stages.loop import exhaustive
from ..stages.memory import twins
from ..training.candidates import Candidates
from ..training.pool import sample
from ..training.ranking import DEPTH, NDCG, nearest
from ..training.recipes import TRAINED_WIDTHS
from ..training.task import DEV_QUERIES, evenly, frozen_top
from ..types import F32, Mask, Rows
from .base import documents_of, fitted

Importance = F32  # (Q, D), the largest are kept: signed, not absolute

LIST = 1_000  # answers of the whole query that feedback may use
NEGATIVES = 16  # nearest documents that are not relevant


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries and the documents that they are asked of."""

    index: MemoryBackend
    queries: Queries

    @classmethod
    def of(cls, documents: Vectors, queries: Queries) -> Asked:
        """The documents as they are, in memory."""
        return cls(MemoryBackend(documents, Rotation.identity(documents.width)), queries)

    @classmethod
    def on_dev(cls, learning: Learning, seed: int) -> Asked:
        """What choices are made by. Without labels the frozen first document stands in for the relevant one."""
        pool = sample(learning, seed)
        dev = pool.dev.select(evenly(len(pool.dev), DEV_QUERIES))
        if dev.judged is None:
            dev = replace(dev, judged=frozen_top(dev.vectors.all(), pool.documents.all(), 1, dev.own))
        return cls.of(pool.documents, dev)

    @cached_property
    def vectors(self) -> F32:
        """The whole queries. (Q, D)"""
        return self.queries.vectors.all()

    @cached_property
    def answers(self) -> Rows:
        """The documents that the whole queries find, best first: the first pass that feedback needs. (Q, at most 1,000)"""
        if self.queries.candidates is not None:
            return exhaustive(self.index, self.vectors, self.index.width, LIST, candidates=self.queries.candidates).rows
        return nearest(self.vectors, self.index.rows, LIST, self.queries.own)

    @cached_property
    def twins(self) -> tuple[Rows, Rows]:
        """Documents that repeat an earlier one, and those earlier ones."""
        return twins(self.index.source)

    @property
    def judged(self) -> Judged:
        """The queries' own labels, for what is learned and for oracles."""
        if self.queries.judged is None:
            raise OptionError("an oracle reads the labels of the queries that it answers, these have none: give labels or another method")
        return self.queries.judged

    def centroids(self, rows: Rows | list[Rows]) -> F32:
        """Mean of each query's documents, zero where it has none. (Q, D)"""
        means = [self.index.rows[own].mean(axis=0) if len(own) else np.zeros(self.index.width) for own in rows]
        return np.asarray(means, np.float32).reshape(-1, self.index.width)

    def contrast(self) -> Importance:
        """q ⊙ (mean of the relevant documents − mean of the nearest others): what the labels say each coordinate is worth."""
        most = int(np.diff(self.judged.offsets).max(initial=0))
        mined = Candidates.mine(self.queries, self.index.rows, self.judged, shortlist=NEGATIVES + most)
        relevant = self.centroids([mined.positives.positives(query) for query in range(len(mined))])
        return self.vectors * (relevant - self.centroids(mined.negatives[:, :NEGATIVES]))


class Masked(ABC):
    """Zeroes all but the most important coordinates of each query and ranks whole documents by their inner product with it."""

    width: int | None = None  # the encoder's; None before a fit
    parameters = 0

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns nothing but how wide the vectors are; returns itself."""
        self.width = learning.documents.width
        return self

    @abstractmethod
    def importance(self, asked: Asked) -> Importance:
        """Of every coordinate of every query."""

    def query_cost(self, documents: int) -> float:
        """Multiply-adds that the mask of one query takes, over so many documents."""
        return 0.0

    def kept(self, importance: Importance, width: int) -> Mask:
        """The coordinates that are read."""
        return largest(importance, width)

    def ranked(self, asked: Asked, mask: Mask, k: int) -> Hits:
        """The k best documents for the masked queries."""
        queries = asked.queries
        hits = exhaustive(asked.index, asked.vectors * mask, asked.index.width, k, queries.own, queries.candidates)
        return replace(hits, widths=mask.sum(axis=1).astype(np.float64))

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """Documents ranked by the masked queries."""
        fitted(self, self.width)
        asked = Asked.of(documents, queries)
        return self.ranked(asked, self.kept(self.importance(asked), width), k)

    def stored_floats(self, width: int) -> float:
        """All of them at any width, as each query reads others."""
        return fitted(self, self.width)

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """The mask, and every document at the coordinates that are kept."""
        count = documents_of(hits)
        return self.query_cost(count) + count * hits.mean_width

    def score(self, asked: Asked, importance: Importance) -> float:
        """nDCG@10, mean over the queries and the widths below the encoder's."""
        widths = [m for m in TRAINED_WIDTHS if m < asked.index.width] or [asked.index.width]
        found = [self.ranked(asked, largest(importance, m), DEPTH).rows for m in widths]
        return float(np.mean([evaluate([NDCG], rows, asked.judged)[str(NDCG)].mean() for rows in found]))


def largest(importance: Importance, width: int) -> Mask:
    """Marks the `width` largest of each row, the first among equals."""
    mask = np.zeros(importance.shape, np.bool_)
    np.put_along_axis(mask, np.argsort(-importance, axis=1, kind="stable")[:, :width], True, axis=1)
    return mask
