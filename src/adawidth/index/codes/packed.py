"""Codes and filters as the scan reads them: 64 rows side by side."""

from __future__ import annotations

import numpy as np

from ...kernels.lookup import TOGETHER, UNROLLED
from ...types import U8, U64, Mask

ALL = np.empty(0, np.uint64)  # no filter


def even(size: int) -> int:
    """Bytes of a row as the scan reads them: an even number."""
    return -(-size // UNROLLED) * UNROLLED


def packed(codes: U8) -> U8:
    """Codes of an even number of bytes, 64 rows side by side; zeros behind the last. (N, bytes) -> (blocks, bytes, 64)"""
    blocks, width = -(-len(codes) // TOGETHER), even(codes.shape[1])
    out = np.zeros((blocks, width, TOGETHER), np.uint8)
    whole = len(codes) // TOGETHER
    out[:whole, : codes.shape[1]] = codes[: whole * TOGETHER].reshape(whole, TOGETHER, codes.shape[1]).swapaxes(1, 2)
    for i, code in enumerate(codes[whole * TOGETHER :]):
        out[whole, : len(code), i] = code
    return out


def bits_of(allowed: Mask) -> U64:
    """A bit for each place. (N,) -> (blocks,)"""
    held = np.zeros(-(-len(allowed) // TOGETHER) * TOGETHER // 8, np.uint8)
    some = np.packbits(allowed, bitorder="little")
    held[: len(some)] = some
    return held.view("<u8").astype(np.uint64, copy=False)
