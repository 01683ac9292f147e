"""ADSampling (Gao and Long, 2023; methods 10.1): a random rotation, and a distance test after every 32 coordinates. Learns nothing.

After i of D coordinates the squared distance is about D / i times what was read of it. A candidate is given up where that exceeds
the k-th best distance by more than a factor (1 + ε₀ / √i)². The paper has ε₀ = 2.1; here it is set on dev to meet a mean width, and
may be negative: then candidates go that are likely, but not sure, to be among the k best.
"""

from __future__ import annotations

import numpy as np

from ..data import Learning
from ..rotation import Rotation
from ..stages import Stage
from ..stages.backend import prefix_norms
from ..types import Floats
from .abandoning import Abandoning

STEP = 32


class ADSampling(Abandoning):
    """The shortlist is the scan's under the same random rotation; the knob is ε₀."""

    KNOBS = (*np.arange(-2.0, 3.01, 0.25).tolist(), 4.0, 6.0, float("inf"))
    parameters = 0

    def levels(self, start: int, width: int) -> tuple[int, ...]:
        """Every 32 coordinates."""
        return (*range(start, width, STEP), width)

    def hopes(self, stage: Stage, knob: float) -> Floats:
        """The cosine of the smallest distance that the test allows; lengths are one, so both rank alike."""
        read = int(stage.widths[0])
        lengths = prefix_norms(stage.queries, read)[:, None] ** 2 + stage.backend.norms(read)[stage.candidates] ** 2
        distances = np.maximum(lengths - 2 * stage.sums, 0.0)  # squared, of what was read
        return np.asarray(1 - distances * (stage.backend.width / read) / (1 + knob / np.sqrt(read)) ** 2 / 2)

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.random(learning.documents.width, seed)
