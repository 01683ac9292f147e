"""Codes of four bits, all of which faiss scans with its fast-scan kernels: one for each coordinate, or one for two at two bits each.

The block is turned at random before it is coded. That changes no inner product and spreads what the leading coordinates carry, so
that as many levels do for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..data import BLOCK, Rows
from ..errors import ArtifactError
from . import codes_kernels
from .codes_base import SAMPLE, Array, Block, Codes, Mask, checked

CODES = 16  # that four bits can tell apart
ROUNDS = 20  # of fitting levels
FEW = 20  # where fewer than one row in so many is allowed, those alone are scored
ROOM = 1.3  # as many times the rows are asked for that should hold enough allowed ones


class FourBit(Codes):
    """The codes, the turn they were made under, and what each of them stands for."""

    storage = "pq4"
    wide = True

    def __init__(self, turn: NDArray[np.float32], levels: NDArray[np.float32], codes: NDArray[np.uint8]) -> None:
        self._turn = turn  # (m, m) orthogonal
        self._levels = levels  # (m, 16 or 4) ascending
        self._codes = codes  # (N, bytes)
        self._points = points(levels)
        plain = taught(faiss.IndexPQ(len(turn), len(self._points), 4, faiss.METRIC_INNER_PRODUCT), self._points)
        faiss.copy_array_to_vector(np.ascontiguousarray(codes).ravel(), plain.codes)
        plain.ntotal = len(codes)
        self._index = faiss.IndexPQFastScan(plain)

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        turn = random_turn(block.shape[1], seed)
        learned = np.sort(np.random.default_rng(seed).permutation(len(block))[:SAMPLE])
        levels = fitted_levels(block[learned] @ turn.T, bits)
        codes = np.empty((len(block), code_bytes(levels)), np.uint8)
        for start in range(0, len(block), BLOCK):
            part = slice(start, start + BLOCK)
            codes_kernels.encode(block[part] @ turn.T, edges(levels), codes[part])
        return cls(turn, levels, codes)

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Self:
        width = len(checked(arrays, "turn", np.float32, (None, None)))
        turn, levels = checked(arrays, "turn", np.float32, (width, width)), checked_levels(arrays, width)
        return cls(turn, levels, checked(arrays, "codes", np.uint8, (None, code_bytes(levels))))

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
        scores = codes_kernels.scores(self._codes, rows, table(query, self._points))
        return np.asarray(rows[kernels.top_k(scores[None], np.arange(len(rows)), k)[0]])


def random_turn(width: int, seed: int) -> NDArray[np.float32]:
    """An orthogonal matrix. (m, m)"""
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))[0], np.float32)


def edges(levels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Where one level ends and the next begins. (m, L) -> (m, L - 1)"""
    return np.asarray(0.5 * (levels[:, 1:] + levels[:, :-1]), np.float32)


def code_bytes(levels: NDArray[np.float32]) -> int:
    """That the codes of a row take."""
    return -(-len(levels) * _bits(levels) // 8)


def points(levels: NDArray[np.float32]) -> NDArray[np.float32]:
    """What each code stands for: a level of its coordinate, or of both of its coordinates, the first in the low bits. (M, 16, d)"""
    together, every = 4 // _bits(levels), np.arange(CODES)
    places = [every // levels.shape[1] ** place % levels.shape[1] for place in range(together)]
    return np.stack([levels[place::together, at] for place, at in enumerate(places)], axis=2)


def table(query: NDArray[np.float32], points: NDArray[np.float32]) -> NDArray[np.float32]:
    """A query's inner products with what the codes stand for. (m,), (M, 16, d) -> (M, 16)"""
    return np.asarray(np.einsum("cd,cpd->cp", query.reshape(len(points), -1), points))


def taught(plain: Any, points: NDArray[np.float32]) -> Any:
    """A product quantiser's index of faiss, with these for its centroids."""
    faiss.copy_array_to_vector(np.ascontiguousarray(points).ravel(), plain.pq.centroids)
    plain.is_trained = True
    return plain


def checked_levels(arrays: Mapping[str, Array], width: int) -> NDArray[np.float32]:
    """The stored levels: sixteen a coordinate, or four where two coordinates share a code."""
    levels = checked(arrays, "levels", np.float32, (width, None))
    if levels.shape[1] not in (4, CODES) or (levels.shape[1] == 4 and width % 2):
        raise ArtifactError(f"codes: {levels.shape[1]} levels for each of {width} coordinates: build the index anew")
    return levels


def fitted_levels(rows: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """As many levels for each coordinate with the least mean squared error: Lloyd's rounds over sorted columns. (n, m) -> (m, 2 ** bits)"""
    count = 2**bits
    if not len(rows):
        return np.tile(np.linspace(-1, 1, count, dtype=np.float32), (rows.shape[1], 1))
    levels = np.empty((rows.shape[1], count), np.float64)
    for j, column in enumerate(np.sort(rows.astype(np.float64), axis=0).T):
        sums = np.concatenate([[0.0], np.cumsum(column)])
        level = np.quantile(column, (np.arange(count) + 0.5) / count)
        for _ in range(ROUNDS):
            cuts = np.concatenate([[0], np.searchsorted(column, 0.5 * (level[1:] + level[:-1])), [len(column)]])
            held = np.diff(cuts)
            level = np.where(held > 0, np.diff(sums[cuts]) / np.maximum(held, 1), level)
        levels[j] = level if level[-1] > level[0] else level[0] + np.linspace(-1e-3, 1e-3, count)  # faiss wants levels to differ
    return np.asarray(levels, np.float32)


def _bits(levels: NDArray[np.float32]) -> int:
    """A coordinate."""
    return 4 if levels.shape[1] == CODES else 2
