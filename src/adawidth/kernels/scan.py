"""The scan of four-bit codes, compiled by numba and cached on disk: the k best of all rows, or of some lists of them.

Codes lie in blocks of 64 rows: the first byte of each, then the second byte of each. A query becomes tables of what each code is
worth, in seven bits; a row's score is a sum of lookups. What is among the k best is decided while scanning: a row counts if its score
reaches a bound, which a sample of the blocks gives first and the rows found so far raise.
"""

import numpy as np
from numba import njit

from ..types import F32, I64, U8, U64
from .lookup import TOGETHER, lowest, sums
from .options import ENTRY, INNER, NONE, ONE
from .select import front

LARGEST = 127.0  # in a table: two of them are added in a byte
MOST = 65_535.0  # a sum
SAMPLED = 48  # one block in so many gives the first bound …
FEW = 8  # … or more, so that there are so many; a smaller sample tells nothing …
OFTEN = 4  # … and one in fewer than so many takes too long
MANY = 8  # rows per row wanted; else a sample saves nothing
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
def fill(query: F32, points: F32, room: F32, tables: U8) -> np.float32:
    """Tables of a query's products with the centroids (M, 16, d), each from 0 up, (bytes, 2, 16); how many steps 1 is."""
    count, sixteen, width = points.shape
    largest = np.float32(0.0)
    for c in range(count):
        least, most = np.float32(np.inf), np.float32(-np.inf)
        for p in range(sixteen):
            total = np.float32(0.0)
            for d in range(width):
                total += query[c * width + d] * points[c, p, d]
            room[c, p] = total
            least, most = min(least, total), max(most, total)
        for p in range(sixteen):
            room[c, p] -= least
        largest = max(largest, most - least)
    top = np.float32(min(LARGEST, MOST // (2 * len(tables))))
    steps = top / largest
    if not (largest > 0 and steps < np.inf and steps > 0):  # all alike, or numbers that no sound codebook has
        steps = np.float32(0.0)
    tables[:] = 0
    for c in range(count):
        for p in range(sixteen):
            worth = room[c, p] * steps + np.float32(0.5)
            tables[c // 2, c % 2, p] = np.uint8(worth) if worth >= 0 and worth <= top + 1 else 0
    return steps


@njit(**INNER)
def existing(bits: np.uint64, block: int, rows: int, allowed: U64) -> np.uint64:
    """Of a block's rows, those among its first `rows`, and allowed."""
    if rows < TOGETHER:
        bits &= (np.uint64(1) << np.uint64(rows)) - np.uint64(1)
    return bits & allowed[block] if len(allowed) else bits


@njit(**INNER)
def collect(packed: U8, counts: I64, firsts: I64, shifts: I64, allowed: U64, tables: U8, least: int, k: int, keys: I64) -> int:
    """Keys of rows whose score is `least` or more; the k best where they would be too many to hold.

    List l is `counts[l]` rows from block `firsts[l]` on, whose scores are higher by `shifts[l]`. `allowed` has a bit for each row, or
    is empty. A key is a score and, negative, a row's place: the higher score comes first, then the lower place. Returns how many
    keys there are.

    Some blocks are scored first, without a branch, and only then those looked at that have such rows, since no CPU can predict which.
    """
    scores, reached, hits = np.empty((GROUP, TOGETHER), np.uint16), np.empty(GROUP, np.uint64), np.empty(GROUP, np.int64)
    out, start, worth, width = scores.ctypes.data, packed.ctypes.data, tables.ctypes.data, packed.shape[1]
    n, room = NONE, len(keys) - TOGETHER
    for which in range(len(counts)):
        count, first, shift = counts[which], firsts[which], shifts[which]
        blocks = (count + TOGETHER - 1) // TOGETHER
        for begin in range(0, blocks, GROUP):
            if least - shift > MOST:
                break
            hit = NONE
            for i in range(min(blocks - begin, GROUP)):
                place = start + (first + begin + i) * width * TOGETHER
                reached[i] = sums(place, worth, width, out + 2 * TOGETHER * i, max(least - shift, 0))
                hits[hit] = i
                hit += np.int64(reached[i] != 0)
            for i in hits[:hit]:
                block = first + begin + i
                bits = existing(reached[i], block, count - (begin + i) * TOGETHER, allowed)
                while bits:
                    row: int = lowest(bits)  # type: ignore[call-arg]
                    bits &= bits - np.uint64(1)
                    keys[n] = (np.int64(scores[i, row]) + shift << 32) - (block * TOGETHER + row)
                    n += 1
                if n > room:
                    least, n = (front(keys, n, k) + 0xFFFFFFFF) >> 32, k
    return n


@njit(**INNER)
def bound(packed: U8, counts: I64, firsts: I64, shifts: I64, allowed: U64, tables: U8, step: int, k: int) -> int:
    """A score that more than k of all rows almost surely reach, from every `step`-th block; 0 where these are too few."""
    scores = np.empty(TOGETHER, np.uint16)
    out, start, worth, width = scores.ctypes.data, packed.ctypes.data, tables.ctypes.data, packed.shape[1]
    highest = np.zeros(np.int64(np.ceil(k / step + SURE * np.sqrt(k / step))) + 1, np.int64)  # ascending
    seen = NONE
    for which in range(len(counts)):
        count, first, shift = counts[which], firsts[which], shifts[which]
        blocks = (count + TOGETHER - 1) // TOGETHER
        for place in range(step - 1 - seen % step, blocks, step):
            if highest[0] >= MOST + shift:
                continue
            bits: np.uint64 = sums(start + (first + place) * width * TOGETHER, worth, width, out, max(highest[0] + 1 - shift, 0))
            bits = existing(bits, first + place, count - place * TOGETHER, allowed)
            while bits:
                score = np.int64(scores[lowest(bits)]) + shift  # type: ignore[call-arg]
                bits &= bits - np.uint64(1)
                if score > highest[0]:
                    i = ONE
                    while i < len(highest) and highest[i] < score:
                        highest[i - 1] = highest[i]
                        i += 1
                    highest[i - 1] = score
        seen += blocks
    return highest[0]


@njit(**INNER)
def best(packed: U8, counts: I64, firsts: I64, shifts: I64, allowed: U64, tables: U8, found: I64) -> int:
    """The places of the best rows of these lists, in any order, -1 where there are fewer; how many there are. Into (k,)"""
    k, blocks = len(found), NONE
    for count in counts:
        blocks += (count + TOGETHER - 1) // TOGETHER
    least, step = NONE, min(blocks // FEW, SAMPLED)
    keys = np.empty(2 * k + ROOM, np.int64)
    if step >= OFTEN and k * MANY <= blocks * TOGETHER:
        least = bound(packed, counts, firsts, shifts, allowed, tables, step, k)
    n = collect(packed, counts, firsts, shifts, allowed, tables, least, k, keys)
    if n < k and least > 0:  # the sample was misleading
        n = collect(packed, counts, firsts, shifts, allowed, tables, NONE, k, keys)
    if n > k:
        front(keys, n, k)
        n = k
    for i in range(n):
        found[i] = -keys[i] & 0xFFFFFFFF
    found[n:] = -1
    return n


@njit(**ENTRY)
def all_rows(packed: U8, count: int, matrix: F32, points: F32, queries: F32, allowed: U64, found: I64) -> None:
    """The k best of `count` rows for every query, in any order. (Q, m) -> (Q, k)"""
    counts, none = np.empty(1, np.int64), np.empty(1, np.int64)
    counts[0], none[0] = count, 0
    turned, room = np.empty(len(matrix), np.float32), np.empty((len(points), 16), np.float32)
    tables = np.empty((packed.shape[1], 2, 16), np.uint8)
    for q in range(len(queries)):
        turn(queries[q], matrix, turned)
        fill(turned, points, room, tables)
        best(packed, counts, none, none, allowed, tables, found[q])
