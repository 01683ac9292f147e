"""4-bit codes, compiled by numba and cached on disk: writing them, and scoring a few rows without a scan.

A coordinate's code is its position among its levels, ascending, in four bits, two or one, from the low bits of a byte to the high ones.
"""

import numpy as np
from numba import njit

from ..types import F32, I64, U8


@njit(cache=True, nogil=True)
def encode(rows: F32, edges: F32, codes: U8) -> None:
    """Each coordinate's code: how many of its `edges` (m, 15, 3 or 1) it lies above. (n, m) -> (n, bytes), in place"""
    codes[:] = 0
    bits = 4 if edges.shape[1] == 15 else 2 if edges.shape[1] == 3 else 1
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(row)):
            above = 0
            for edge in edges[j]:
                above += row[j] > edge
            codes[i, j * bits // 8] |= above << (j * bits % 8)


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
