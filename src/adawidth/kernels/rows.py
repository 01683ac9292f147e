"""Candidates' rows and the queries they are compared with: where rows lie, how far queries are rotated, and prefix cosines.

Rows are float16 and lie in one array per segment, so a kernel gets addresses.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ..types import F32, I64, U16
from .float16 import SUMS, fetch, products
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


class Asked(NamedTuple):
    """Queries, rotated as far as they were needed until now."""

    given: F32  # (Q, D) as the encoder gives them
    matrix: F32  # (D, D) of the rotation or the query map
    half: U16  # the bits of its float16 copy, which is read instead; or empty
    bias: F32  # (D,) or empty
    values: F32  # (Q, D), rotated up to …
    ready: I64  # (Q,) … these widths


@njit(**INNER)
def locate(table: Table, candidates: I64, rows: I64, addresses: I64) -> tuple[int, int]:
    """The candidates that are rows, as others are padding, and where these begin; how many there are, and the highest candidate."""
    n, highest = NONE, -1 + NONE
    for row in candidates:
        highest = row if row > highest else highest
        if 0 <= row < table.firsts[-1]:
            segment = NONE
            while row >= table.firsts[segment + 1]:
                segment += 1
            rows[n] = row
            addresses[n] = table.bases[segment] + (row - table.firsts[segment]) * table.width * 2
            n += 1
    return n, highest


@njit(fastmath=True, **INNER)
def rotate(asked: Asked, q: int, end: int) -> None:
    """Rotates a query on to the width `end`."""
    given, value = asked.given[q], asked.values[q]
    for j in range(asked.ready[q], end):
        total = np.float32(0.0)
        if len(asked.half):
            total += products(asked.half.ctypes.data + 2 * j * len(given), given.ctypes.data, len(given))[0]  # type: ignore[call-arg]
        else:
            axis = asked.matrix[j]
            for i in range(len(given)):
                total += axis[i] * given[i]
        value[j] = total + asked.bias[j] if len(asked.bias) else total
    if asked.ready[q] < end:
        asked.ready[q] = end


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
