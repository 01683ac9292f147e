"""Routing one query in microseconds, compiled by numba and cached on disk: the paper's features and the walk through trees.

Both equal their plain counterparts to 1e-6: `policies.features.order_statistics`, and LightGBM's raw scores on the same features.
"""

import numpy as np
from numba import njit

from ..types import F32, F64, I32

TEMPERATURE = 0.05  # of the softmax behind the entropy; the contrastive loss has the same
FLOOR = 1e-9  # denominators are never smaller
DEPTH = 100  # order statistics look no deeper


@njit(cache=True, nogil=True)
def _best(scores: F32, best: F64) -> None:
    """The DEPTH best scores, best first, padded with the last one (0 where there is none). Sorts only what is not sorted."""
    n = len(scores)
    ordered = True
    for i in range(1, n):
        if scores[i] > scores[i - 1]:
            ordered = False
            break
    source = scores if ordered else np.sort(scores)[::-1]
    last = 0.0
    for i in range(DEPTH):
        if i < n and source[i] > -np.inf:
            last = source[i]
        best[i] = last


@njit(cache=True, nogil=True)
def _mean_std(s: F64, k: int) -> tuple[float, float]:
    """Mean and population standard deviation of the first k."""
    mean = 0.0
    for i in range(k):
        mean += s[i]
    mean /= k
    square = 0.0
    for i in range(k):
        square += (s[i] - mean) ** 2
    return mean, np.sqrt(square / k)


@njit(cache=True, nogil=True)
def query_features(scores: F32, out: F64) -> None:
    """The paper's 18 features of one query's stage-1 scores, into `out`. (C,), (18,)"""
    s = np.empty(DEPTH, np.float64)
    _best(scores, s)
    mean_10, std_10 = _mean_std(s, 10)
    mean_50, std_50 = _mean_std(s, 50)
    mean_100, std_100 = _mean_std(s, DEPTH)
    total = 0.0
    weighted = 0.0
    for i in range(50):
        logit = (s[i] - s[0]) / TEMPERATURE
        weight = np.exp(logit)
        total += weight
        weighted += weight * logit
    entropy = np.log(total) - weighted / total
    out[0], out[1], out[2], out[3], out[4], out[5] = s[0], s[1], s[4], s[9], s[10], s[19]
    out[6], out[7], out[8], out[9] = s[0] - s[1], s[0] - s[9], s[9] - s[10], s[9] - s[14]
    out[10], out[11], out[12], out[13] = mean_10, std_10, mean_50, std_50
    out[14], out[15] = entropy, np.exp(entropy)
    out[16] = (s[0] - mean_50) / max(std_50, FLOOR)
    out[17] = std_100 / max(abs(mean_100), FLOOR)


@njit(cache=True, nogil=True)
def batch_features(scores: F32) -> F64:
    """The paper's 18 features of every query. (Q, C) -> (Q, 18)"""
    out = np.empty((len(scores), 18), np.float64)
    for q in range(len(scores)):
        query_features(scores[q], out[q])
    return out


@njit(cache=True, nogil=True, inline="always")
def _step(x: F64, node: np.int32, feature: I32, threshold: F64, children: I32) -> np.int32:
    """The child that x goes to; a leaf is its own child."""
    below: np.int32 = children[node, np.int32(x[feature[node]] > threshold[node])]
    return below


@njit(cache=True, nogil=True)
def walk(x: F64, feature: I32, threshold: F64, children: I32, value: F64, roots: I32, depths: I32) -> float:
    """The sum of every tree's leaf value at x. (F,) -> ()

    At most threshold[n] goes from node n to children[n, 0], above it to children[n, 1]; a leaf has itself for children.
    Four trees walk side by side and no branch depends on x, which keeps the processor from guessing wrong.
    """
    total = 0.0
    trees = len(roots)
    tree = 0
    while tree + 4 <= trees:
        a, b, c, d = roots[tree], roots[tree + 1], roots[tree + 2], roots[tree + 3]
        for _ in range(max(max(depths[tree], depths[tree + 1]), max(depths[tree + 2], depths[tree + 3]))):
            a = _step(x, a, feature, threshold, children)
            b = _step(x, b, feature, threshold, children)
            c = _step(x, c, feature, threshold, children)
            d = _step(x, d, feature, threshold, children)
        total += value[a] + value[b] + value[c] + value[d]
        tree += 4
    while tree < trees:
        a = roots[tree]
        for _ in range(depths[tree]):
            a = _step(x, a, feature, threshold, children)
        total += value[a]
        tree += 1
    return total


@njit(cache=True, nogil=True)
def predict(x: F64, feature: I32, threshold: F64, children: I32, value: F64, roots: I32, depths: I32) -> F64:
    """The sum of leaf values for every row. (Q, F) -> (Q,)"""
    out = np.empty(len(x), np.float64)
    for q in range(len(x)):
        out[q] = walk(x[q], feature, threshold, children, value, roots, depths)
    return out


@njit(cache=True, nogil=True)
def route(scores: F32, feature: I32, threshold: F64, children: I32, value: F64, roots: I32, depths: I32) -> float:
    """One query from its stage-1 scores to the trees' score: the paper's features and the walk. (C,) -> ()"""
    x = np.empty(18, np.float64)
    query_features(scores, x)
    return walk(x, feature, threshold, children, value, roots, depths)
