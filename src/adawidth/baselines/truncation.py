"""Truncation: the frozen encoder's own leading coordinates. Learns nothing."""

from __future__ import annotations

from ..data import Learning
from ..rotation import Rotation
from .base import Rotated


class Truncation(Rotated):
    """What Matryoshka encoders are made for, and what everyone tries first."""

    parameters = 0

    def query_cost(self, width: int) -> float:
        """Nothing is done to a query."""
        return 0

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return Rotation.identity(learning.documents.width)
