"""Selecting the largest of some numbers, compiled by numba and cached on disk."""

from numba import njit

from ..types import I64
from .options import INNER


@njit(**INNER)
def reached_by(numbers: I64, k: int) -> int:
    """A number that exactly k of some numbers, which all differ, reach: found by bisection, as counting needs no branch to predict."""
    low, high = numbers[0], numbers[0]
    for number in numbers:
        low, high = min(low, number), max(high, number)
    while low < high:
        middle = (low | high) - ((low ^ high) >> 1)  # rounded up; the difference of the two might overflow
        count = 0
        for number in numbers:
            count += number >= middle
        if count >= k:
            low = middle
        if count == k:
            break
        if count < k:
            high = middle - 1
    return low


@njit(**INNER)
def front(numbers: I64, n: int, k: int) -> int:
    """Brings the k largest of the first n numbers, which all differ, to the front, in their order; a number that only these reach.

    The others are not kept.
    """
    least, count = reached_by(numbers[:n], k), 0
    for i in range(n):
        number = numbers[i]
        numbers[count] = number
        count += number >= least
    return least
