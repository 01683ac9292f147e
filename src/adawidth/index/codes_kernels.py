"""Four-bit codes, compiled by numba and cached on disk: writing them, and scoring a few rows without a scan.

Coordinate j of a row is coded by its place among levels[j] (m, 16), ascending. A byte holds two codes, the first in its low bits.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


@njit(cache=True, nogil=True)
def encode(rows: F32, edges: F32, codes: U8) -> None:
    """Each coordinate's code: how many of its 15 `edges` (m, 15) it lies above. (n, m) -> (n, (m + 1) // 2), in place"""
    codes[:] = 0
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(row)):
            above = 0
            for edge in edges[j]:
                above += row[j] > edge
            codes[i, j // 2] |= above << (4 * (j % 2))


@njit(cache=True, nogil=True)
def scores(codes: U8, rows: I64, table: F32) -> F32:
    """What one query's `table` (m, 16) of products with the levels adds up to for these rows. (n,)"""
    out = np.empty(len(rows), np.float32)
    width = len(table)
    for i in range(len(rows)):
        code = codes[rows[i]]
        total = np.float32(0.0)
        for j in range(0, width - 1, 2):
            total += table[j, code[j // 2] & 15] + table[j + 1, code[j // 2] >> 4]
        if width % 2:
            total += table[width - 1, code[width // 2] & 15]
        out[i] = total
    return out
