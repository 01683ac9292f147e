"""Whitening (methods 9.1): centred principal components, each brought to variance one, rows then to length one.

    x' = U_m (x − μ) / √(λ_m + ε)

Not a rotation: full-width scores change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..data import Learning, unit
from ..types import F32, F64, Floats
from .base import Encoding, Role, fitted
from .pca import covariance, mean_of

EPSILON = 1e-6


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The documents' mean, and the principal axes of their covariance with the variance along each, largest first."""

    mean: F64  # (D,)
    axes: F64  # (D, D), rows
    variances: F64  # (D,)

    @classmethod
    def of(cls, learning: Learning, seed: int) -> Spectrum:
        """Of the documents; queries are not used."""
        mean = mean_of(learning.documents)
        variances, axes = np.linalg.eigh(covariance(learning.documents, mean, seed))
        return cls(mean, axes.T[::-1], np.maximum(variances[::-1], 0.0))

    def project(self, x: Floats, width: int, gamma: float) -> F32:
        """Rows on the leading axes, each divided by its variance to the power γ / 2. (n, D) -> (n, width)"""
        axes = self.axes[:width] * (self.variances[:width, None] + EPSILON) ** (-gamma / 2)
        projected = np.asarray(x, np.float32) @ axes.T.astype(np.float32)
        return np.asarray(projected - (axes @ self.mean).astype(np.float32), np.float32)


class Whitening(Encoding):
    """Learning-free, from the documents alone."""

    spectrum: Spectrum | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Finds mean, axes and variances; returns itself."""
        self.spectrum = Spectrum.of(learning, seed)
        return self

    def gamma(self, width: int) -> float:
        """How far variances are evened out: 0 not at all (PCA), 1 fully."""
        return 1.0

    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """The leading components, evened out."""
        return unit(fitted(self, self.spectrum).project(x, width, self.gamma(width)))

    def query_cost(self, width: int) -> float:
        """The leading axes; mean and scale fold into them."""
        return len(fitted(self, self.spectrum).mean) * width

    @property
    def parameters(self) -> int:
        """The axes' degrees of freedom, the variances and the mean."""
        width = len(fitted(self, self.spectrum).mean)
        return width * (width - 1) // 2 + 2 * width
