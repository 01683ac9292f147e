"""What every method to compare with is, and what most of them share: narrower vectors, a rotation, or stages over a shortlist."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, Protocol, Self, TypeVar

import numpy as np

from ..data import Learning, Queries, Vectors
from ..errors import OptionError
from ..hits import Hits
from ..policies import Fixed, Policy
from ..policies.router import Transductive
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..stages.loop import SHORTLIST, by_stages, exhaustive
from ..training.ranking import DEPTH
from ..types import F32, Floats, Rows

Role = Literal["query", "document"]

T = TypeVar("T")


class Baseline(Protocol):
    """A way to answer queries without reading all of every vector."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns from documents, train and dev queries; returns itself. Every choice is made on dev."""
        ...

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """The k best of all documents, or of the candidates that queries have. What spends unevenly may spend the width on average."""
        ...

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        ...

    def stored_floats(self, width: int) -> float:
        """What is kept of each document to answer at this width, in numbers of four bytes."""
        ...

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """Of one query: what is done to it, the scan over all documents, and what was read after that."""
        ...


class Encoding(ABC):
    """A method that makes other, narrower vectors of queries and documents, to be compared by cosine."""

    @abstractmethod
    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """Unit rows as this method has them at a width. (n, D) -> (n, width)"""

    @abstractmethod
    def query_cost(self, width: int) -> float:
        """Multiply-adds that encoding one query takes."""

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """Documents ranked by cosine of what the method makes of them."""
        encoded = np.concatenate([self.encode(block, "document", width) for _, block in documents.blocks()])
        index = MemoryBackend(Vectors(encoded, documents.ids, documents.name), Rotation.identity(encoded.shape[1]))
        asked = self.encode(queries.vectors.all(), "query", width)
        return exhaustive(index, asked, encoded.shape[1], k, queries.own, queries.candidates)

    def stored_floats(self, width: int) -> float:
        """As many as are read."""
        return width

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """The query's encoding, and every document at the width."""
        return self.query_cost(width) + documents_of(hits) * width


class Rotated(Encoding):
    """A method that is a rotation: the same for queries and documents, cut at the width."""

    def __init__(self, rotation: Rotation | None = None) -> None:
        self.rotation = rotation

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Finds the rotation; returns itself."""
        self.rotation = self._found(learning, seed)
        return self

    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """The leading coordinates of the rotated rows."""
        return fitted(self, self.rotation).apply(x, width)

    def query_cost(self, width: int) -> float:
        """The leading rows of the matrix."""
        return fitted(self, self.rotation).width * width

    @property
    def parameters(self) -> int:
        """A rotation has D (D - 1) / 2 degrees of freedom."""
        width = fitted(self, self.rotation).width
        return width * (width - 1) // 2

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return fitted(self, self.rotation)


class Staged(Rotated):
    """A rotation read by a policy: a scan at its start width, a shortlist, and further coordinates as it decides."""

    @abstractmethod
    def policy(self, budget: int, k: int) -> Policy:
        """What reads the shortlist within a mean width, or `plain`."""

    def asked(self, queries: Queries) -> F32:
        """The queries as the index is asked for them."""
        return self.encode(queries.vectors.all(), "query", fitted(self, self.rotation).width)

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """By the policy."""
        index, policy = MemoryBackend(documents, fitted(self, self.rotation)), self.policy(width, k)
        whole = isinstance(policy, Transductive)
        return by_stages(index, self.asked(queries), policy, k, own=queries.own, candidates=queries.candidates, whole=whole)

    def stored_floats(self, width: int) -> float:
        """All coordinates where some candidates may be read that far."""
        return self._furthest(self.policy(width, DEPTH))

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """The query rotated, the scan, and the shortlist's further coordinates."""
        policy, count = self.policy(width, hits.rows.shape[1]), documents_of(hits)
        further = min(SHORTLIST, count) * (hits.mean_width - policy.start)
        return self.query_cost(self._furthest(policy)) + count * policy.start + further

    def _furthest(self, policy: Policy) -> int:
        return policy.start if policy == plain(policy.start) else fitted(self, self.rotation).width


def plain(width: int) -> Fixed:
    """Every document ranked at one width."""
    return Fixed(width, start=width)


def fitted(method: object, state: T | None) -> T:
    """What a fit left behind; refuses where there was none."""
    if state is None:
        raise OptionError(f"{type(method).__name__} has to be fitted before it is used")
    return state


def restricted(scores: F32, candidates: Rows | None) -> F32:
    """Scores of all documents, -inf for all but the candidates. (Q, N), (Q, C)"""
    if candidates is None:
        return scores
    query, place = np.nonzero(candidates >= 0)
    kept = np.full_like(scores, -np.inf)
    kept[query, candidates[query, place]] = scores[query, candidates[query, place]]
    return kept


def documents_of(hits: Hits) -> int:
    """How many documents were searched."""
    assert hits.documents is not None
    return len(hits.documents.ids)
