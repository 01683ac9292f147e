"""AdaWidth's own rotation, learned by the default recipe."""

from __future__ import annotations

from ..data import Learning
from ..rotation import Rotation, second_moment
from ..training.choose import choose_rotation
from ..training.pool import sample
from .base import Rotated


class AdaWidthRotation(Rotated):
    """What `fit` ships, read at a fixed width."""

    def _found(self, learning: Learning, seed: int) -> Rotation:
        return choose_rotation(sample(learning, seed), second_moment(learning.documents, seed=seed), seed=seed).chosen.rotation
