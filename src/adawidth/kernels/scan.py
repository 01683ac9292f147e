"""The scan of four-bit codes, compiled by numba and cached on disk: the k best of all rows, or of some lists of them.

Codes lie in blocks of 64 rows: the first byte of each, then the second byte of each. A query becomes tables of what each code is
worth, in six bits; a row's score is a sum of lookups. What is among the k best is decided while scanning: a row counts if its score
reaches a bound, which a sample of the blocks gives first and the rows found so far raise.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from ..types import F32, I64, U8, U64
from .float16 import fetch
from .lookup import LARGEST, TOGETHER, lowest, sums, tabled
from .options import ENTRY, INNER, NONE, ONE, PART
from .select import front, kth_largest

MOST = 65_535  # a sum
SAMPLED = 48  # one block in so many gives the first bound …
FEW = 8  # … or more, so that there are so many; a smaller sample tells nothing …
OFTEN = 4  # … and one in fewer than so many takes too long
MANY = 8  # rows per row wanted; else a sample saves nothing
CACHED = 1 << 23  # bytes of codes that a CPU's caches hold; of more, blocks are asked for …
AHEAD = 2  # … so many before they are scored
LINE = 64  # bytes that memory gives at once
GROUP = 64  # blocks that are scored before any is looked at
ROOM = 64 * TOGETHER  # keys held beyond twice those wanted: the best of them are selected when it is full
SURE = 5.0  # standard deviations by which the sample's bound is lower than what it estimates


@njit(fastmath={"reassoc", "contract", "nsz"}, **INNER)
def turn(query: F32, matrix: F32, out: F32) -> None:
    """Rotates a query. (m,), (m, m) -> (m,)"""
    for j in range(len(matrix)):
        axis = matrix[j]
        total = np.float32(0.0)
        for i in range(len(axis)):
            total += axis[i] * query[i]
        out[j] = total


@njit(**INNER)
def fill(query: F32, points: F32, leasts: F32, tables: U8) -> np.float32:
    """Tables of a query's products with the centroids (M, d, 16), each from 0 up, (bytes, 2, 16); how many steps 1 is.

    The first and the last centroid have the lowest and the highest level of every coordinate, so one of the two has the least product.
    """
    count, width = points.shape[:2]
    largest = np.float32(0.0)
    for c in range(count):
        least, most = np.float32(0.0), np.float32(0.0)
        for d in range(width):
            low, high = query[c * width + d] * points[c, d, 0], query[c * width + d] * points[c, d, 15]
            least += low if low < high else high
            most += high if low < high else low
        leasts[c] = least
        largest = most - least if most - least > largest else largest
    held = MOST // (2 * len(tables))
    top = np.float32(held if held < LARGEST else LARGEST)
    steps = top / largest
    if not (largest > 0 and steps < np.inf and steps > 0):  # all alike, or numbers that no sound codebook has
        steps = np.float32(0.0)
    for c in range(count):
        tabled(points[c].ctypes.data, query[c * width :].ctypes.data, width, leasts[c], steps, tables[c // 2, c % 2].ctypes.data)  # type: ignore[call-arg]
    for c in range(count, 2 * len(tables)):  # of bytes that only make a row's number of bytes even
        for p in range(16):
            tables[c // 2, c % 2, p] = 0
    return steps


@njit(**INNER)
def existing(bits: np.uint64, block: int, begin: int, end: int, allowed: U64) -> np.uint64:
    """Of a block's rows, those from `begin` up to `end`, and allowed."""
    if begin > 0:
        bits &= ~np.uint64(0) << np.uint64(begin)
    if end < TOGETHER:
        bits &= (np.uint64(1) << np.uint64(end)) - np.uint64(1)
    return bits & allowed[block] if len(allowed) else bits


@njit(**INNER)
def _ask(address: int, size: int) -> None:
    """Asks memory for a block."""
    for byte in range(0, size, LINE):
        fetch(address + byte)  # type: ignore[call-arg]


@njit(**PART)
def score_of(key: int) -> int:
    """The score in a key."""
    return (key + 0xFFFFFFFF) >> 32


@njit(**PART)
def place_of(key: int) -> int:
    """The row's place in a key."""
    return -key & 0xFFFFFFFF


