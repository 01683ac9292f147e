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
from .fourbit import FourBit

SAMPLE = 16_384  # documents among which ways are compared
ASKED = 200  # of them taken as queries
NEAREST = 10  # nearest neighbours of each …
SHORTLIST = 50  # … looked for among so many candidates
# Documents lie nearer to one another than queries do to them, so they favour few coordinates. For queries, two bits are best or nearly
# so on all but one of the collections tried (benchmarks/codes.py): another way must find more than they do by this share.
MARGIN = 0.04


class Shape(NamedTuple):
    """The leading coordinates that codes cover, and the bits of each."""

    width: int
    bits: int


def shapes(size: int, width: int) -> list[Shape]:
    """All that fill so many bytes with at most `width` coordinates, the usual one first."""
    fitting = [Shape(8 * size // bits, bits) for bits in (2, 4, 1) if 8 * size // bits <= width]
    return fitting or [Shape(width, 4)]


def chosen_shape(rows: F16, size: int, seed: int) -> Shape:
    """Of rotated documents (N, m), the way that finds the most of their nearest neighbours."""
    usual, *others = shapes(size, rows.shape[1])
    if not others or len(rows) <= SHORTLIST:
        return usual
    rng = np.random.default_rng(seed)
    some = np.asarray(rows[np.sort(rng.permutation(len(rows))[:SAMPLE])], np.float32)
    asked = rng.permutation(len(some))[:ASKED]
    with openmp(faiss, 1):
        near = faiss.knn(unit(some[asked]), unit(some), NEAREST + 1, metric=faiss.METRIC_INNER_PRODUCT)[1]

    def found(shape: Shape) -> float:
        block = unit(some[:, : shape.width])
        rows = FourBit.build(block, seed, shape.bits).search(block[asked], SHORTLIST)
        return float(np.mean([np.isin(a, b).mean() for a, b in zip(near, rows, strict=True)]))

    shares = {shape: found(shape) for shape in (usual, *others)}
    best = max(others, key=lambda shape: shares[shape])
    return best if shares[best] > shares[usual] + MARGIN else usual
