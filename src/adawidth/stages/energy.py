"""Do new documents come from the index's encoder? A rotation moves the energy of its encoder's vectors to the front, and no others'."""

from __future__ import annotations

import numpy as np

from ..errors import DataError
from ..types import Array

ENOUGH = 20  # vectors, at least, in the index and among the new ones: fewer are not compared
SAMPLE = 500  # documents of the index to compare with
CLOSER = 0.25  # another encoder: its energy is within this share of the way from chance to the index's


def spread(count: int) -> Array:
    """Some of so many rows, evenly spaced."""
    return np.unique(np.linspace(0, max(0, count - 1), min(count, SAMPLE)).astype(np.int64))


def check_encoder(kept: Array, added: Array, width: int, name: str) -> None:
    """Refuses vectors whose energy in the leading coordinates is that of chance, if the index's is far from it.

    Both are rotated, as an index keeps them, of vectors of unit length and of this encoder width. (n, m), (n', m)
    """
    start = min(64, max(1, width // 4))
    if min(len(kept), len(added)) < ENOUGH or kept.shape[1] < start:
        return
    chance = start / width
    own, given = (float(np.square(rows[:, :start], dtype=np.float32).sum(axis=1).mean()) for rows in (kept, added))
    if own > 2 * chance and given < chance + CLOSER * (own - chance):
        raise DataError(
            f"{name}: {given:.2f} of their energy lies in the first {start} coordinates, of the index's documents {own:.2f}, "
            f"by chance it is {chance:.2f}: these are another encoder's vectors; encode them with the index's own"
        )
