"""RDIME (methods 8): DIME with a threshold for every query in place of a number of coordinates."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..data import Learning
from ..types import F64, Mask
from .base import fitted
from .dime import PRFDIME
from .masked import Asked, Importance


class RDIME(PRFDIME):
    """Keeps the coordinates of importance u above ε = mean of (q² − u), so each query has a width of its own.

    A width is the mean that it may spend: for a narrower one than ε gives, ε is multiplied by what brought the mean number
    kept of dev queries down to it. A wider one changes nothing: the threshold set is all that the method ever reads.
    """

    factors: F64 | None = None  # (D + 1,) what ε is multiplied by for each width

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Chooses how many documents to take as feedback, as DIME does, then what each width takes; returns itself."""
        super().fit(learning, seed)
        importance = self.importance(Asked.on_dev(learning, seed))
        shares = 1 - np.arange(importance.shape[1] + 1) / importance.shape[1]
        self.factors = np.maximum(1.0, np.quantile(importance / thresholds(importance), shares))
        return self

    def kept(self, importance: Importance, width: int) -> Mask:
        """Those above the threshold, and at least one."""
        mask = importance > thresholds(importance) * fitted(self, self.factors)[width]
        mask[np.arange(len(mask)), importance.argmax(axis=1)] = True
        return np.asarray(mask)

    @property
    def parameters(self) -> int:  # type: ignore[override]
        """One factor per width."""
        return len(fitted(self, self.factors))


def thresholds(importance: Importance) -> F64:
    """ε of every query: as q has length one, (1 − Σ u) / D. (Q, D) -> (Q, 1)"""
    return np.asarray(np.maximum(1 - importance.sum(axis=1, keepdims=True, dtype=np.float64), 1e-9) / importance.shape[1])
