"""4-bit codes, compiled by numba and cached on disk: writing them, and scoring a few rows without a scan.

A coordinate's code is its position among its levels, ascending, in four bits, two or one, from the low bits of a byte to the high ones.
"""

import numpy as np
from numba import njit

from ..types import F32, I64, U8
from .descent import LANES, descend

PASSES = 4  # over the coordinates of a row, at most


@njit(cache=True, nogil=True)
def encode(rows: F32, along: F32, levels: F32, weight: float, codes: U8) -> None:
    """Each coordinate's code: a level near it, so that the row's error is small, and `weight` times smaller along a direction. (n, bytes)

    Minimises |e|² + (weight - 1) ⟨e, a⟩² over the levels (m, 16, 4 or 2) of each coordinate, where e is the error of a row and a its
    direction, of unit length: from the nearest level of each coordinate, one coordinate at a time goes one level on while that is better.
    """
    count, width = levels.shape[1], rows.shape[1]
    bits = 4 if count == 16 else 2 if count == 4 else 1
    cuts = np.empty((count - 1, width), np.float32)
    for above in range(1, count):
        for j in range(width):
            cuts[above - 1, j] = np.float32(0.5) * (levels[j, above - 1] + levels[j, above])
    row, ahead = np.zeros((width, LANES), np.float32), np.zeros((width, LANES), np.float32)
    chosen, errors = np.zeros((width, LANES), np.int32), np.zeros((width, LANES), np.float64)
    parallel, nearest = np.zeros(LANES, np.float64), np.empty(width, np.int32)
    for first in range(0, len(rows), LANES):
        held = min(LANES, len(rows) - first)
        for i in range(held):
            x, a, total = rows[first + i], along[first + i], 0.0
            nearest[:] = 0
            for above in range(count - 1):
                for j in range(width):
                    nearest[j] += x[j] > cuts[above, j]
            for j in range(width):
                error = np.float64(x[j] - levels[j, nearest[j]])
                row[j, i], ahead[j, i], chosen[j, i], errors[j, i] = x[j], a[j], nearest[j], error
                total += error * a[j]
            parallel[i] = total
        for _ in range(PASSES):
            moved = False
            for j in range(width):
                single, double = 4 * LANES * j, 8 * LANES * j
                moved |= descend(  # type: ignore[call-arg]
                    row.ctypes.data + single, ahead.ctypes.data + single, chosen.ctypes.data + single, errors.ctypes.data + double,
                    parallel.ctypes.data, levels[j].ctypes.data, count, np.float64(weight) - 1.0,
                )  # fmt: skip
            if not moved:
                break
        for i in range(held):
            code = codes[first + i]
            code[:] = 0
            for j in range(width):
                code[j * bits // 8] |= np.uint8(chosen[j, i] << (j * bits % 8))


@njit(cache=True, nogil=True)
def scores(codes: U8, rows: I64, tables: F32) -> F32:
    """Queries' scores of a row each, from their `tables` (Q, M, 16) of inner products with the centroids; -inf of row -1. (Q, n)"""
    out = np.full(rows.shape, -np.inf, np.float32)
    count = tables.shape[1]
    for q in range(len(rows)):
        table = tables[q]
        for i in range(rows.shape[1]):
            if rows[q, i] < 0:
                continue
            code = codes[rows[q, i]]
            total = np.float32(0.0)
            for j in range(0, count - 1, 2):
                total += table[j, code[j // 2] & 15] + table[j + 1, code[j // 2] >> 4]
            if count % 2:
                total += table[count - 1, code[count // 2] & 15]
            out[q, i] = total
    return out
