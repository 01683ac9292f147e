"""Whether a difference between two ways of answering the same queries is more than chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
AT_ONCE = 4_000_000  # drawn numbers held at a time


def paired_bootstrap(
    a: NDArray[np.float64], b: NDArray[np.float64], samples: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """Mean of a - b over queries, and the ends of its 95 % interval when the queries are drawn again. (Q,), (Q,)"""
    difference = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    if difference.ndim != 1 or not len(difference):
        return 0.0, 0.0, 0.0
    rng, means = np.random.default_rng(seed), np.empty(samples)
    step = max(1, AT_ONCE // len(difference))
    for first in range(0, samples, step):
        part = slice(first, min(first + step, samples))
        means[part] = difference[rng.integers(len(difference), size=(part.stop - part.start, len(difference)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(difference.mean()), float(low), float(high)
