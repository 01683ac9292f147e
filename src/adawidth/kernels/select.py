"""Selecting the largest of some numbers, compiled by numba and cached on disk."""

from typing import Any

from numba import njit

from .options import INNER


@njit(**INNER)
def front(numbers: Any, n: int, k: int) -> Any:
    """Brings the k largest of the first n numbers to the front, in any order; the least of them."""
    low, high = 0, n - 1
    while low < high:
        a, b, c = numbers[low], numbers[(low + high) >> 1], numbers[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while numbers[i] > pivot:
                i += 1
            while numbers[j] < pivot:
                j -= 1
            if i <= j:
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return numbers[k - 1]
