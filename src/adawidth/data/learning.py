"""What a fit may see: train and dev queries, never test queries; and the dev split of a dataset that has none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DataError, LeakError, OptionError
from ..types import Rows
from .labels import Judged
from .vectors import Vectors


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries, their judgements (none without labels), and for each query the row of the document that it is itself, or -1."""

    vectors: Vectors
    judged: Judged | None
    own: Rows
    candidates: Rows | None = None  # (Q, C) the documents to rank, -1 where a query has fewer; None: all documents

    def __repr__(self) -> str:
        return f"Queries({self.vectors!r}, {'no labels' if self.judged is None else self.judged})"

    def __len__(self) -> int:
        return len(self.vectors)

    def select(self, rows: ArrayLike) -> Queries:
        """These queries alone."""
        picked = np.asarray(rows, np.int64)
        judged = None if self.judged is None else self.judged.select(picked)
        candidates = None if self.candidates is None else self.candidates[picked]
        return Queries(self.vectors.select(picked), judged, self.own[picked], candidates)


@dataclass(frozen=True, eq=False)
class Learning:
    """What a fit may see: documents, train and dev queries. Test queries are refused when it is made."""

    documents: Vectors
    train: Queries
    dev: Queries

    def __post_init__(self) -> None:
        for part in (self.train, self.dev):
            if part.vectors.split == "test":
                raise LeakError(f"{part.vectors.name}: these are test queries; fit on the train split and choose on dev")
        for part in (self.train, self.dev):
            if len(part) and part.vectors.width != self.documents.width:
                raise DataError(
                    f"{part.vectors.name}: queries are {part.vectors.width} wide, documents ({self.documents.name}) "
                    f"{self.documents.width}: encode both with one encoder"
                )

    @property
    def labelled(self) -> bool:
        """Whether there are labels to learn from."""
        return self.train.judged is not None

    @cached_property
    def positives(self) -> Rows:
        """Rows of the documents relevant to a train or dev query: what a fit may have seen."""
        parts = [part.judged.relevant for part in (self.train, self.dev) if part.judged is not None]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def check_seed(seed: Any) -> None:
    """Refuses what no random numbers can be drawn from."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise OptionError(f"seed {seed!r} is not a whole number from 0 on")


def held_out(queries: Queries, seed: int, share: float = 0.15) -> tuple[Queries, Queries]:
    """(train, dev): dev is a seeded share of the queries. Where possible, no document is relevant to queries of both.

    Queries that share a relevant document form a group. Whole groups are taken in random order, except those that would
    exceed the share. If fewer than half of the share is reached in this way, single queries fill it up.
    """
    wanted = max(1, round(share * len(queries)))
    rng = np.random.default_rng(seed)
    groups = _groups(queries.judged) if queries.judged is not None else [[i] for i in range(len(queries))]
    taken: list[int] = []
    for place in rng.permutation(len(groups)):
        if len(taken) + len(groups[place]) <= wanted:
            taken += groups[place]
    if len(taken) < wanted / 2:
        rest = np.setdiff1d(np.arange(len(queries)), taken)
        taken += rng.choice(rest, wanted - len(taken), replace=False).tolist()
    dev = np.sort(np.array(taken, np.int64))
    return queries.select(np.setdiff1d(np.arange(len(queries)), dev)), queries.select(dev)


def _groups(judged: Judged) -> list[list[int]]:
    """Groups of queries that share relevant documents (union-find)."""
    parent = list(range(len(judged)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    owner: dict[int, int] = {}
    for query in range(len(judged)):
        for document in judged.positives(query).tolist():
            parent[root(query)] = root(owner.setdefault(document, query))
    groups: dict[int, list[int]] = {}
    for query in range(len(judged)):
        groups.setdefault(root(query), []).append(query)
    return list(groups.values())
