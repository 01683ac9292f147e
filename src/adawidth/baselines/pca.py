"""Principal components (methods 9.1), all kept, so that each is a rotation: no mean is subtracted before rotating."""

from __future__ import annotations

import numpy as np

from ..data import Learning, Vectors
from ..rotation import Rotation, second_moment
from ..types import F64
from .base import Rotated


class PCA(Rotated):
    """Axes by the documents' second moment, largest first: the best rotation that sees neither queries nor labels."""

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.pca(learning.documents, seed=seed)


class CentredPCA(Rotated):
    """Axes by the documents' covariance."""

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.principal(covariance(learning.documents, mean_of(learning.documents), seed), "centred pca")


class PooledPCA(Rotated):
    """Axes by the second moments of documents and train queries, each side with the same weight."""

    def _found(self, learning: Learning, seed: int) -> Rotation:
        sides = [second_moment(vectors, seed=seed) for vectors in (learning.documents, learning.train.vectors)]
        return Rotation.principal(sum(side / np.trace(side) for side in sides), "pooled pca")


def mean_of(vectors: Vectors) -> F64:
    """The mean row, block by block."""
    total = np.zeros(vectors.width)
    for _, block in vectors.blocks():
        total += block.sum(axis=0, dtype=np.float64)
    return total / len(vectors)


def covariance(vectors: Vectors, mean: F64, seed: int = 0) -> F64:
    """The second moment around the mean. (D, D)"""
    return second_moment(vectors, seed=seed) - np.outer(mean, mean)
