"""Four bits a coordinate, all of which faiss scans with its fast-scan kernels.

The block is turned at random before it is coded. That changes no inner product and spreads what the leading coordinates carry, so
that sixteen levels a coordinate do for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..data import BLOCK, Rows
from . import codes_kernels
from .codes_base import SAMPLE, Array, Block, Codes, Mask, checked

LEVELS = 16
ROUNDS = 20  # of fitting levels
FEW = 20  # where fewer than one row in so many is allowed, those alone are scored
ROOM = 1.3  # as many times the rows are asked for that should hold enough allowed ones


class FourBit(Codes):
    """The codes, the turn they were made under, and what each of them stands for."""

    storage = "pq4"

    def __init__(self, turn: NDArray[np.float32], levels: NDArray[np.float32], codes: NDArray[np.uint8]) -> None:
        self._turn = turn  # (m, m) orthogonal
        self._levels = levels  # (m, 16) ascending
        self._codes = codes  # (N, (m + 1) // 2)
        plain = with_levels(faiss.IndexPQ(len(turn), len(turn), 4, faiss.METRIC_INNER_PRODUCT), levels)
        faiss.copy_array_to_vector(np.ascontiguousarray(codes).ravel(), plain.codes)
        plain.ntotal = len(codes)
        self._index = faiss.IndexPQFastScan(plain)

    @classmethod
    def build(cls, block: Block, seed: int) -> Self:
        turn = random_turn(block.shape[1], seed)
        learned = np.sort(np.random.default_rng(seed).permutation(len(block))[:SAMPLE])
        levels = fitted_levels(block[learned] @ turn.T)
        codes = np.empty((len(block), (block.shape[1] + 1) // 2), np.uint8)
        for start in range(0, len(block), BLOCK):
            part = slice(start, start + BLOCK)
            codes_kernels.encode(block[part] @ turn.T, edges(levels), codes[part])
        return cls(turn, levels, codes)

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Self:
        width = len(checked(arrays, "turn", np.float32, (None, None)))
        turn = checked(arrays, "turn", np.float32, (width, width))
        levels = checked(arrays, "levels", np.float32, (width, LEVELS))
        return cls(turn, levels, checked(arrays, "codes", np.uint8, (None, (width + 1) // 2)))

    def arrays(self) -> dict[str, Array]:
        return {"turn": self._turn, "levels": self._levels, "codes": self._codes}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def width(self) -> int:
        return len(self._turn)

    @property
    def bytes_per_document(self) -> float:
        return float(self._codes.shape[1])

    def _search(self, queries: NDArray[np.float32], k: int) -> Rows:
        return np.asarray(self._index.search(queries @ self._turn.T, k)[1])

    def _search_among(self, queries: NDArray[np.float32], k: int, allowed: Mask, rows: Rows) -> Rows:
        """The allowed ones among the best of all rows; where these are too few, all allowed ones are scored."""
        turned, found = queries @ self._turn.T, np.empty((len(queries), k), np.int64)
        many = len(rows) * FEW >= len(self)
        best = self._index.search(turned, min(len(self), round(ROOM * k * len(self) / len(rows)) + k))[1] if many else found[:, :0]
        for query, near in enumerate(best):
            kept = near[(near >= 0) & allowed[near]]
            found[query] = kept[:k] if len(kept) >= k else self._score(turned[query], rows, k)
        return found

    def _score(self, query: NDArray[np.float32], rows: Rows, k: int) -> Rows:
        """The k best of these rows, which are more than k."""
        scores = codes_kernels.scores(self._codes, rows, query[:, None] * self._levels)
        return np.asarray(rows[kernels.top_k(scores[None], np.arange(len(rows)), k)[0]])


def random_turn(width: int, seed: int) -> NDArray[np.float32]:
    """An orthogonal matrix. (m, m)"""
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))[0], np.float32)


def edges(levels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Where one level ends and the next begins. (m, 16) -> (m, 15)"""
    return np.asarray(0.5 * (levels[:, 1:] + levels[:, :-1]), np.float32)


def with_levels(plain: Any, levels: NDArray[np.float32]) -> Any:
    """A product quantiser's index of faiss, taught these levels."""
    faiss.copy_array_to_vector(np.ascontiguousarray(levels).ravel(), plain.pq.centroids)
    plain.is_trained = True
    return plain


def fitted_levels(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sixteen levels for each coordinate with the least mean squared error: Lloyd's rounds over sorted columns. (n, m) -> (m, 16)"""
    if not len(rows):
        return np.tile(np.linspace(-1, 1, LEVELS, dtype=np.float32), (rows.shape[1], 1))
    levels = np.empty((rows.shape[1], LEVELS), np.float64)
    for j, column in enumerate(np.sort(rows.astype(np.float64), axis=0).T):
        sums = np.concatenate([[0.0], np.cumsum(column)])
        level = np.quantile(column, (np.arange(LEVELS) + 0.5) / LEVELS)
        for _ in range(ROUNDS):
            cuts = np.concatenate([[0], np.searchsorted(column, 0.5 * (level[1:] + level[:-1])), [len(column)]])
            held = np.diff(cuts)
            level = np.where(held > 0, np.diff(sums[cuts]) / np.maximum(held, 1), level)
        levels[j] = level if level[-1] > level[0] else level[0] + np.linspace(-1e-3, 1e-3, LEVELS)  # faiss wants levels to differ
    return np.asarray(levels, np.float32)