@njit(**INNER)
def collect(
    packed: U8, counts: I64, starts: I64, shifts: I64, allowed: U64, tables: U8, step: int, least: int, k: int, room: int,
    group: Any, keys: I64, n: int,
) -> int:  # fmt: skip
    """Keys of rows whose score is `least` or more, in every `step`-th block, behind the n there are; the k best if more than `room`.

    List l is `counts[l]` rows from place `starts[l]` on, whose scores are higher by `shifts[l]`. `allowed` has a bit for each place, or
    is empty. A key is a score and, negative, a row's place: the higher score comes first, then the lower place. Returns how many
    keys there are.

    Some blocks are scored first, without a branch, and only then those looked at that have such rows, since no CPU can predict which.
    `group` is room for them: (scores (n, 64), reached (n,), hits (n,)).
    """
    scores, reached, hits = group
    out, worth, width, size = scores.ctypes.data, tables.ctypes.data, packed.shape[1], packed.shape[1] * TOGETHER
    seen, far = NONE, len(packed) * size > CACHED
    for which in range(len(counts)):
        before, shift = starts[which] % TOGETHER, shifts[which]
        first, end = starts[which] // TOGETHER, before + counts[which]
        blocks, following = (end + TOGETHER - 1) // TOGETHER, starts[which + 1 if which + 1 < len(starts) else which] // TOGETHER
        begin = step - 1 - seen % step
        seen += blocks
        while begin < blocks and least - shift <= MOST:
            wanted, hit, some = least - shift if least > shift else NONE, NONE, NONE
            while begin + some * step < blocks and some < len(hits):
                block = begin + some * step
                if far:
                    ahead = block + AHEAD * step
                    ahead += first if ahead < blocks else following - blocks
                    _ask(packed.ctypes.data + ahead * size, size)
                place = packed.ctypes.data + (first + block) * size
                bits: np.uint64 = sums(place, worth, width, out + 2 * TOGETHER * some, wanted)
                reached[some], hits[hit] = bits, some
                hit += bits != 0
                some += 1
            for j in range(hit):
                i = hits[j]
                block = begin + i * step
                bits = existing(np.uint64(reached[i]), first + block, before - block * TOGETHER, end - block * TOGETHER, allowed)
                while bits:
                    row: int = lowest(bits)  # type: ignore[call-arg]
                    bits &= bits - np.uint64(1)
                    keys[n] = (np.int64(scores[i, row]) + shift << 32) - ((first + block) * TOGETHER + row)
                    n += 1
                if n > room:
                    least, n = score_of(front(keys, n, k)), k
            begin += some * step
    return n


@njit(**INNER)
def best_keys(packed: U8, counts: I64, starts: I64, shifts: I64, allowed: U64, tables: U8, k: int, group: Any, keys: I64) -> int:
    """Keys of the k best rows of these lists and of some others; how many keys there are.

    A sample of the blocks gives a score that more than k of all rows almost surely reach, so that few others are looked at.
    """
    blocks = NONE
    for count in counts:
        blocks += (count + TOGETHER - 1) // TOGETHER
    least, step = NONE, blocks // FEW if blocks // FEW < SAMPLED else SAMPLED
    if step >= OFTEN and k * MANY <= blocks * TOGETHER:
        few = 1 + math.ceil(k / step + SURE * math.sqrt(k / step))
        one = group[0], group[1], group[2][:1]
        n = collect(packed, counts, starts, shifts, allowed, tables, step, least, few, 2 * few + TOGETHER, one, keys, NONE)
        if n >= few:
            least = score_of(front(keys, n, few))
    while True:
        n = collect(packed, counts, starts, shifts, allowed, tables, ONE, least, k, len(keys) - TOGETHER, group, keys, NONE)
        if n >= k or least <= 0:
            return n
        least = NONE  # the sample was misleading


@njit(**INNER)
def steps_of(gap: float, query: F32, steps: np.float32) -> int:
    """A difference of cosines with a query in the steps of its tables, of which 1 has so many."""
    square = np.float32(0.0)
    for i in range(len(query)):
        square += query[i] * query[i]
    reach = gap * math.sqrt(square) * steps
    return int(reach) if reach < MOST else MOST


@njit(**INNER)
def thinned(keys: I64, n: int, sure: int, reach: int) -> int:
    """Keeps those of the first n keys whose scores come within `reach` of the `sure`-th best; how many they are."""
    if n <= sure or reach >= MOST:
        return n
    bound, count = score_of(kth_largest(keys, n, sure)) - reach, NONE
    for i in range(n):
        keys[count] = keys[i]
        count += score_of(keys[i]) >= bound
    return count


@njit(**PART)
def best(
    packed: U8, counts: I64, starts: I64, shifts: I64, allowed: U64, tables: U8, sure: int, reach: int, found: I64
) -> None:  # fmt: skip
    """The places of the best rows of these lists, in any order, -1 where there are fewer. Into (k,)"""
    k, keys = len(found), np.empty(2 * len(found) + ROOM, np.int64)
    group = np.empty((GROUP, TOGETHER), np.uint16), np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    n = best_keys(packed, counts, starts, shifts, allowed, tables, k, group, keys)
    if n > k:
        front(keys, n, k)
        n = k
    n = thinned(keys, n, sure, reach)
    for i in range(k):
        found[i] = place_of(keys[i]) if i < n else -1


@njit(**ENTRY)
def all_rows(packed: U8, count: int, matrix: F32, points: F32, queries: F32, allowed: U64, sure: int, gap: float, found: I64) -> None:
    """The k best of `count` rows for every query, in any order: those that score no `gap` less, as cosines, than the `sure`-th best.
    (Q, m) -> (Q, k)"""
    counts, none = np.empty(1, np.int64), np.empty(1, np.int64)
    counts[0], none[0] = count, 0
    turned, leasts = np.empty(len(matrix), np.float32), np.empty(len(points), np.float32)
    tables = np.empty((packed.shape[1], 2, 16), np.uint8)
    for q in range(len(queries)):
        turn(queries[q], matrix, turned)
        steps = fill(turned, points, leasts, tables)
        best(packed, counts, none, none, allowed, tables, sure, steps_of(gap, turned, steps), found[q])
