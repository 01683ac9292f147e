"""Selecting the largest of some numbers, compiled by numba and cached on disk."""

from numba import njit

from ..types import I64
from .options import INNER, PART


@njit(**PART)
def kth_largest(numbers: I64, n: int, k: int) -> int:
    """The k-th largest of the first n numbers: found by bisection, as counting needs no branch to predict."""
    low, high = numbers[0], numbers[0]
    for i in range(n):  # by index, which becomes vector code
        low, high = numbers[i] if numbers[i] < low else low, numbers[i] if numbers[i] > high else high
    largest = high
    while low < high:
        middle = (low | high) - ((low ^ high) >> 1)  # rounded up; the difference of the two might overflow
        count = 0
        for i in range(n):
            count += numbers[i] >= middle
        if count >= k:
            low = middle
        if count == k:
            break
        if count < k:
            high = middle - 1
    for i in range(n):  # k of them reach `low`, which may lie between two
        largest = numbers[i] if low <= numbers[i] < largest else largest
    return largest


@njit(**INNER)
def front(numbers: I64, n: int, k: int) -> int:
    """Brings the k largest of the first n numbers, which all differ, to the front, in their order; the k-th largest.

    The others are not kept.
    """
    least, count = kth_largest(numbers, n, k), 0
    for i in range(n):
        number = numbers[i]
        numbers[count] = number
        count += number >= least
    return least
