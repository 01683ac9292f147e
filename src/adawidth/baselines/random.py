"""A random rotation: what a width keeps when its coordinates carry nothing in particular. Learns nothing."""

from __future__ import annotations

from ..data import Learning
from ..rotation import Rotation
from .base import Rotated


class Random(Rotated):
    """Uniform over all rotations."""

    parameters = 0

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.random(learning.documents.width, seed)
