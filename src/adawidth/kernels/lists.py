"""The lists of an inverted file, compiled by numba and cached on disk: which list a row belongs to, and the k best rows of some lists."""

import numpy as np
from numba import njit

from ..types import F32, F64, I32, I64, U16
from .float16 import products
from .options import ENTRY, INNER, NONE, PART
from .scan import best, fill, turn
from .select import front

FINE = 2.0**24  # steps that a centroid's score is told apart by
CLOSE = 4  # groups whose centroids a row is compared with


@njit(**INNER)
def _scored(turned: F32, halves: U16, scores: F32) -> None:
    """A rotated query's inner products with centroids, given as the bits of float16. (m,), (L, m) -> (L,)"""
    for one in range(len(halves)):
        scores[one] = products(halves[one].ctypes.data, turned.ctypes.data, len(turned))[0]  # type: ignore[call-arg]


@njit(**PART)
def _nearest(scores: F32, scale: F32, keys: I64, count: int) -> None:
    """Brings the lists with the highest scores, each times its scale, to the front of `keys`, in any order."""
    for one in range(len(scores)):
        keys[one] = (np.int64(scores[one] * scale[one] * np.float32(FINE)) << 32) | one
    front(keys, len(keys), count)


@njit(**ENTRY)
def some_lists(lists, matrix, points, queries, probes, allowed, found):  # type: ignore[no-untyped-def]
    """The k best rows of every query in its nearest lists, in any order, -1 behind them. (Q, m) -> (Q, k)

    `lists` is (packed, counts, starts, rows, centres, scale): the codes in blocks, how many rows a list has, the place of its first, the
    row in each place, the centroids (L, m), rotated, as the bits of float16, and one over their lengths: lists are near by their
    direction. `allowed` has a bit for each place, or is empty.
    """
    packed, counts, starts, rows, halves, scale = lists
    turned, leasts = np.empty(len(matrix), np.float32), np.empty(len(points), np.float32)
    tables, scores = np.empty((packed.shape[1], 2, 16), np.uint8), np.empty(len(halves), np.float32)
    keys, chosen = np.empty(len(halves), np.int64), np.empty((3, probes), np.int64)
    some, begins, shifts = chosen[0], chosen[1], chosen[2]
    for q in range(len(queries)):
        turn(queries[q], matrix, turned)
        _scored(turned, halves, scores)
        steps = fill(turned, points, leasts, tables)
        _nearest(scores, scale, keys, probes)
        least = scores[keys[0] & 0xFFFFFFFF]
        for i in range(probes):
            score = scores[keys[i] & 0xFFFFFFFF]
            least = score if score < least else least
        for i in range(probes):
            one = keys[i] & 0xFFFFFFFF
            some[i], begins[i] = counts[one], starts[one]
            shifts[i] = np.int64(np.rint((scores[one] - least) * steps))
        count = best(packed, some, begins, shifts, allowed, tables, found[q])
        for i in range(count):
            found[q, i] = rows[found[q, i]]


@njit(fastmath={"reassoc", "contract", "nsz"}, **INNER)
def product(a: F32, b: F32) -> np.float32:
    """Inner."""
    total = np.float32(0.0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit(**ENTRY)
def assign(rows: F32, groups: F32, ends: I64, centres: F32, list_of: I32) -> None:
    """The list of each row: that of the nearest centroid in the groups nearest to it. (n, m) -> (n,)

    Group g, whose own centroid is `groups[g]`, has the lists before `ends[g]` and from `ends[g - 1]` on.
    """
    scores = np.empty(len(groups), np.float32)
    for i in range(len(rows)):
        row, most, list_of[i] = rows[i], np.float32(-np.inf), 0
        for g in range(len(groups)):
            scores[g] = product(row, groups[g])
        for _ in range(CLOSE if len(groups) > CLOSE else len(groups)):
            close = NONE
            for g in range(len(groups)):
                close = g if scores[g] > scores[close] else close
            scores[close] = -np.inf
            for one in range(ends[close - 1] if close else NONE, ends[close]):
                score = product(row, centres[one])
                if score > most:
                    most, list_of[i] = score, one


@njit(cache=True, nogil=True)
def add_rows(rows: F32, list_of: I32, sums: F64) -> None:
    """Adds every row to the sum of its list. (n, m), (n,), (L, m)"""
    for i in range(len(rows)):
        row, total = rows[i], sums[list_of[i]]
        for j in range(len(row)):
            total[j] += row[j]
