"""Fewer bits instead of fewer coordinates (methods 13, item 49): what most people do. PCA and faiss's quantisers; queries stay floats.

A width is a number of four-byte floats here: what fits into so much storage is used, and what is returned as the width read is
what was stored. A quantiser learns from the documents that it is to store, as a faiss index does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import faiss
import numpy as np

from ..data import Documents, Learning, Queries, Vectors, unit
from ..hits import Hits
from ..kernels.topk import top_k
from ..rotation import Rotation
from ..stages.memory import SCORES
from ..types import F32
from .base import documents_of, fitted, restricted


class Quantised(ABC):
    """Unit vectors of leading coordinates, coded; every document is ranked by the inner product of the query and the decoded document."""

    rotation: Rotation | None = None
    seed = 0
    BITS: int  # of one code

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Finds the rotation; returns itself."""
        self.rotation, self.seed = Rotation.pca(learning.documents, seed=seed), seed
        return self

    @abstractmethod
    def coordinates(self, width: int) -> int:
        """How many coordinates are coded."""

    @abstractmethod
    def codes(self, width: int) -> int:
        """How many codes a document has."""

    @abstractmethod
    def quantiser(self, width: int) -> Any:
        """An untrained quantiser of faiss."""

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """Documents scored by their codes."""
        stored, asked = self.decoded(documents, width), self._prefixes(queries.vectors, width)
        known = Documents(documents.ids)
        k, step = min(k, len(stored)), max(1, SCORES // len(stored))
        rows, scores = np.empty((len(asked), k), np.int64), np.empty((len(asked), k), np.float32)
        for start in range(0, len(asked), step):
            part = slice(start, start + step)
            products, own = asked[part] @ stored.T, queries.own[part]
            products[own >= 0, own[own >= 0]] = -np.inf
            products = restricted(products, None if queries.candidates is None else queries.candidates[part])
            rows[part] = top_k(products, known.tie_rank, k)
            scores[part] = np.take_along_axis(products, rows[part], axis=1)
        rows[scores == -np.inf] = -1
        return Hits(rows, scores, np.full(len(asked), self.stored_floats(width)), known)

    def decoded(self, documents: Vectors, width: int) -> F32:
        """What is left of the documents after coding. (N, coordinates)"""
        prefixes, quantiser = self._prefixes(documents, width), self.quantiser(width)
        quantiser.train(prefixes)
        codes = quantiser.compute_codes(prefixes)  # bytes
        assert codes.shape[1] == 4 * self.stored_floats(width)
        return np.asarray(quantiser.decode(codes), np.float32)

    def stored_floats(self, width: int) -> float:
        """Whole bytes of codes, four to a number."""
        return -(-self.codes(width) * self.BITS // 8) / 4

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """The query rotated, and every document as if each of its coordinates were multiplied."""
        return (fitted(self, self.rotation).width + documents_of(hits)) * self.coordinates(width)

    def _prefixes(self, vectors: Vectors, width: int) -> F32:
        rotation, coordinates = fitted(self, self.rotation), self.coordinates(width)
        return unit(np.concatenate([rotation.apply(block, coordinates) for _, block in vectors.blocks()]))


class Int8(Quantised):
    """8 bits per coordinate, evenly between its smallest and largest value: four coordinates per float, up to all of them."""

    BITS = 8

    def coordinates(self, width: int) -> int:
        """As many as fit."""
        return min(fitted(self, self.rotation).width, 4 * width)

    def codes(self, width: int) -> int:
        """One per coordinate."""
        return self.coordinates(width)

    def quantiser(self, width: int) -> Any:
        """A scalar quantiser."""
        return faiss.ScalarQuantizer(self.coordinates(width), faiss.ScalarQuantizer.QT_8bit)

    @property
    def parameters(self) -> int:
        """The rotation's degrees of freedom, and a range for each coordinate."""
        width = fitted(self, self.rotation).width
        return width * (width - 1) // 2 + 2 * width


class PQ4(Quantised):
    """Product quantisation of all coordinates by 4-bit codes: eight codes per float, up to one for each coordinate.

    Where fewer fit a code stands for several coordinates, as few as divide the encoder width; leading axes are grouped with trailing
    ones, so that the groups vary alike (as OPQ does it in closed form).
    """

    BITS = 4

    def coordinates(self, width: int) -> int:
        """All."""
        return fitted(self, self.rotation).width

    def codes(self, width: int) -> int:
        """The most that fit and divide the encoder width."""
        whole = self.coordinates(width)
        return next(count for count in range(min(whole, 8 * width), 0, -1) if whole % count == 0)

    def quantiser(self, width: int) -> Any:
        """A product quantiser with 16 centroids per code."""
        made = faiss.ProductQuantizer(self.coordinates(width), self.codes(width), self.BITS)
        made.cp.seed, made.cp.min_points_per_centroid = self.seed, 1
        return made

    @property
    def parameters(self) -> int:
        """The rotation's degrees of freedom, and 16 numbers per coordinate."""
        width = fitted(self, self.rotation).width
        return width * (width - 1) // 2 + 16 * width

    def _prefixes(self, vectors: Vectors, width: int) -> F32:
        axes = np.arange(self.coordinates(width)).reshape(-1, self.codes(width))
        axes[1::2] = axes[1::2, ::-1].copy()
        return np.ascontiguousarray(super()._prefixes(vectors, width)[:, axes.T.ravel()])
