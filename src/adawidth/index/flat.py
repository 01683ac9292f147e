"""Exact codes: the leading coordinates themselves, scanned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data import Rows


@dataclass(frozen=True, eq=False)
class Codes:
    """Unit prefixes of a segment's documents."""

    block: NDArray[np.float32]  # (N, m0)
    storage: str = "flat"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is stored."""
        return {"block": self.block}

    @classmethod
    def of(cls, storage: str, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The codes that `arrays` gave."""
        return cls(arrays["block"], storage)

    def search(self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None) -> Rows:
        """Rows of the k best, -1 where there are fewer. (Q, m0) -> (Q, k)"""
        scores = queries @ self.block.T
        if allowed is not None:
            scores[:, ~allowed] = -np.inf
        k_here = min(k, len(self.block))
        found = np.argpartition(-scores, k_here - 1, axis=1)[:, :k_here]
        found[np.take_along_axis(scores, found, axis=1) == -np.inf] = -1
        out = np.full((len(queries), k), -1, np.int64)
        out[:, :k_here] = found
        return out


def build(block: NDArray[np.float32], storage: str, seed: int) -> Codes:
    """Codes of unit prefixes."""
    return Codes(np.array(block), "flat")
