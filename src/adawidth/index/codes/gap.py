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

ASKED = 300  # synthetic queries
DEEP = 2_000  # candidates for each: many more than a shortlist, which would cut off the widest gaps
NEAREST = 10  # documents nearest to each, of these
KEPT = 0.999  # share of them within the gap …
SPARE = 1.2  # … which real queries need up to so many times (benchmarks/gaps.py)


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
    below = [kth[q] - told[q, np.isin(found[q], near[q])] for q in range(len(queries))]
    return SPARE * max(0.0, float(np.quantile(np.concatenate(below), KEPT)))
