"""Walking a graph of near neighbours, compiled by numba and cached on disk.

Beside each row lie the four-bit codes of its neighbours, so that one pass of lookups scores all of them. A beam holds the best rows met
so far, the best first. Its first row that is not expanded yet is expanded: its neighbours enter the beam where they beat its last row.
A walk ends when all rows in the beam are expanded. Of all rows that it met, the best are found: many more than the beam holds.
"""

from typing import Any

import numpy as np
from numba import njit

from ..types import I32, I64, U8, U64
from .float16 import fetch
from .lookup import TOGETHER, lowest, summing, sums
from .options import ENTRY, INNER, NONE, ONE
from .scan import ROOM, fill, steps_of, thinned, turn
from .select import front

NEIGHBOURS = 32  # of a row
BEGINNINGS = 8  # rows at which a walk begins: the best entries
LINE = 64  # bytes that memory gives at once
OPEN = 1  # the bit of a row that is to be expanded
BIT = np.uint64(1)

neighbour_sums = summing(NEIGHBOURS)


@njit(**INNER)
def _enter(beam: I64, size: int, entry: int) -> int:
    """Puts an entry where it belongs, and drops the last of a full beam; its place, or the beam's length where it is not good enough.

    An entry is a score, a row and whether that is still to be expanded, in the bits of one number. The beam is descending.
    """
    place = size
    if size == len(beam):
        if entry <= beam[size - 1]:
            return size
        place -= 1
    while place and beam[place - 1] < entry:
        beam[place] = beam[place - 1]
        place -= 1
    beam[place] = entry
    return place


@njit(**INNER)
def _row(entry: int) -> int:
    return (entry >> 1) & 0x7FFFFFFF


@njit(**INNER)
def _begin(entries: I32, packed: U8, tables: U8, scores: U8, beam: I64) -> int:
    """Puts the best entries into the beam; how many there are."""
    size, width = 0, packed.shape[1]
    first = beam[: min(BEGINNINGS, len(beam))]
    for begin in range(0, len(entries), TOGETHER):
        least = first[-1] >> 32 if size == len(first) else NONE
        bits: np.uint64 = sums(packed.ctypes.data + begin * width, tables.ctypes.data, width, scores.ctypes.data, least)
        while bits:
            i: int = lowest(bits)  # type: ignore[call-arg]
            bits &= bits - np.uint64(1)
            if begin + i < len(entries):
                _enter(first, size, (np.int64(scores[i]) << 32) | (np.int64(entries[begin + i]) << 1) | OPEN)
                size = min(size + 1, len(first))
    return size


@njit(**INNER)
def _next(beam: I64, size: int, place: int, blocks: I32) -> tuple[int, int]:
    """The first row to be expanded from this place on, -1 if there is none, and its place; asks memory for what expanding it reads."""
    while place < size and not beam[place] & OPEN:
        place += 1
    if place == size:
        return -ONE, place
    beam[place] -= OPEN
    row, length = _row(beam[place]), 4 * blocks.shape[1]
    for byte in range(0, length, LINE):
        fetch(blocks.ctypes.data + row * length + byte)  # type: ignore[call-arg]
    return row, place


@njit(**INNER)
def _meet(near: I32, scores: U8, met: U64, keys: I64, n: Any) -> tuple[np.uint64, Any]:
    """Which of these rows were not met before, a bit each, and the number of keys with theirs. Without a branch, and unsigned, so that
    no index is checked for being negative."""
    fresh = np.uint64(0)
    for i in range(len(near)):
        row = np.uint64(near[i])
        word, bit = row >> np.uint64(6), row & np.uint64(63)
        new = ~(met[word] >> bit) & BIT
        met[word] |= BIT << bit
        fresh |= new << np.uint64(i)
        keys[n] = (np.int64(scores[i]) << 32) - np.int64(row)
        n += np.int64(new)
    return fresh, n


@njit(**INNER)
def _among(allowed: U64, keys: I64, begin: int, end: int) -> int:
    """Keeps those of some keys whose rows are allowed; the number of keys."""
    n: Any = begin
    for i in range(begin, end):
        row = np.uint64(-keys[i] & 0xFFFFFFFF)
        keys[n] = keys[i]
        n += np.int64((allowed[row >> np.uint64(6)] >> (row & np.uint64(63))) & BIT)
    return n


@njit(**ENTRY)
def walk(graph, matrix, points, queries, held, allowed, sure, gap, found):  # type: ignore[no-untyped-def]
    """The best rows that a walk for each query meets, in any order, -1 behind them. (Q, m) -> (Q, k)

    Of these rows, those that score no `gap` less, as cosines, than the `sure`-th best.

    `graph` is (blocks, entries, packed): of each row the codes of its neighbours, side by side, and who they are, N behind the last
    (N, 8 bytes + 32), rows to begin at (E,), and their codes as a scan reads them. `held` is the length of the beam; `allowed` has a bit
    for each row that may be found, or is empty. A key is a score and, negative, a row.

    The row to be expanded next is chosen before the neighbours of this one are looked at, so that memory has time to bring it.
    """
    blocks, entries, packed = graph
    turned, leasts = np.empty(len(matrix), np.float32), np.empty(len(points), np.float32)
    tables, scores = np.empty((packed.shape[1], 2, 16), np.uint8), np.empty(TOGETHER, np.uint16)
    k, width, worth, out = found.shape[1], packed.shape[1], tables.ctypes.data, scores.ctypes.data
    beam, keys, met = np.empty(held, np.int64), np.empty(2 * k + ROOM, np.int64), np.empty((len(blocks) >> 6) + 1, np.uint64)
    begun = np.empty(BEGINNINGS, np.int32)
    for q in range(len(queries)):
        turn(queries[q], matrix, turned)
        steps = fill(turned, points, leasts, tables)
        met[:] = 0
        met[-1] |= BIT << np.uint64(len(blocks) & 63)
        size, n = _begin(entries, packed, tables, scores, beam), NONE
        for i in range(size):
            begun[i] = _row(beam[i])
            scores[i] = beam[i] >> 32
        _, n = _meet(begun[:size], scores, met, keys, NONE)
        if len(allowed):
            n = _among(allowed, keys, NONE, n)
        row, place = _next(beam, size, NONE, blocks)
        while row >= 0:
            following, place = _next(beam, size, place, blocks)
            if n > len(keys) - NEIGHBOURS:
                front(keys, n, k)
                n = k
            last = beam[held - 1] >> 32 if size == held else NONE
            bits: np.uint64 = neighbour_sums(blocks.ctypes.data + 4 * row * blocks.shape[1], worth, width, out, last)
            near, before = blocks[row, 8 * width :], n
            fresh, n = _meet(near, scores, met, keys, n)
            if len(allowed):
                n = _among(allowed, keys, before, n)
            bits &= fresh
            while bits:
                one: int = lowest(bits)  # type: ignore[call-arg]
                bits &= bits - BIT
                entered = _enter(beam, size, (np.int64(scores[one]) << 32) | (np.int64(near[one]) << 1) | OPEN)
                size += np.int64(size < held)
                place = min(place, entered)
            if following < 0:
                following, place = _next(beam, size, place, blocks)
            row = following
        if n > k:
            front(keys, n, k)
            n = k
        n = thinned(keys, n, sure, steps_of(gap, turned, steps))
        for i in range(n):
            found[q, i] = -keys[i] & 0xFFFFFFFF
        found[q, n:] = -1
