"""How much lower than the k-th best a document may score by its code, and be among the k best all the same.

Codes tell scores with an error, and tell nothing of the coordinates behind them. Candidates further below need not be read: the taper's
first step. How far that is, is measured on the documents of a segment when it is written.
"""

from __future__ import annotations

import math

import numpy as np

from ...policies import Fixed
from ...rotation import Rotated, Rotation
from ...types import F16
from ..rescore import Rescorer
from .base import Codes, Prefixes, synthetic_queries

ASKED = 64  # synthetic queries
DEEP = 1_000  # candidates for each: more than a shortlist, which would cut off the widest gaps
NEAREST = 10  # documents nearest to each, of these
SHARE = 0.98  # of them, whose gap is measured …
FURTHER = 1.5  # … and times as far from the median lies that of .999 of them, if gaps are normal


def measured_gap(codes: Codes, rows: F16, seed: int) -> float:
    """The gap, as a difference of cosines, of codes of these rotated rows (N, m); infinite where there is none to measure."""
    count, width = rows.shape
    if not codes.wide or count <= DEEP:
        return math.inf
    queries = synthetic_queries(Prefixes(rows, width), ASKED, seed)
    prefixes = np.ascontiguousarray(queries[:, : codes.width])
    found = codes.search(prefixes, DEEP)
    told = codes.scores(prefixes, found) / np.linalg.norm(prefixes, axis=1, keepdims=True)
    rescorer = Rescorer([rows], lambda m: np.ones(count, np.float32), np.arange(count))
    near = rescorer.answer(Rotated(queries, Rotation.identity(width)), found, Fixed(width, width), NEAREST).rows
    kth = np.sort(told, axis=1)[:, -NEAREST, None]
    below = np.concatenate([kth[q] - told[q, np.isin(found[q], near[q])] for q in range(len(queries))])
    middle, most = np.quantile(below, (0.5, SHARE))
    return codes.spare * max(0.0, float(middle + FURTHER * (most - middle)))
