"""The block itself, as float32. A small one is scored as a whole, by one matrix product; a large one is scanned by faiss, row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping

import faiss
import numpy as np

from ...kernels.extend import inner_products
from ...threads import openmp
from ...types import F32, Array, Mask, Rows
from ..candidates import Near
from .base import Block, Codes, checked, selector

SCORES = 4_000_000  # at most this many are held at a time


class Flat(Codes):
    """The block itself."""

    storage = "flat"
    _block: F32 | None = None  # where it is kept as it is

    def __init__(self, block: Block) -> None:
        self._index = faiss.IndexFlatIP(block.shape[1])
        self._index.add(np.ascontiguousarray(block))
        if len(block):
            self._block = faiss.rev_swig_ptr(self._index.get_xb(), math.prod(block.shape)).reshape(block.shape)  # faiss' own memory

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Flat:
        return cls(block)

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Flat:
        return cls(checked(arrays, "block", np.float32, (None, None)))

    def arrays(self) -> dict[str, Array]:
        return {"block": self._index.reconstruct_n(0, len(self))}

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def width(self) -> int:
        return int(self._index.d)

    @property
    def bytes_per_document(self) -> float:
        return 4.0 * self.width

    def scores(self, queries: F32, rows: Rows) -> F32:
        found = np.full(rows.shape, -np.inf, np.float32)
        with openmp(faiss, 1):
            for q, query in enumerate(queries):
                there = rows[q] >= 0
                total = np.zeros(np.count_nonzero(there), np.float32)
                wanted = rows[q, there]
                taken = self._index.reconstruct_batch(wanted) if self._block is None else self._block[wanted]
                inner_products(taken, query, total)  # equal rows get equal scores
                found[q, there] = total
        return found

    def _search(self, queries: F32, k: int, near: Near) -> Rows:
        rest = -1 if self._block is None else self._block.shape[0] - k
        if self._block is None or rest < 0 or len(queries) * self._block.shape[0] > SCORES:
            return np.asarray(self._index.search(queries, k)[1])
        return np.asarray(np.argpartition(queries @ self._block.T, rest, axis=1)[:, rest:])

    def _search_among(self, queries: F32, k: int, allowed: Mask, count: int, near: Near) -> Rows:
        with_filter = faiss.SearchParameters(sel=self._kept(selector, allowed))
        return np.asarray(self._index.search(queries, k, params=with_filter)[1])
