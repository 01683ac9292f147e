"""Walking a graph of near neighbours, compiled by numba and cached on disk.

Beside each row lie the four-bit codes of its neighbours, so that one pass of lookups scores all of them. A beam holds the best rows met
so far, the best first. Its first row that is not expanded yet is expanded: its neighbours enter the beam where they beat its last row.
A walk ends when all rows in the beam are expanded.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ..types import I32, I64, U8, U64
from .float16 import fetch
from .lookup import TOGETHER, lowest, summing, sums
from .options import ENTRY, INNER, NONE
from .scan import fill, turn

NEIGHBOURS = 32  # of a row
BEGINNINGS = 8  # rows at which a walk begins: the best entries
LINE = 64  # bytes that memory gives at once
OPEN = 1  # the bit of a row that is to be expanded

neighbour_sums = summing(NEIGHBOURS)


@intrinsic
def move(_: Any, target: Any, source: Any, size: Any) -> Any:
    """Moves so many bytes from one address to another; the two parts may overlap."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        target, source = (builder.inttoptr(address, pointer) for address in arguments[:2])
        cgutils.raw_memmove(builder, target, source, arguments[2], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@njit(**INNER)
def _enter(beam: I64, size: int, entry: int) -> int:
    """Puts an entry where it belongs, and drops the last of a full beam; its place, or the beam's length where it is not good enough.

    An entry is a score, a row and whether that is still to be expanded, in the bits of one number. The beam is descending.
    """
    most = len(beam)
    if size == most:
        if entry <= beam[most - 1]:
            return most
        size -= 1
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if beam[middle] > entry:
            low = middle + 1
        else:
            high = middle
    start = beam.ctypes.data + 8 * low
    move(start + 8, start, 8 * (size - low))  # type: ignore[call-arg]
    beam[low] = entry
    return low


@njit(**INNER)
def _row(entry: int) -> int:
    return (entry >> 1) & 0x7FFFFFFF


@njit(**INNER)
def _has(bits: U64, row: int) -> bool:
    return bool((bits[row >> 6] >> np.uint64(row & 63)) & np.uint64(1))


@njit(**INNER)
def _begin(entries: I32, packed: U8, tables: U8, scores: U8, beam: I64, met: U64) -> int:
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
    for i in range(size):
        row = _row(beam[i])
        met[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    return size


@njit(**INNER)
def _fetch(row: int, blocks: U8, neighbours: I32) -> None:
    """Asks memory for what expanding a row reads."""
    length = blocks.shape[1] * NEIGHBOURS
    for byte in range(0, length, LINE):
        fetch(blocks.ctypes.data + row * length + byte)  # type: ignore[call-arg]
    for byte in range(0, 4 * NEIGHBOURS, LINE):
        fetch(neighbours.ctypes.data + row * 4 * NEIGHBOURS + byte)  # type: ignore[call-arg]


@njit(**INNER)
def _expand(place: int, blocks: U8, neighbours: I32, tables: U8, scores: U8, beam: I64, size: int, met: U64) -> tuple[int, int]:
    """Puts the neighbours of the row in this place into the beam; the beam's new size, and the place to go on at."""
    beam[place] -= OPEN
    row, width, most = _row(beam[place]), blocks.shape[1], len(beam)
    after = place + 1
    while after < size and not beam[after] & OPEN:
        after += 1
    if after < size:  # the next to be expanded, unless a neighbour is better
        _fetch(_row(beam[after]), blocks, neighbours)
    least = (beam[most - 1] >> 32) if size == most else NONE
    start, worth = blocks.ctypes.data + row * width * NEIGHBOURS, tables.ctypes.data
    bits: np.uint64 = neighbour_sums(start, worth, width, scores.ctypes.data, least)
    near = neighbours[row]
    while bits:
        i: int = lowest(bits)  # type: ignore[call-arg]
        bits &= bits - np.uint64(1)
        other = np.int64(near[i])
        if other < 0 or _has(met, other):
            continue
        met[other >> 6] |= np.uint64(1) << np.uint64(other & 63)
        entered = _enter(beam, size, (np.int64(scores[i]) << 32) | (other << 1) | OPEN)
        if entered < most:
            size = min(most, size + 1)
            if entered <= after:
                after = entered
                _fetch(other, blocks, neighbours)
    return size, after


@njit(**ENTRY)
def walk(graph, matrix, points, queries, held, allowed, found):  # type: ignore[no-untyped-def]
    """The best rows of every query, -1 behind them; `allowed` has a bit for each row, or is empty. (Q, m) -> (Q, k)

    `graph` is (blocks, neighbours, entries, packed): the codes of each row's neighbours (N, bytes, 32), these (N, 32), -1 behind the last,
    rows to begin at (E,), and their codes as a scan reads them. `held` is the length of the beam.
    """
    blocks, neighbours, entries, packed = graph
    turned, room = np.empty(len(matrix), np.float32), np.empty((len(points), 16), np.float32)
    tables, scores = np.empty((packed.shape[1], 2, 16), np.uint8), np.empty(TOGETHER, np.uint16)
    beam, met = np.empty(held, np.int64), np.empty((len(neighbours) >> 6) + 1, np.uint64)
    for q in range(len(queries)):
        turn(queries[q], matrix, turned)
        fill(turned, points, room, tables)
        met[:] = 0
        size, place = _begin(entries, packed, tables, scores, beam, met), NONE
        while place < size:
            size, place = _expand(place, blocks, neighbours, tables, scores, beam, size, met)
        n = 0
        for i in range(size):
            row = _row(beam[i])
            if n < found.shape[1] and (len(allowed) == 0 or _has(allowed, row)):
                found[q, n] = row
                n += 1
        found[q, n:] = -1
