"""Which documents a training query is shown (methods 2.4): its positives, hard negatives and random ones of its shortlist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..data import Judged, Queries, Rows, unit

SCORES = 64_000_000  # at most this many scores are held at a time


def nearest(queries: NDArray[np.float32], documents: NDArray[np.float32], k: int, own: Rows | None = None) -> Rows:
    """Rows of the k documents with the largest inner products, best first; `own` is a row each that is left out. (Q, k)"""
    k = min(k, len(documents) - (own is not None and bool((own >= 0).any())))
    found = np.empty((len(queries), k), np.int64)
    ranks = np.arange(len(documents))
    step = max(1, SCORES // len(documents))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        scores = queries[part] @ documents.T
        if own is not None:
            masked = np.flatnonzero(own[part] >= 0)
            scores[masked, own[part][masked]] = -np.inf
        found[part] = kernels.top_k(scores, ranks, k)
    return found


@dataclass(frozen=True, eq=False)
class Candidates:
    """Positives and ranked negatives of every query, from which batches are drawn."""

    positives: list[Rows]
    negatives: list[Rows]  # of the shortlist, hardest first

    @classmethod
    def mine(
        cls,
        queries: Queries,
        documents: NDArray[np.float32],
        judged: Judged,
        *,
        width: int | None = None,
        shortlist: int = 500,
    ) -> Candidates:
        """From the shortlist by the leading `width` coordinates (the paper: 64), its negatives ordered by the full-width score."""
        vectors = queries.vectors.all()
        if width is None:
            short = nearest(vectors, documents, shortlist, queries.own)
        else:
            short = nearest(unit(vectors[:, :width]), unit(documents[:, :width]), shortlist, queries.own)
        positives, negatives = [], []
        for i in range(len(queries)):
            part = slice(judged.offsets[i], judged.offsets[i + 1])
            rows = short[i][~np.isin(short[i], judged.documents[part][judged.grades[part] > 0])]
            if width is not None:
                rows = rows[np.argsort(-(documents[rows] @ vectors[i]), kind="stable")]
            positives.append(judged.positives(i))
            negatives.append(rows)
        return cls(positives, negatives)

    def __len__(self) -> int:
        return len(self.positives)

    def usable(self) -> Rows:
        """Queries that have a positive and a negative."""
        return np.array([i for i in range(len(self)) if len(self.positives[i]) and len(self.negatives[i])], np.int64)

    def private(self, batch: Rows, count: int, rng: np.random.Generator, most_positives: int = 8) -> tuple[Rows, NDArray[np.bool_]]:
        """`count` candidates for each query alone: positives, the hardest half and a random half. (B, c) rows and positive mask

        Where a shortlist is too short the random half is drawn with repetition.
        """
        rows = np.empty((len(batch), count), np.int64)
        mask = np.zeros((len(batch), count), np.bool_)
        for place, query in enumerate(batch):
            positives, negatives = self.positives[query], self.negatives[query]
            if len(positives) > most_positives:
                positives = rng.choice(positives, most_positives, replace=False)
            hard = negatives[: (count - len(positives)) // 2]
            rest = negatives[len(hard) :] if len(negatives) > len(hard) else negatives
            missing = count - len(positives) - len(hard)
            rows[place] = np.concatenate([positives, hard, rng.choice(rest, missing, replace=missing > len(rest))])
            mask[place, : len(positives)] = True
        return rows, mask

    def shared(self, batch: Rows, negatives: int, rng: np.random.Generator, most_positives: int = 8) -> tuple[Rows, NDArray[np.bool_]]:
        """One candidate list for the whole batch: every query's positives and a few of its negatives, half of them hard.

        Returns the rows, each once, (c,) and for every query which of them are relevant to it, (B, c).
        """
        drawn: list[Rows] = []
        for query in batch:
            positives, ranked = self.positives[query], self.negatives[query]
            drawn.append(positives if len(positives) <= most_positives else rng.choice(positives, most_positives, replace=False))
            hard = ranked[: 4 * negatives]
            drawn.append(rng.choice(hard, min(len(hard), negatives - negatives // 2), replace=False))
            drawn.append(rng.choice(ranked, min(len(ranked), negatives // 2), replace=False))
        rows = np.unique(np.concatenate(drawn))
        mask = np.zeros((len(batch), len(rows)), np.bool_)
        for place, query in enumerate(batch):
            mask[place] = np.isin(rows, self.positives[query])
        return rows, mask
