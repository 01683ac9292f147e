"""The block as it is, or at a byte a coordinate, which faiss scans row by row."""

from __future__ import annotations

from collections.abc import Mapping

import faiss
import numpy as np
from numpy.typing import NDArray

from ...data import BLOCK, Rows
from .base import SAMPLE, Array, Block, Codes, Mask, checked, sample, selector


class Flat(Codes):
    """The block itself."""

    storage = "flat"

    def __init__(self, block: Block) -> None:
        self._index = faiss.IndexFlatIP(block.shape[1])
        self._index.add(np.ascontiguousarray(block))

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

    def _search(self, queries: NDArray[np.float32], k: int) -> Rows:
        return np.asarray(self._index.search(queries, k)[1])

    def _search_among(self, queries: NDArray[np.float32], k: int, allowed: Mask, rows: Rows) -> Rows:
        with_filter = faiss.SearchParameters(sel=selector(allowed))
        return np.asarray(self._index.search(queries, k, params=with_filter)[1])


class Int8(Flat):
    """One byte a coordinate, between its least and its largest value."""

    storage = "int8"

    def __init__(self, trained: NDArray[np.float32], codes: NDArray[np.uint8]) -> None:
        self._index = faiss.IndexScalarQuantizer(codes.shape[1], faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(trained, self._index.sq.trained)
        self._index.is_trained = True
        self._index.add_sa_codes(np.ascontiguousarray(codes))

    @classmethod
    def build(cls, block: Block, seed: int, bits: int = 4) -> Int8:
        quantiser = faiss.IndexScalarQuantizer(block.shape[1], faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
        quantiser.train(sample(block, SAMPLE, seed))
        codes = np.empty(block.shape, np.uint8)
        for start in range(0, len(block), BLOCK):
            codes[start : start + BLOCK] = quantiser.sa_encode(np.ascontiguousarray(block[start : start + BLOCK]))
        return cls(faiss.vector_to_array(quantiser.sq.trained), codes)

    @classmethod
    def read(cls, arrays: Mapping[str, Array]) -> Int8:
        codes = checked(arrays, "codes", np.uint8, (None, None))
        return cls(checked(arrays, "trained", np.float32, (2 * codes.shape[1],)), codes)

    def arrays(self) -> dict[str, Array]:
        codes = faiss.vector_to_array(self._index.codes).reshape(len(self), self.width)
        return {"trained": faiss.vector_to_array(self._index.sq.trained), "codes": codes}

    @property
    def bytes_per_document(self) -> float:
        return float(self.width)
