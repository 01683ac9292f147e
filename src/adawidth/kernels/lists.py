"""The lists of an inverted file, compiled by numba and cached on disk: which list a row belongs to, and the k best rows of some lists."""

import numpy as np
from numba import njit

from ..types import F32, F64, I32, I64, U16
from .float16 import ABREAST, across_halves
from .lookup import TOGETHER
from .options import ENTRY, INNER, NONE, ONE, PART
from .scan import GROUP, ROOM, best_keys, collect, fill, place_of, score_of, steps_of, thinned, turn
from .select import front, kth_largest

FINE = 2.0**24  # steps that a centroid's score is told apart by
CLOSE = 4  # groups whose centroids a row is compared with


@njit(**INNER)
def _scored(turned: F32, panels: U16, scores: F32) -> None:
    """A rotated query's inner products with centroids, given as the bits of float16. (m,), (P, m, 32) -> (L,)"""
    for panel in range(len(panels)):
        first = panel * ABREAST
        some = len(scores) - first if len(scores) - first < ABREAST else ABREAST
        across_halves(panels[panel].ctypes.data, turned.ctypes.data, len(turned), scores[first:].ctypes.data, some)


@njit(**PART)
def _nearest(scores: F32, scale: F32, keys: I64) -> np.float32:
    """Keys of the lists, the greater the higher their score times their scale; the lowest score."""
    least = scores[0]
    for one in range(len(scores)):
        keys[one] = (np.int64(scores[one] * scale[one] * np.float32(FINE)) << 32) | one
        least = scores[one] if scores[one] < least else least
    return least


@njit(**PART)
def _between(keys: I64, low: int, high: int, scores: F32, least: np.float32, steps: np.float32, counts: I64, starts: I64, some: I64) -> int:
    """Of the lists whose keys lie from `low` up to `high`: rows, the place of the first, and by what their scores are higher; how many."""
    n = NONE
    for one in range(len(keys)):
        if low <= keys[one] < high:
            some[0, n], some[1, n], some[2, n] = counts[one], starts[one], np.int64(np.rint((scores[one] - least) * steps))
            n += 1
    return n


@njit(**PART)
def _came(n: int, least: int, former: I64, before: int) -> int:
    """How many of the n best keys, of which `least` is the lowest, are not among the `before` former ones."""
    for i in range(before):
        n -= former[i] >= least
    return n


@njit(**ENTRY)
def some_lists(lists, matrix, points, queries, most, size, enough, allowed, sure, gap, found):  # type: ignore[no-untyped-def]
    """The k best rows of every query in its nearest lists, in any order, -1 behind them; how many lists were scanned. (Q, m) -> (Q, k)

    Of these rows, those that score no `gap` less, as cosines, than the `sure`-th best.

    `size` lists are scanned at a time, up to `most`, until no more than `enough` of the k best come from the last of them. `lists` is
    (packed, counts, starts, rows, centres, scale): the codes in blocks, how many rows a list has, the place of its first, the row in each
    place, the centroids, rotated, in panels (P, m, 32) of the bits of float16, and one over their lengths: lists are near by their
    direction. `allowed` has a bit for each place, or is empty.
    """
    packed, counts, starts, rows, panels, scale = lists
    k, scanned, count = found.shape[1], NONE, len(scale)
    turned, leasts = np.empty(len(matrix), np.float32), np.empty(len(points), np.float32)
    tables, scores = np.empty((packed.shape[1], 2, 16), np.uint8), np.empty(count, np.float32)
    nearness, some = np.empty(count, np.int64), np.empty((3, size), np.int64)
    keys, former = np.empty(2 * k + ROOM, np.int64), np.empty(k, np.int64)
    group = np.empty((GROUP, TOGETHER), np.uint16), np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    for q in range(len(queries)):
        turn(queries[q], matrix, turned)
        _scored(turned, panels, scores)
        steps = fill(turned, points, leasts, tables)
        lowest = _nearest(scores, scale, nearness)
        n, end, least, high = NONE, NONE, NONE, np.int64(np.iinfo(np.int64).max)
        while end < most:
            first, before, end = end == 0, n, end + size if end + size < most else most
            low = kth_largest(nearness, count, end)
            here = _between(nearness, low, high, scores, lowest, steps, counts, starts, some)
            if first:
                n = best_keys(packed, some[0, :here], some[1, :here], some[2, :here], allowed, tables, k, group, keys)
            else:
                for i in range(before):
                    former[i] = keys[i]
                n = collect(
                    packed, some[0, :here], some[1, :here], some[2, :here], allowed, tables,
                    ONE, least, k, len(keys) - TOGETHER, group, keys, before,
                )  # fmt: skip
            high = low
            if n >= k:
                last, n = front(keys, n, k), k
                if not first and _came(n, last, former, before) <= enough:
                    break
                least = score_of(last)
        scanned += end
        n = thinned(keys, n if n < k else k, sure, steps_of(gap, turned, steps))
        for i in range(k):
            found[q, i] = rows[place_of(keys[i])] if i < n else -1
    return scanned


@njit(fastmath={"reassoc", "contract", "nsz"}, **INNER)
def product(a: F32, b: F32) -> np.float32:
    """The inner product of two rows."""
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
