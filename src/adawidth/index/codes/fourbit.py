"""4-bit codes, one per coordinate or one per two, which faiss scans with its fast-scan kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import faiss
import numpy as np

from ...data import BLOCK
from ...kernels import quantise
from ...kernels.topk import top_k
from ...types import F32, U8, Array, Mask, Rows
from .base import SAMPLE, Block, Codes, checked
from .codebook import checked_levels, code_bytes, edges, fitted_levels, points, random_rotation, table, turned_rows, with_centroids

FEW = 20  # if a filter allows fewer than one row in so many, only the allowed rows are scored
ROOM = 1.3  # else so many times the rows that should include enough allowed ones are retrieved


class FourBit(Codes):
    """The codes, the random rotation they were made under, and their codebook."""

    storage = "pq4"
    wide = True

    def __init__(self, turn: F32, levels: F32, codes: U8) -> None:
        self._turn = turn  # (m, m) orthogonal
        self._levels = levels  # (m, 16 or 4) ascending
        self._codes = codes  # (N, bytes)
        self._points = points(levels)
        plain = with_centroids(faiss.IndexPQ(len(turn), len(self._points), 4, faiss.METRIC_INNER_PRODUCT), self._points)
        faiss.copy_array_to_vector(np.ascontiguousarray(codes).ravel(), plain.codes)
        plain.ntotal = len(codes)
        self._index = faiss.IndexPQFastScan(plain)

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Self:
        turn = random_rotation(block.shape[1], seed)
        learned = np.sort(np.random.default_rng(seed).permutation(len(block))[:SAMPLE])
        levels = fitted_levels(block[learned] @ turn.T, bits)
        codes = np.empty((len(block), code_bytes(levels)), np.uint8)
        for start in range(0, len(block), BLOCK):
            part = slice(start, start + BLOCK)
            quantise.encode(turned_rows(block[part], turn), edges(levels), codes[part])
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

    def _search(self, queries: F32, k: int) -> Rows:
        return np.asarray(self._index.search(queries @ self._turn.T, k)[1])

    def _search_among(self, queries: F32, k: int, allowed: Mask, rows: Rows) -> Rows:
        """The allowed rows among the best of all rows; if they are too few, all allowed rows are scored."""
        rotated, found = queries @ self._turn.T, np.empty((len(queries), k), np.int64)
        many = len(rows) * FEW >= len(self)
        best = self._index.search(rotated, min(len(self), round(ROOM * k * len(self) / len(rows)) + k))[1] if many else found[:, :0]
        for query, near in enumerate(best):
            kept = near[(near >= 0) & allowed[near]]
            found[query] = kept[:k] if len(kept) >= k else self._score(rotated[query], rows, k)
        return found

    def _score(self, query: F32, rows: Rows, k: int) -> Rows:
        """The k best of these rows, which are more than k."""
        scores = quantise.scores(self._codes, rows, table(query, self._points))
        return np.asarray(rows[top_k(scores[None], np.arange(len(rows)), k)[0]])
