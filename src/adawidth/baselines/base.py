"""What every method to compare with is, and what those that only turn the vectors share."""

from __future__ import annotations

from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..data import Floats, Hits, Learning, Queries, Vectors
from ..errors import OptionError
from ..rotation import Rotation

Role = Literal["query", "document"]


class Baseline(Protocol):
    """A way to make vectors narrower. What it makes of queries and documents is compared by cosine."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns from documents, train and dev queries; returns itself."""
        ...

    def encode(self, x: Floats, role: Role, width: int) -> NDArray[np.float32]:
        """Unit rows as this method has them at a width. (n, D) -> (n, width)"""
        ...

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        ...

    def stored_floats(self, width: int) -> int:
        """Numbers kept for each document to answer at this width."""
        ...


@runtime_checkable
class Searching(Protocol):
    """A method that spends unevenly, so that no one width is its own: it answers queries within a mean width given as budget."""

    def search(self, documents: Vectors, queries: Queries, budget: int, k: int) -> Hits:
        """The k best of all documents for every query."""
        ...


class Rotated:
    """A method that is a rotation: the same for queries and documents, cut at the width."""

    def __init__(self, rotation: Rotation | None = None) -> None:
        self.rotation = rotation

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Finds the rotation; returns itself."""
        self.rotation = self._found(learning, seed)
        return self

    def encode(self, x: Floats, role: Role, width: int) -> NDArray[np.float32]:
        """The leading coordinates of the rotated rows."""
        if self.rotation is None:
            raise OptionError(f"{type(self).__name__} has to be fitted before it encodes")
        return self.rotation.apply(x, width)

    @property
    def parameters(self) -> int:
        """A rotation has D (D - 1) / 2 degrees of freedom."""
        width = 0 if self.rotation is None else self.rotation.width
        return width * (width - 1) // 2

    def stored_floats(self, width: int) -> int:
        """As many as are read."""
        return width

    def _found(self, learning: Learning, seed: int) -> Rotation:
        if self.rotation is None:
            raise OptionError(f"{type(self).__name__} was given no rotation and has no way to find one")
        return self.rotation
