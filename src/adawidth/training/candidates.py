"""Which documents a training query is shown (methods 2.4): its positives, hard negatives and random ones of its shortlist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data import Judged, Queries, unit
from ..types import F32, I64, Mask, Rows
from .ranking import nearest


@dataclass(frozen=True, eq=False)
class Candidates:
    """Positives and ranked negatives of every query, from which batches are drawn."""

    positives: Judged  # the relevant documents alone
    negatives: Rows  # (n, K) of the shortlist, hardest first; beyond a query's `counts` repeated
    counts: I64  # (n,)

    @classmethod
    def mine(
        cls,
        queries: Queries,
        documents: F32,
        judged: Judged,
        *,
        width: int | None = None,
        shortlist: int = 500,
    ) -> Candidates:
        """From the shortlist by the leading `width` coordinates (the paper: 64) or by all; its negatives ordered by full-width score."""
        vectors = queries.vectors.all()
        if width is None:
            short = nearest(vectors, documents, shortlist, queries.own)
        else:
            short = nearest(unit(vectors[:, :width]), unit(documents[:, :width]), shortlist, queries.own)
            short = np.stack([rows[np.argsort(-(documents[rows] @ x), kind="stable")] for rows, x in zip(short, vectors, strict=True)])
        relevant = _relevant(judged)
        size = len(documents)
        owner = np.repeat(np.arange(len(relevant)), np.diff(relevant.offsets))
        positive = np.isin(short + size * np.arange(len(short))[:, None], relevant.documents + size * owner)
        order = np.argsort(positive, axis=1, kind="stable")  # negatives first, in their order
        counts = (~positive).sum(axis=1)
        places = np.arange(short.shape[1]) % np.maximum(counts, 1)[:, None]
        return cls(relevant, np.take_along_axis(np.take_along_axis(short, order, axis=1), places, axis=1), counts)

    def __len__(self) -> int:
        return len(self.counts)

    def usable(self) -> Rows:
        """Queries that have a positive and a negative."""
        return np.flatnonzero((np.diff(self.positives.offsets) > 0) & (self.counts > 0))

    def private(self, batch: Rows, count: int, rng: np.random.Generator, most_positives: int = 8) -> tuple[Rows, Mask]:
        """`count` candidates for each query alone: positives, the hardest half and a random half. (B, c) rows and positive mask

        Where a shortlist is too short, negatives repeat.
        """
        rows = np.empty((len(batch), count), np.int64)
        mask = np.zeros((len(batch), count), np.bool_)
        for place, query in enumerate(batch):
            positives = self.positives.positives(query)
            if len(positives) > most_positives:
                positives = rng.choice(positives, most_positives, replace=False)
            missing = count - len(positives)
            hard = min(missing // 2, int(self.counts[query]))
            rest = np.arange(hard, self.counts[query]) if self.counts[query] > hard else np.arange(self.counts[query])
            drawn = rng.choice(rest, missing - hard, replace=missing - hard > len(rest))
            rows[place] = np.concatenate([positives, self.negatives[query, :hard], self.negatives[query, drawn]])
            mask[place, : len(positives)] = True
        return rows, mask

    def shared(self, batch: Rows, negatives: int, rng: np.random.Generator, hardest: int = 20) -> tuple[Rows, Mask]:
        """One candidate list for the whole batch: every query's positives and a few of its negatives, half of them among the hardest.

        Returns the rows, each once, (c,) and for every query which of them are relevant to it, (B, c).
        """
        counts, hard = self.counts[batch][:, None], negatives // 2
        places = np.concatenate(
            [
                rng.integers(0, np.minimum(counts, hardest), (len(batch), hard)),
                rng.integers(0, counts, (len(batch), negatives - hard)),
            ],
            axis=1,
        )
        relevant = self.positives.select(batch)
        rows = np.unique(np.concatenate([self.negatives[batch[:, None], places].ravel(), relevant.documents]))
        mask = np.zeros((len(batch), len(rows)), np.bool_)
        owner = np.repeat(np.arange(len(batch)), np.diff(relevant.offsets))
        mask[owner, np.searchsorted(rows, relevant.documents)] = True
        return rows, mask


def _relevant(judged: Judged) -> Judged:
    """The judgements above grade 0 alone."""
    kept = judged.grades > 0
    counts = np.bincount(np.repeat(np.arange(len(judged)), np.diff(judged.offsets))[kept], minlength=len(judged))
    return Judged(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), judged.documents[kept], judged.grades[kept])
