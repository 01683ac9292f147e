"""Rotated rows in a process's own memory: exact, float32, nothing on disk."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..data import BLOCK, Vectors
from ..kernels.extend import extend
from ..kernels.topk import top_k
from ..rotation import Rotation
from ..types import F32, I64, Mask, Rows, Widths
from .backend import Backend, prefix_norms
from .state import Stage

SCORES = 64_000_000  # at most this many scores are held at a time while scanning


class MemoryBackend(Backend):
    """Documents under a rotation, in memory. Safe for concurrent searches: nothing changes after it is made."""

    def __init__(self, documents: Vectors, rotation: Rotation) -> None:
        self._documents = documents
        self._rotation = rotation
        self.rows = np.empty((len(documents), documents.width), np.float32)
        for start, block in documents.blocks():
            rotation.apply(block, out=self.rows[start : start + len(block)])
        self._copies, self._originals = twins(documents)
        self.rows[self._copies] = self.rows[self._originals]  # rounding must not order equal documents: their ids do
        self._norms: dict[int, F32] = {}
        self._blocks: dict[tuple[int, int, bool], F32] = {}

    @property
    def documents(self) -> Vectors:
        """The documents' ids, in row order."""
        return self._documents

    @property
    def width(self) -> int:
        """The widest that can be read: the encoder width."""
        return int(self.rows.shape[1])

    @property
    def fingerprint(self) -> str:
        """Names the rotation that the documents are under."""
        return self._rotation.fingerprint

    def norms(self, width: int) -> F32:
        """Length of every document's prefix. (N,)"""
        if width not in self._norms:
            self._norms[width] = prefix_norms(self.rows, width)
        return self._norms[width]

    @cached_property
    def centre(self) -> F32:
        """Mean of all documents. (D,)"""
        return np.asarray(self.rows.mean(axis=0, dtype=np.float64), np.float32)

    def block_norms(self, begin: int, end: int, *, centred: bool = False) -> F32:
        """Length of coordinates `begin` to `end` of every document, or of their difference from the mean of all documents. (N,)"""
        key = (begin, end, centred)
        if key not in self._blocks:
            block = self.rows[:, begin:end]
            self._blocks[key] = np.linalg.norm(block - self.centre[begin:end] if centred else block, axis=1)
        return self._blocks[key]

    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best of all documents at this width for rotated queries; `own` is a document row each that is never returned."""
        k = min(k, len(self.rows))
        found = np.empty((len(queries), k), np.int64)
        sums = np.empty((len(queries), k), np.float32)
        prefix = np.ascontiguousarray(self.rows[:, :width])  # (N, m)
        inverse = np.reciprocal(self.norms(width))
        step = max(1, SCORES // len(self.rows))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            products = np.ascontiguousarray(queries[part, :width]) @ prefix.T  # (q, N)
            products[:, self._copies] = products[:, self._originals]
            scores = products * inverse
            if own is not None:
                masked = np.flatnonzero(own[part] >= 0)
                scores[masked, own[part][masked]] = -np.inf
            found[part] = top_k(scores, self._documents.tie_rank, k)
            sums[part] = np.take_along_axis(products, found[part], axis=1)
            found[part][np.take_along_axis(scores, found[part], axis=1) == -np.inf] = -1
        return self._stage(queries, found, sums, width)

    def bytes_read(self, width: int, coordinates: I64) -> I64:
        """Of a scan at this width and so many coordinates of candidates. (Q,) -> (Q,)"""
        return (len(self.rows) * width + coordinates) * self.rows.itemsize

    def _extend(
        self, queries: F32, candidates: Rows, keep: Mask, begin: Widths, end: Widths, sums: F32
    ) -> None:
        extend(queries, self.rows, candidates, keep, begin, end, sums)


def twins(documents: Vectors) -> tuple[Rows, Rows]:
    """Rows that repeat an earlier row's vector, and those earlier rows; by a 64-bit hash of the stored numbers."""
    values = documents.values
    factors = np.random.default_rng(0).integers(2**63, size=documents.width, dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(len(documents), np.uint64)
    for start in range(0, len(documents), BLOCK):
        bits = np.ascontiguousarray(values[start : start + BLOCK]).view(f"u{values.dtype.itemsize}")
        hashes[start : start + len(bits)] = (bits.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    originals = first[place]
    copies = np.flatnonzero(originals != np.arange(len(documents)))
    return copies, originals[copies]
