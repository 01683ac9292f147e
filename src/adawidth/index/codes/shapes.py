"""How many coordinates at how many bits fit into the bytes of a document's codes; chosen on the documents themselves.

More coordinates at fewer bits see more of a vector, each less well: what finds more depends on how a collection's variance falls off.
"""

from __future__ import annotations

from typing import NamedTuple

import faiss
import numpy as np

from ...data import unit
from ...threads import openmp
from ...types import F16
from .base import synthetic_queries
from .fourbit import FourBit

SAMPLE = 65_536  # documents among which ways are compared: among fewer, which lie further apart, other ways seem better
ASKED = 300  # synthetic queries
NEAREST = 10  # nearest neighbours of each …
SHORTLIST = 50  # … looked for among so many candidates
MARGIN = 0.02  # another way must find more than the usual one by this share


class Shape(NamedTuple):
    """The leading coordinates that codes cover, and the bits of each."""

    width: int
    bits: int


def shapes(size: int, width: int, fewest: int = 1) -> list[Shape]:
    """All that fill so many bytes with at most `width` coordinates of at least so many bits, the usual one first."""
    fitting = [Shape(8 * size // bits, bits) for bits in (2, 4, 1) if bits >= fewest and 8 * size // bits <= width]
    return fitting or [Shape(width, 4)]


def chosen_shape(rows: F16, size: int, seed: int, fewest: int = 1) -> Shape:
    """Of rotated documents (N, m), the way that finds the most of their nearest neighbours, with so many bits of a coordinate at least."""
    usual, *others = shapes(size, rows.shape[1], fewest)
    if not others or len(rows) <= SHORTLIST:
        return usual
    some = unit(rows[np.sort(np.random.default_rng(seed).permutation(len(rows))[:SAMPLE])])
    queries = synthetic_queries(some, ASKED, seed)
    with openmp(faiss, 1):
        near = faiss.knn(queries, some, NEAREST, metric=faiss.METRIC_INNER_PRODUCT)[1]

    def found(shape: Shape) -> float:
        rows = FourBit.build(unit(some[:, : shape.width]), seed, shape.bits).search(queries[:, : shape.width], SHORTLIST)
        return float(np.mean([np.isin(a, b).mean() for a, b in zip(near, rows, strict=True)]))

    shares = {shape: found(shape) for shape in (usual, *others)}
    best = max(others, key=lambda shape: shares[shape])
    return best if shares[best] > shares[usual] + MARGIN else usual
