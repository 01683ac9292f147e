"""What every method to compare with is, and what most of them share: narrower vectors, a rotation, or stages over a shortlist."""

from __future__ import annotations

from typing import Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data import Floats, Hits, Learning, Queries, Vectors
from ..errors import OptionError
from ..index import MemoryIndex
from ..policies import Policy
from ..rotation import Rotation
from ..search import SHORTLIST, by_stages, exhaustive

Role = Literal["query", "document"]
DEPTH = 10  # answers that methods are compared by

T = TypeVar("T")


class Baseline(Protocol):
    """A way to answer queries without reading all of every vector."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns from documents, train and dev queries; returns itself. Every choice is made on dev."""
        ...

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """The k best of all documents for every query. For a method that spends unevenly the width is the mean it may spend."""
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


class Encoding:
    """A method that makes other, narrower vectors of queries and documents, to be compared by cosine."""

    def encode(self, x: Floats, role: Role, width: int) -> NDArray[np.float32]:
        """Unit rows as this method has them at a width. (n, D) -> (n, width)"""
        raise NotImplementedError

    def query_cost(self, width: int) -> float:
        """Multiply-adds that encoding one query takes."""
        raise NotImplementedError

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """All documents ranked by cosine of what the method makes of them."""
        encoded = np.concatenate([self.encode(block, "document", width) for _, block in documents.blocks()])
        index = MemoryIndex(Vectors(encoded, documents.ids, documents.name), Rotation.identity(encoded.shape[1]))
        return exhaustive(index, self.encode(queries.vectors.all(), "query", width), encoded.shape[1], k, queries.own)

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

    def encode(self, x: Floats, role: Role, width: int) -> NDArray[np.float32]:
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

    def policy(self, budget: int, k: int) -> Policy | None:
        """What reads the shortlist within a mean width; None: every document is ranked at that width."""
        raise NotImplementedError

    def asked(self, queries: Queries, width: int) -> NDArray[np.float32]:
        """The queries as the index is asked for them."""
        return self.encode(queries.vectors.all(), "query", width)

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """By the policy, or without one at a fixed width."""
        rotation, policy = fitted(self, self.rotation), self.policy(width, k)
        index, asked = MemoryIndex(documents, rotation), self.asked(queries, rotation.width)
        if policy is None:
            return exhaustive(index, asked, width, k, queries.own)
        return by_stages(index, asked, policy, k, own=queries.own)

    def stored_floats(self, width: int) -> float:
        """All coordinates where some candidates may be read that far."""
        return width if self.policy(width, DEPTH) is None else fitted(self, self.rotation).width

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """The whole query turned, the scan, and the shortlist's further coordinates."""
        policy, count, whole = self.policy(width, hits.rows.shape[1]), documents_of(hits), fitted(self, self.rotation).width
        if policy is None:
            return super().multiply_adds(width, hits)
        return self.query_cost(whole) + count * policy.start + min(SHORTLIST, count) * (hits.mean_width - policy.start)


def fitted(method: object, state: T | None) -> T:
    """What a fit left behind; refuses where there was none."""
    if state is None:
        raise OptionError(f"{type(method).__name__} has to be fitted before it is used")
    return state


def documents_of(hits: Hits) -> int:
    """How many documents were searched."""
    assert hits.documents is not None
    return len(hits.documents)
