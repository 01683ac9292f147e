"""Codes and filters as the scan reads them: 64 rows side by side."""

from __future__ import annotations

import numpy as np

from ...data import BLOCK
from ...kernels.lookup import TOGETHER, UNROLLED
from ...types import I32, U8, U64, Mask, Rows

ALL = np.empty(0, np.uint64)  # no filter


def even(size: int) -> int:
    """Bytes of a row as the scan reads them: an even number."""
    return -(-size // UNROLLED) * UNROLLED


def packed(codes: U8, rows: Rows | I32 | None = None) -> U8:
    """Codes of an even number of bytes, 64 rows side by side; zeros behind the last. (N, bytes) -> (blocks, bytes, 64)

    `rows` says which row is in each place, in whole blocks; -1 where any codes will do.
    """
    count = len(codes) if rows is None else len(rows)
    out = np.zeros((-(-count // TOGETHER), even(codes.shape[1]), TOGETHER), np.uint8)
    for start in range(0, count, BLOCK):
        some = codes[start : start + BLOCK] if rows is None else codes[rows[start : start + BLOCK]]
        whole, first = len(some) // TOGETHER, start // TOGETHER
        out[first : first + whole, : codes.shape[1]] = some[: whole * TOGETHER].reshape(whole, TOGETHER, codes.shape[1]).swapaxes(1, 2)
        for i, code in enumerate(some[whole * TOGETHER :]):
            out[first + whole, : len(code), i] = code
    return out


def bits_of(allowed: Mask) -> U64:
    """A bit for each place. (N,) -> (blocks,)"""
    held = np.zeros(-(-len(allowed) // TOGETHER) * TOGETHER // 8, np.uint8)
    some = np.packbits(allowed, bitorder="little")
    held[: len(some)] = some
    return held.view("<u8").astype(np.uint64, copy=False)
