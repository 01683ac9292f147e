"""Exhaustive rankings in training: all documents, block by block, at one width or at several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..data import Judged
from ..kernels.topk import top_k
from ..metrics import Measure, evaluate
from ..types import F32, F64, Rows

DEPTH = 10
NDCG = Measure("nDCG", DEPTH)
SCORES = 64_000_000  # at most this many scores are held at a time

DevCurve = dict[int, F64]  # width -> nDCG@10 of every dev query


@dataclass(frozen=True, eq=False)
class Ranker:
    """Documents that queries are ranked on by prefix cosine at every width; partial sums continue from width to width."""

    documents: F32  # (N, D)
    widths: tuple[int, ...]  # ascending

    @cached_property
    def _inverse_lengths(self) -> list[F32]:
        energy = np.cumsum(np.square(self.documents), axis=1, dtype=np.float32)
        return [np.reciprocal(np.sqrt(np.maximum(energy[:, m - 1], 1e-12))) for m in self.widths]

    def curve(self, queries: F32, judged: Judged, own: Rows) -> DevCurve:
        """nDCG@10 of every query at each width, all documents ranked."""
        found = ranked(queries, self.documents, self.widths, DEPTH, own=own, scales=self._inverse_lengths)
        return {m: evaluate([NDCG], rows, judged)[str(NDCG)] for m, rows in zip(self.widths, found, strict=True)}


def nearest(queries: F32, documents: F32, k: int, own: Rows | None = None) -> Rows:
    """Rows of the k documents with the largest inner products, best first; `own` is a row each that is left out. (Q, k)"""
    return ranked(queries, documents, [documents.shape[1]], k, own=own)[0]


def ranked(
    queries: F32,
    documents: F32,
    widths: Sequence[int],
    k: int,
    *,
    own: Rows | None = None,
    scales: Sequence[F32] | None = None,
) -> list[Rows]:
    """The k best documents at each width by inner product, times a factor per document if given; `own` is left out. W × (Q, k)"""
    own = np.full(len(queries), -1) if own is None else own
    k = min(k, len(documents) - bool((own >= 0).any()))
    found = [np.empty((len(queries), k), np.int64) for _ in widths]
    ties, step = np.arange(len(documents)), max(1, SCORES // len(documents))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        sums, low = np.zeros((len(queries[part]), len(documents)), np.float32), 0
        masked = np.flatnonzero(own[part] >= 0)
        sums[masked, own[part][masked]] = -np.inf
        for place, m in enumerate(widths):
            sums += queries[part, low:m] @ documents[:, low:m].T
            found[place][part] = top_k(sums if scales is None else sums * scales[place], ties, k)
            low = m
    return found
