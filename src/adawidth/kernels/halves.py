"""Rows of float16: reading them, and the lengths of their prefixes. numba has no float16, so it gets their bits."""

import numpy as np
from numba import njit

from ..types import F32, F64, I64, U16
from .float16 import SUMS, widen

SHORTEST = 1e-12  # no prefix counts as shorter


@njit(cache=True, nogil=True, fastmath=set(SUMS), error_model="numpy")
def unit_rows(bits: U16, rows: F32) -> None:
    """Writes rows of float16 as float32 of length one, the same bits for equal rows; a zero row stays zero. (n, m), (n, m)"""
    for i in range(len(rows)):
        row = rows[i]
        widen(bits[i].ctypes.data, row.ctypes.data, len(row))  # type: ignore[call-arg]
        squares = 0.0  # whose sum is exact, see below
        for j in range(len(row)):
            squares += np.float64(row[j] * row[j])
        inverse = np.float32(1.0 / max(np.sqrt(squares), SHORTEST))
        for j in range(len(row)):
            row[j] *= inverse


@njit(cache=True, nogil=True, fastmath=set(SUMS), error_model="numpy")
def measure_rows(bits: U16, ladder: I64, inverse: F32, total: F64) -> None:
    """Writes one over the length of every row's prefix at each width of the ladder, and adds the rows to `total`.

    Of shapes (n, m), (W,), (n, W), (m,). A square of a float16 number is a multiple of 2⁻⁴⁸, so float64 holds the sums for rows of
    unit length, in whatever order they are added up.
    """
    row = np.empty(len(total), np.float32)
    for i in range(len(bits)):
        widen(bits[i].ctypes.data, row.ctypes.data, len(row))  # type: ignore[call-arg]
        squares, begin = 0.0, 0
        for place, end in enumerate(ladder):
            part = row[begin:end]
            for j in range(len(part)):
                squares += np.float64(part[j] * part[j])
            inverse[i, place], begin = 1.0 / max(np.sqrt(squares), SHORTEST), end
        for j in range(len(row)):
            total[j] += row[j]
