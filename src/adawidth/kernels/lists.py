"""The scan of an inverted file, compiled by numba and cached on disk: the k best rows of the lists nearest to each query."""

import numpy as np
from numba import njit

from ..types import F32, F64, I32, I64
from .options import ENTRY, PART
from .scan import best, fill, turn
from .select import front

FINE = 2.0**24  # steps that a centroid's score is told apart by


@njit(**PART)
def _nearest(scores: F32, scale: F32, keys: I64, count: int) -> None:
    """Brings the lists with the highest scores, each times its scale, to the front of `keys`, in any order."""
    for place in range(len(scores)):
        keys[place] = (np.int64(scores[place] * scale[place] * np.float32(FINE)) << 32) | place
    front(keys, len(keys), count)


@njit(**ENTRY)
def some_lists(lists, matrix, points, queries, probes, allowed, found):  # type: ignore[no-untyped-def]
    """The k best rows of every query in its nearest lists, in any order, -1 behind them. (Q, m) -> (Q, k)

    `lists` is (packed, counts, firsts, rows, centres, scale): the codes in blocks, every list from a block of its own on, how many rows a
    list has, its first block, the row in each place, the centroids (L, m), rotated, and one over their lengths: lists are near by their
    direction. `allowed` has a bit for each place, or is empty.
    """
    packed, counts, firsts, rows, centres, scale = lists
    turned, leasts = np.empty(len(matrix), np.float32), np.empty(len(points), np.float32)
    tables, near = np.empty((packed.shape[1], 2, 16), np.uint8), np.empty(len(centres), np.float32)
    keys, chosen = np.empty(len(centres), np.int64), np.empty((3, probes), np.int64)
    some, begins, shifts = chosen[0], chosen[1], chosen[2]
    for q in range(len(queries)):
        turn(queries[q], matrix, turned)
        turn(turned, centres, near)
        steps = fill(turned, points, leasts, tables)
        _nearest(near, scale, keys, probes)
        least = near[keys[0] & 0xFFFFFFFF]
        for i in range(probes):
            score = near[keys[i] & 0xFFFFFFFF]
            least = score if score < least else least
        for i in range(probes):
            place = keys[i] & 0xFFFFFFFF
            some[i], begins[i] = counts[place], firsts[place]
            shifts[i] = np.int64(np.rint((near[place] - least) * steps))
        count = best(packed, some, begins, shifts, allowed, tables, found[q])
        for i in range(count):
            found[q, i] = rows[found[q, i]]


@njit(cache=True, nogil=True)
def add_rows(rows: F32, list_of: I32, sums: F64) -> None:
    """Adds every row to the sum of its list. (n, m), (n,), (L, m)"""
    for i in range(len(rows)):
        row, total = rows[i], sums[list_of[i]]
        for j in range(len(row)):
            total[j] += row[j]
