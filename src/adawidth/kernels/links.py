"""Linking rows to near neighbours, compiled by numba: of the nearest rows each keeps those that lie in different directions.

A neighbour is passed over if it lies nearer to one that is kept already than to the row itself, since a walk gets there through that
one (the rule of relative neighbourhood graphs, as in HNSW, NSG and DiskANN). Rows have length one.
"""

import numpy as np
from numba import njit

from ..types import F32, I32, I64
from .options import ENTRY, INNER, NONE

APART = 1.05  # times as far from a kept neighbour, by the squared distance, as a neighbour may be from the row


@njit(fastmath={"reassoc", "contract", "nsz"}, **INNER)
def _distance(a: F32, b: F32) -> np.float32:
    """Squared."""
    product = np.float32(0.0)
    for j in range(len(a)):
        product += a[j] * b[j]
    return np.float32(2.0) - np.float32(2.0) * product


@njit(**INNER)
def _diverse(block: F32, row: int, some: I64, links: I32) -> int:
    """Links a row to some rows, the nearest first: to those that lie apart, then to those passed over; how many of them lie apart."""
    far, n = np.empty(len(some), np.float32), NONE
    for other in some:
        if other != row:
            some[n], far[n] = other, _distance(block[row], block[other])
            n += 1
    order = np.argsort(far[:n])
    passed, kept = np.empty(n, np.int64), NONE
    skipped = NONE
    for place in order:
        other, near = some[place], True
        if kept == len(links):
            break
        for i in range(kept):
            if np.float32(APART) * _distance(block[other], block[links[i]]) < far[place]:
                near = False
                break
        if near:
            links[kept] = other
            kept += 1
        else:
            passed[skipped] = other
            skipped += 1
    links[kept:] = -1
    for i in range(min(skipped, len(links) - kept)):
        links[kept + i] = passed[i]
    return kept


@njit(**ENTRY)
def link(block: F32, first: int, near: I64, links: I32, kept: I64) -> None:
    """Links rows from `first` on to those near them that lie apart, and notes how many these are. (N, m), (n, p) -> (N, 32), (N,)"""
    for i in range(len(near)):
        kept[first + i] = _diverse(block, first + i, near[i].copy(), links[first + i])


@njit(**ENTRY)
def reverse(links: I32, kept: I64, ends: I64, sources: I32) -> None:
    """Who keeps each row: those that keep row i end at `ends[i]` in `sources`. (N, 32), (N,) -> (N,), (kept,)"""
    ends[:] = 0
    for row in range(len(links)):
        for i in range(kept[row]):
            ends[links[row, i]] += 1
    total = NONE
    for row in range(len(ends)):
        total += ends[row]
        ends[row] = total - ends[row]  # where they begin
    for row in range(len(links)):
        for i in range(kept[row]):
            other = links[row, i]
            sources[ends[other]] = row
            ends[other] += 1


@njit(**ENTRY)
def relink(block: F32, first: int, links: I32, ends: I64, sources: I32, out: I32) -> None:
    """Links rows from `first` on anew, among those that keep them too. (N, m), (N, 32) -> (n, 32)"""
    for i in range(len(out)):
        row = first + i
        begin = ends[row - 1] if row else NONE
        own = links[row][links[row] >= 0].astype(np.int64)
        some = np.unique(np.concatenate((own, sources[begin : ends[row]].astype(np.int64))))
        _diverse(block, row, some, out[i])
