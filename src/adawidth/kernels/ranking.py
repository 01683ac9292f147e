"""Ranking candidates: by score, then by `ties`, which says how trec_eval orders equal scores."""

import numpy as np
from numba import njit

from ..types import F32, I64
from .options import INNER, NONE, PART


@njit(**INNER)
def _sink(heap: F32, size: int, root: int) -> None:
    """Restores a heap whose root is the smallest number."""
    number = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= number:
            break
        heap[root] = heap[child]
        root = child
    heap[root] = number


@njit(**INNER)
def kth(numbers: F32, count: int, k: int, heap: F32) -> np.float32:
    """The k-th largest of the first `count` numbers, at least k; `heap` is room for the k largest so far."""
    for i in range(k):
        heap[i] = numbers[i]
    for root in range(k // 2 - 1, -1, -1):
        _sink(heap, k, root)
    for i in range(k, count):
        if numbers[i] > heap[0]:
            heap[0] = numbers[i]
            _sink(heap, k, NONE)
    return heap[0]


@njit(**INNER)
def _before(a: int, b: int, scores: F32, rows: I64, ties: I64) -> bool:
    """Whether candidate a is ranked before b: by score, then as trec_eval orders equal ones."""
    if scores[a] != scores[b]:
        return scores[a] > scores[b]
    return ties[rows[a]] < ties[rows[b]]


@njit(**INNER)
def _sift_down(heap: I64, root: int, size: int, scores: F32, rows: I64, ties: I64) -> None:
    """Restores a heap whose root is the candidate ranked last."""
    entry = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child], heap[child + 1], scores, rows, ties):
            child += 1
        if not _before(entry, heap[child], scores, rows, ties):
            break
        heap[root] = heap[child]
        root = child
    heap[root] = entry


@njit(**INNER)
def rank(order: I64, count: int, k: int, scores: F32, rows: I64, ties: I64) -> None:
    """Brings the k best of the first `count` to the front, best first; the others stay in any order."""
    k = k if k < count else count
    for root in range(k // 2 - 1, -1, -1):
        _sift_down(order, root, k, scores, rows, ties)
    for i in range(k, count):
        if _before(order[i], order[0], scores, rows, ties):
            order[0], order[i] = order[i], order[0]
            _sift_down(order, NONE, k, scores, rows, ties)
    for size in range(k - 1, 0, -1):
        order[0], order[size] = order[size], order[0]
        _sift_down(order, NONE, size, scores, rows, ties)


@njit(**PART)
def write(order: I64, count: int, rows: I64, scores: F32, begin: int, found_rows: I64, found_scores: F32) -> None:
    """Writes `count` ranked candidates into an answer, from position `begin` on, as many as fit."""
    for i in range(len(found_rows) - begin):
        if i < count:
            found_rows[begin + i] = rows[order[i]]
            found_scores[begin + i] = scores[order[i]]


@njit(**PART)
def clear(begin: int, found_rows: I64, found_scores: F32) -> None:
    """Says that an answer has nothing from position `begin` on."""
    for i in range(begin, len(found_rows)):
        found_rows[i], found_scores[i] = -1, -np.inf
