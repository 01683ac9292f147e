"""Panorama (Ramani et al., 2025; methods 10.4): an energy-compacting rotation, and Cauchy–Schwarz bounds on what was not read.

Its rotation is learned to put the documents' energy first; the optimum of that, in closed form, is PCA, which is used here. An
inner product read to width m is at most p + |q'| |d'|, the primes being the tails. A candidate whose bound lies below the k-th best
is given up, so the answer is that of full width. The method has no knob: where a budget is smaller than proofs need, the tails'
product is multiplied by a factor below 1, set on dev, and nothing is proved any more.
"""

from __future__ import annotations

import numpy as np

from ..data import Learning
from ..policies.base import ladder_from
from ..policies.certify import MARGIN, spread
from ..rotation import Rotation
from ..stages import Stage
from ..types import Floats
from .abandoning import Abandoning
from .base import fitted


class Panorama(Abandoning):
    """The knob is the factor; from 1 on the shortlist's k best at full width are found for sure."""

    KNOBS = (*np.arange(0.0, 0.5, 0.05).tolist(), 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, float("inf"))

    def levels(self, start: int, width: int) -> tuple[int, ...]:
        """The ladder's widths: each costs the length of one tail per document."""
        return ladder_from(start, width)

    def hopes(self, stage: Stage, knob: float) -> Floats:
        """The upper bound; a larger factor than 1 proves nothing more."""
        tails = spread(stage, np.arange(len(stage)), (int(stage.widths[0]), stage.backend.width))
        return np.asarray(stage.sums + min(knob, 1.0) * tails + MARGIN)

    def stored_floats(self, width: int) -> float:
        """All coordinates, and the lengths of the tails."""
        setting, whole = self.setting(width), fitted(self, self.rotation).width
        return width if setting is None else whole + len(self.levels(setting[0], whole)) - 1

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.pca(learning.documents, seed=seed)
