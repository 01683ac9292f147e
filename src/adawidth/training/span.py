"""Where a wide encoder's rotation is learned: in the leading principal coordinates of its documents.

Cut there and brought to unit length, vectors are those of an encoder `SPAN` wide. What is learned from them turns these axes among
each other, and the axes beyond stay principal ones; so a step costs the same for every wider encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data import unit
from ..rotation import Rotation
from ..types import F32, F64

SPAN = 1_024  # four times the widest width that is trained for; half of it loses a hundredth of nDCG on vectors of 1,536


@dataclass(frozen=True, eq=False)
class Span:
    """The leading `width` principal axes; where that is the encoder width, the encoder's own coordinates as they are."""

    pca: Rotation
    width: int

    @property
    def cuts(self) -> bool:
        """Whether it is narrower than the encoder."""
        return self.width < self.pca.width

    @property
    def axes(self) -> Rotation:
        """The principal axes, in its own coordinates. (S, S)"""
        return Rotation(np.eye(self.width, dtype=np.float32), "pca") if self.cuts else self.pca

    def cut(self, rows: F32) -> F32:
        """Vectors of the encoder in the span, unit length. (n, D) -> (n, S)"""
        return unit(self.pca.apply(rows, self.width)) if self.cuts else rows

    def moment(self, moment: F64) -> F64:
        """A second moment of the encoder's vectors in the span. (D, D) -> (S, S)"""
        axes = self.pca.matrix[: self.width].astype(np.float64)
        return np.asarray(axes @ moment @ axes.T) if self.cuts else moment

    def lift(self, rotation: Rotation) -> Rotation:
        """A rotation of the span as one of the encoder; one of the encoder stays as it is. (S, S) -> (D, D)"""
        if rotation.width == self.pca.width:
            return rotation
        leading = rotation.matrix.astype(np.float64) @ self.pca.matrix[: self.width].astype(np.float64)
        return Rotation(np.concatenate([leading.astype(np.float32), self.pca.matrix[self.width :]]), rotation.kind)
