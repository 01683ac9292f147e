"""Uncentred principal components of the documents (methods 9.1): the best rotation that sees neither queries nor labels."""

from __future__ import annotations

from ..data import Learning
from ..rotation import Rotation
from .base import Rotated


class PCA(Rotated):
    """Axes by the documents' second moment, largest first."""

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.pca(learning.documents, seed=seed)
