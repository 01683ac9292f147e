"""Codes and filters as the scan reads them: 64 rows side by side."""

from __future__ import annotations

import numpy as np

from ...kernels import scan
from ...kernels.lookup import TOGETHER, UNROLLED
from ...types import U8, U64, Mask, Rows

ALL = np.empty(0, np.uint64)  # no filter


def packed(codes: U8, rows: Rows) -> U8:
    """The codes of these rows (-1 leaves a place free), of an even number of bytes. (N, bytes) -> (blocks, bytes, 64)"""
    blocks, width = -(-len(rows) // TOGETHER), -(-codes.shape[1] // UNROLLED) * UNROLLED
    out = np.empty((blocks, width, TOGETHER), np.uint8)
    scan.pack(np.ascontiguousarray(codes), np.ascontiguousarray(rows, np.int64), out)
    return out


def bits_of(allowed: Mask) -> U64:
    """A bit for each place. (N,) -> (blocks,)"""
    held = np.zeros(-(-len(allowed) // TOGETHER) * TOGETHER // 8, np.uint8)
    some = np.packbits(allowed, bitorder="little")
    held[: len(some)] = some
    return held.view("<u8").astype(np.uint64, copy=False)
