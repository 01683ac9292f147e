"""Candidates' rows and the queries they are compared with: where rows lie, how far queries are rotated, and prefix cosines.

Rows are float16 and lie in one array per segment, so a kernel gets addresses.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ..types import F32, I64, U16
from .float16 import ABREAST, SUMS, across_halves, across_singles, fetch, is_set, products
from .options import INNER, NONE, PART

TINY = np.float32(1e-24)  # squared lengths are never smaller
LINE = 64  # bytes that memory gives at once
AHEAD = 32  # candidates to prefetch ahead, since rows are anywhere in memory


class Table(NamedTuple):
    """All rows: N of them in S segments."""

    bases: I64  # (S,) addresses of the segments' first rows
    firsts: I64  # (S + 1,) the rows that segments begin at, and N
    width: int  # coordinates per row
    ties: I64  # (N,) orders rows of equal scores
    unread: I64  # (S,) addresses of a byte for each block of rows, zero if it was read and checked …
    sizes: I64  # (S,) … and the blocks' rows; none, if all were


class Asked(NamedTuple):
    """Queries, rotated as far as they were needed until now."""

    given: F32  # (Q, D) as the encoder gives them
    panels: U16  # (P, D, 32 or 64) the axes of the rotation or the query map, as the bits of float16 or float32
    bias: F32  # (D,) or empty
    values: F32  # (Q, D), rotated up to …
    ready: I64  # (Q,) … these widths


@njit(**INNER)
def locate(table: Table, candidates: I64, rows: I64, addresses: I64) -> tuple[int, int, bool]:
    """The candidates that are rows, as others are padding, and where these begin; how many, the highest candidate, and if all were read."""
    n, highest, unread = NONE, -1 + NONE, False
    for row in candidates:
        highest = row if row > highest else highest
        if 0 <= row < table.firsts[-1]:
            segment = NONE
            while row >= table.firsts[segment + 1]:
                segment += 1
            inside = row - table.firsts[segment]
            rows[n] = row
            addresses[n] = table.bases[segment] + inside * table.width * 2
            n += 1
            if len(table.sizes):
                unread |= is_set(table.unread[segment] + inside // table.sizes[segment])  # type: ignore[call-arg]
    return n, highest, not unread


@njit(**INNER)
def rotate(asked: Asked, q: int, end: int) -> None:
    """Rotates a query on to the width `end`, or to the next that ends a panel."""
    given, value, width = asked.given[q], asked.values[q], asked.values.shape[1]
    while asked.ready[q] < end:
        panel = asked.ready[q] // ABREAST
        first, behind = panel * ABREAST, (panel + 1) * ABREAST
        behind = behind if behind < width else width
        axes, out = asked.panels[panel].ctypes.data, value[first:behind].ctypes.data
        if asked.panels.shape[2] == ABREAST:
            across_halves(axes, given.ctypes.data, len(given), out, behind - first)
        else:
            across_singles(axes, given.ctypes.data, len(given), out, behind - first)
        if len(asked.bias):
            for j in range(first, behind):
                value[j] += asked.bias[j]
        asked.ready[q] = behind


@njit(**PART)
def _ask(address: int, begin: int, end: int) -> None:
    """Asks for the lines that coordinates `begin` to `end` of a row lie in, but for the one that the step before has read from."""
    inside = LINE - 1 if begin else 0
    for byte in range(address + 2 * begin + inside & -LINE, address + 2 * end, LINE):
        fetch(byte)  # type: ignore[call-arg]


@njit(fastmath=set(SUMS), **INNER)
def read(addresses: I64, count: int, query: F32, begin: int, end: int, sums: F32, squares: F32) -> None:
    """Adds coordinates `begin` to `end` of the first `count` candidates to their inner products and squared lengths."""
    part = query.ctypes.data + 4 * begin
    for i in range(-AHEAD, count):
        if i + AHEAD < count:
            _ask(addresses[i + AHEAD], begin, end)
        if i < 0:
            continue
        found: tuple[np.float32, np.float32] = products(addresses[i] + 2 * begin, part, end - begin)  # type: ignore[call-arg]
        sums[i] += found[0]
        squares[i] += found[1]


@njit(fastmath=set(SUMS), **INNER)
def square_of(query: F32, begin: int, end: int) -> np.float32:
    """Squared length of coordinates `begin` to `end`."""
    square, part = np.float32(0.0), query[begin:end]
    for j in range(len(part)):
        square += part[j] * part[j]
    return square


@njit(**INNER)
def score(square: np.float32, count: int, sums: F32, squares: F32, scores: F32) -> None:
    """Prefix cosines of the first `count` candidates; `square` is the squared length of the query's prefix."""
    length = math.sqrt(square if square > TINY else TINY)
    for i in range(count):
        scores[i] = sums[i] / (math.sqrt(squares[i] if squares[i] > TINY else TINY) * length)
