"""Extends partial sums by the coordinates not yet read, for the candidates that are kept."""

import numpy as np
from numba import njit

from ..types import F32, I64, Mask


@njit(cache=True, nogil=True, fastmath=True)
def inner_products(rows: F32, query: F32, sums: F32) -> None:
    """Adds the inner product of every row with a query, summed in one order for all of them, in place. (n, m), (m,), (n,)"""
    for i in range(len(rows)):
        row, total = rows[i], np.float32(0.0)
        for j in range(len(query)):
            total += query[j] * row[j]
        sums[i] += total


@njit(cache=True, nogil=True, fastmath=True)
def extend(queries: F32, rows: F32, candidates: I64, keep: Mask, begin: I64, end: I64, sums: F32) -> None:
    """Adds coordinates begin[q] to end[q] to the partial sums of the kept candidates, in place. (Q, D), (N, D), (Q, C) …"""
    for q in range(len(queries)):
        a, b = begin[q], end[q]
        if b <= a:
            continue
        query = queries[q, a:b]
        for c in range(candidates.shape[1]):
            if keep[q, c]:
                row = rows[candidates[q, c], a:b]
                total = np.float32(0.0)
                for j in range(b - a):
                    total += query[j] * row[j]
                sums[q, c] += total
