"""A random subset of the coordinates: dropping some at random costs little (methods 9.3). Learns nothing."""

from __future__ import annotations

import numpy as np

from ..data import Learning
from ..rotation import Rotation
from .base import Rotated


class RandomSubset(Rotated):
    """The leading coordinates of one random order, so that a wider subset holds every narrower one."""

    parameters = 0

    def query_cost(self, width: int) -> float:
        """Coordinates are picked, not multiplied."""
        return 0

    def _found(self, learning: Learning, seed: int) -> Rotation:
        width = learning.documents.width
        order = np.random.default_rng(seed).permutation(width)
        return Rotation(np.eye(width, dtype=np.float32)[order], "random subset")
