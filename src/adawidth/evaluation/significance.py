"""Whether a difference between two ways of answering the same queries is more than chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..types import F64

CONFIDENCE = 0.95
AT_ONCE = 4_000_000  # drawn numbers held at a time


def paired_bootstrap(a: F64, b: F64, samples: int = 10_000, seed: int = 0) -> tuple[float, float, float]:
    """Mean of a - b over queries, and the ends of its 95 % interval when the queries are drawn again. (Q,), (Q,)"""
    return mean_interval([np.asarray(a, np.float64) - np.asarray(b, np.float64)], samples, seed)


def mean_interval(
    groups: Sequence[F64], samples: int = 10_000, seed: int = 0, *, weights: Sequence[float] | None = None
) -> tuple[float, float, float]:
    """The mean of the groups' means, weighed alike or by `weights`, and its 95 % interval when each group's values are drawn again.

    Values that belong together, as one query's under several encoders and seeds do, must be averaged into one value first.
    """
    if not groups or any(group.ndim != 1 or not len(group) for group in groups):
        return 0.0, 0.0, 0.0
    shares = np.ones(len(groups)) if weights is None else np.asarray(weights, np.float64)
    shares = shares / shares.sum()
    rng, means = np.random.default_rng(seed), np.zeros(samples)
    for share, group in zip(shares.tolist(), groups, strict=True):
        step = max(1, AT_ONCE // len(group))
        for first in range(0, samples, step):
            part = slice(first, min(first + step, samples))
            means[part] += share * group[rng.integers(len(group), size=(part.stop - part.start, len(group)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(shares @ [group.mean() for group in groups]), float(low), float(high)
