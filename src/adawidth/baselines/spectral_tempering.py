"""Spectral tempering (Li et al. 2026; methods 9.1): between PCA and whitening, by how far a width's last component stands above the noise.

    γ(m) = min(1, SNR(m) / SNR(knee)),     SNR(i) = λ_i / noise − 1

The noise is the mean of the last tenth of the variances, the knee where the curve of SNR bends.
"""

from __future__ import annotations

import numpy as np

from ..types import F64
from .base import fitted
from .whitening import Whitening

TAIL = 0.1  # share of the components that are taken for noise
SENSITIVITY = 0.5  # of the knee, the authors' choice


class SpectralTempering(Whitening):
    """Whitening with a strength for each width; learning-free."""

    def gamma(self, width: int) -> float:
        """The strength at a width."""
        return tempering(fitted(self, self.spectrum).variances, width)


def tempering(variances: F64, width: int) -> float:
    """γ of a width, from the variances of all components, largest first."""
    signals = int((1 - TAIL) * len(variances))
    noise = max(float(variances[signals:].mean()), 1e-30)
    ratio = np.maximum(variances[:signals] / noise - 1, 0.0)
    at_knee = ratio[min(knee(ratio) or max(1, width // 2), signals) - 1]
    return 1.0 if at_knee == 0 else float(min(1.0, ratio[min(width, signals) - 1] / at_knee))


def knee(curve: F64, sensitivity: float = SENSITIVITY) -> int | None:
    """Where a convex falling curve bends most, counted from 1, by Kneedle (Satopää et al. 2011); None where it does not.

    With both axes brought to [0, 1], the first peak of what the curve has fallen ahead of the diagonal, taken once that
    sinks by `sensitivity` steps of the diagonal before the next peak.
    """
    if len(curve) < 3 or np.ptp(curve) == 0:
        return None
    ahead = (curve.max() - curve) / np.ptp(curve) - np.linspace(0, 1, len(curve))
    before, after = np.append(ahead[0], ahead[:-1]), np.append(ahead[1:], ahead[-1])
    peaks, valleys = (ahead >= before) & (ahead >= after), (ahead <= before) & (ahead <= after)
    peak, threshold = None, -np.inf
    for i in range(int(peaks.argmax()), len(curve) - 1):
        if peaks[i]:
            peak, threshold = i, ahead[i] - sensitivity / (len(curve) - 1)
        if valleys[i]:
            threshold = 0.0
        if ahead[i + 1] < threshold:
            return None if peak is None else peak + 1
    return None
