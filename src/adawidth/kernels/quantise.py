"""4-bit codes, compiled by numba and cached on disk: writing them, and scoring a few rows without a scan.

A coordinate's code is its position among its levels, ascending, in four bits, two or one, from the low bits of a byte to the high ones.
"""

import numpy as np
from numba import njit

from ..types import F32, I64, U8

PASSES = 4  # over the coordinates of a row, at most


@njit(cache=True, nogil=True)
def encode(rows: F32, along: F32, levels: F32, weight: float, codes: U8) -> None:
    """Each coordinate's code: a level near it, so that the row's error is small, and `weight` times smaller along a direction. (n, bytes)

    Minimises |e|² + (weight - 1) ⟨e, a⟩² over the levels (m, 16, 4 or 2) of each coordinate, where e is the error of a row and a its
    direction, of unit length: from the nearest level of each coordinate, one coordinate at a time goes one level on while that is better.
    """
    codes[:] = 0
    count, width = levels.shape[1], rows.shape[1]
    bits = 4 if count == 16 else 2 if count == 4 else 1
    extra = np.float64(weight) - 1.0
    chosen, errors = np.empty(width, np.int64), np.empty(width, np.float64)
    for i in range(len(rows)):
        parallel = 0.0
        for j in range(width):
            above = 0
            for level in range(1, count):
                above += rows[i, j] > np.float32(0.5) * (levels[j, level - 1] + levels[j, level])
            chosen[j], errors[j] = above, rows[i, j] - levels[j, above]
            parallel += errors[j] * along[i, j]
        for _ in range(PASSES):
            moved = False
            for j in range(width):
                level = chosen[j] + (1 if along[i, j] * parallel > 0 else -1)  # the one that makes the parallel error smaller
                if level < 0 or level >= count:
                    continue
                error = np.float64(rows[i, j] - levels[j, level])
                after = parallel + (error - errors[j]) * along[i, j]
                if error * error - errors[j] * errors[j] + extra * (after * after - parallel * parallel) < 0:
                    chosen[j], errors[j], parallel, moved = level, error, after, True
            if not moved:
                break
        for j in range(width):
            codes[i, j * bits // 8] |= np.uint8(chosen[j] << (j * bits % 8))


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
