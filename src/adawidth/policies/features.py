"""What a router sees of a query: numbers read off the ranking that stage 1 has already made. Pure NumPy, named columns.

`order_statistics` are the paper's 18; `extended` appends our own. No label, no document and no second encoder pass is
involved. Scores are one row per query, in any order, with -inf where a query has fewer candidates than the others.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.trees import DEPTH, FLOOR, TEMPERATURE
from ..types import F64, I64, Floats

FEATURES = (
    "score_1", "score_2", "score_5", "score_10", "score_11", "score_20",
    "gap_1_2", "gap_1_10", "gap_10_11", "gap_10_15",
    "mean_10", "std_10", "mean_50", "std_50",
    "entropy", "effective", "peak", "spread",
)  # fmt: skip
EXTENDED = (
    *FEATURES,
    "gap_2_3", "gap_2_5", "gap_5_10", "least_gap",  # inside the top 10; the least is that of neighbours
    "lead", "edge",  # gap_1_2 and gap_10_11 in units of std_50
    "agreement", "same_first",  # of the rankings at half the start width and at the start width
    "intruders", "swaps", "dethroned",  # analytic churn: expected newcomers, swaps inside the top 10, rivals of the first
    "nqc", "wig", "smv",  # query performance predictors
    "tail",  # length of the query's tail
)  # fmt: skip
SCALE_FREE = ("peak", "spread", "lead", "edge", "agreement", "same_first", "intruders", "swaps", "dethroned", "nqc", "tail")

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def columns(features: str, start: int) -> I64:
    """Where the features of a named set stand among `EXTENDED` and the `start` coordinates of the query that follow them.

    Sets are "paper", "extended", "scale-free" and "query": the extended ones and the query's prefix.
    """
    names = {"paper": FEATURES, "scale-free": SCALE_FREE}.get(features, EXTENDED)
    places = [EXTENDED.index(name) for name in names]
    return np.array(places + [len(EXTENDED) + j for j in range(start if features == "query" else 0)], np.int64)


def order_statistics(scores: Floats) -> F64:
    """The paper's 18 features. (Q, C) -> (Q, 18)"""
    s = _sorted(scores, DEPTH)
    ten, fifty = s[:, :10], s[:, :50]
    logits = (fifty - fifty[:, :1]) / TEMPERATURE
    weights = np.exp(logits)
    total = weights.sum(axis=1)
    entropy = np.log(total) - (weights * logits).sum(axis=1) / total
    mean_50, std_50 = fifty.mean(axis=1), fifty.std(axis=1)
    return np.stack(
        [
            *(s[:, rank - 1] for rank in (1, 2, 5, 10, 11, 20)),
            *(s[:, a - 1] - s[:, b - 1] for a, b in ((1, 2), (1, 10), (10, 11), (10, 15))),
            ten.mean(axis=1), ten.std(axis=1), mean_50, std_50,
            entropy, np.exp(entropy),
            (s[:, 0] - mean_50) / np.maximum(std_50, FLOOR),
            s.std(axis=1) / np.maximum(np.abs(s.mean(axis=1)), FLOOR),
        ],
        axis=1,
    )  # fmt: skip


def extended(scores: Floats, half: Floats, noise: float, reference: Floats, tails: Floats) -> F64:
    """The 18 and our own. (Q, C), (Q, C), (), (Q,), (Q,) -> (Q, len(EXTENDED))

    `half`: the same candidates at half the start width; `noise`: spread of what the unread coordinates add to a score;
    `reference`: the score of the average document; `tails`: length of each query's unread part.
    """
    paper = order_statistics(scores)
    s = _sorted(scores, DEPTH)
    ten, std_50 = s[:, :10], np.maximum(paper[:, FEATURES.index("std_50")], FLOOR)
    floor = np.maximum(np.abs(np.asarray(reference, np.float64)), FLOOR)
    spread = np.sqrt(2.0) * max(noise, FLOOR)
    above = np.maximum(s[:, :20] + 1.0, FLOOR)  # SMV takes logarithms: shifted to be positive
    pairs = np.triu_indices(10, 1)
    at_start, at_half = _top(scores, 10), _top(half, 10)
    own = [
        s[:, 1] - s[:, 2], s[:, 1] - s[:, 4], s[:, 4] - s[:, 9], -np.diff(ten, axis=1).max(axis=1),
        (s[:, 0] - s[:, 1]) / std_50, (s[:, 9] - s[:, 10]) / std_50,
        (at_start[:, :, None] == at_half[:, None, :]).sum(axis=(1, 2)) / 10.0, at_start[:, 0] == at_half[:, 0],
        normal_cdf((s[:, 10:] - s[:, 9:10]) / spread).sum(axis=1),
        normal_cdf((ten[:, pairs[1]] - ten[:, pairs[0]]) / spread).sum(axis=1),
        normal_cdf((s[:, 1:] - s[:, :1]) / spread).sum(axis=1),
        s.std(axis=1) / floor,
        s[:, :5].mean(axis=1) - reference,
        (above * np.abs(np.log(above / above.mean(axis=1, keepdims=True)))).mean(axis=1) / floor,
        tails,
    ]  # fmt: skip
    return np.concatenate([paper, np.stack(own, axis=1).astype(np.float64)], axis=1)


def normal_cdf(x: F64) -> F64:
    """The standard normal distribution function."""
    return np.asarray(0.5 * _erfc(-x / math.sqrt(2.0)), np.float64)


def _sorted(scores: Floats, depth: int) -> F64:
    """The best `depth` scores, best first; short lists go on with their last score, empty ones are all zero. (Q, depth)"""
    best = -np.sort(-np.asarray(scores, np.float64), axis=1)[:, :depth]
    best = np.pad(best, ((0, 0), (0, depth - best.shape[1])), constant_values=-np.inf)
    found = np.isfinite(best).sum(axis=1)
    last = best[np.arange(len(best)), np.maximum(found - 1, 0)]
    last = np.where(found > 0, last, 0.0)
    return np.where(np.arange(depth) < found[:, None], best, last[:, None])


def _top(scores: Floats, k: int) -> I64:
    """Columns of the k best; -1 - place where there are fewer, so that gaps agree with gaps. (Q, k)"""
    order = np.argsort(-np.asarray(scores, np.float64), axis=1, kind="stable")[:, :k]
    order = np.pad(order, ((0, 0), (0, k - order.shape[1])))
    found = np.isfinite(scores).sum(axis=1)
    return np.where(np.arange(k) < found[:, None], order, -1 - np.arange(k)).astype(np.int64)
