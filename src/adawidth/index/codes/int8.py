"""The block at one byte per coordinate; faiss scans it row by row."""

from __future__ import annotations

from collections.abc import Mapping

import faiss
import numpy as np

from ...data import BLOCK
from ...types import F32, U8, Array
from .base import Block, checked, sample
from .flat import Flat

SAMPLE = 65_536  # rows that the quantiser learns from


class Int8(Flat):
    """One byte per coordinate, between its smallest and its largest value."""

    storage = "int8"

    def __init__(self, trained: F32, codes: U8) -> None:
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
