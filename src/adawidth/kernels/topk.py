"""The k best of every row, with a rule for equal scores."""

import numpy as np
from numba import njit

from ..types import F32, I64


@njit(cache=True, nogil=True, inline="always")
def _worse(score: float, rank: int, other_score: float, other_rank: int) -> bool:
    """Whether the first comes after the second: lower score, or equal and later among equal scores."""
    return score < other_score or (score == other_score and rank > other_rank)


@njit(cache=True, nogil=True)
def _sift_down(heap: I64, scores: F32, ranks: I64, place: int, size: int) -> None:
    """Restores a heap whose root is the worst entry, from `place` down."""
    entry = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _worse(scores[heap[right]], ranks[heap[right]], scores[heap[child]], ranks[heap[child]]):
            child = right
        if not _worse(scores[heap[child]], ranks[heap[child]], scores[entry], ranks[entry]):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = entry


@njit(cache=True, nogil=True)
def top_k(scores: F32, ranks: I64, k: int) -> I64:
    """Columns of the k best of every row, best first; equal scores by `ranks`. (Q, N) -> (Q, min(k, N))"""
    queries, n = scores.shape
    k = max(0, min(k, n))
    out = np.empty((queries, k), np.int64)
    if k == 0:
        return out
    for q in range(queries):
        row, heap = scores[q], out[q]
        for i in range(k):
            heap[i] = i
        for place in range(k // 2 - 1, -1, -1):
            _sift_down(heap, row, ranks, place, k)
        for i in range(k, n):
            if not _worse(row[i], ranks[i], row[heap[0]], ranks[heap[0]]):
                heap[0] = i
                _sift_down(heap, row, ranks, 0, k)
        for size in range(k - 1, 0, -1):  # heap sort: the worst goes last
            heap[0], heap[size] = heap[size], heap[0]
            _sift_down(heap, row, ranks, 0, size)
    return out
