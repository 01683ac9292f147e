"""How far one method is ahead of another: in nDCG@10 at equal mean width, and in width at equal nDCG@10 as the paper counts it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..evaluation.significance import mean_interval
from .methods import Measured, Pair

ANCHORS = (32, 48, 64, 128)  # widths at which the paper asks how much wider a rival must read
CLOSE = 0.01  # nDCG@10 that is not called a loss

Means = Mapping[tuple[Pair, str], Sequence[float]]  # of a pair and a method, over its widths


def margin(found: Measured, ours: str, other: str) -> dict[str, Any]:
    """Mean of ours less the other's over pairs and widths, its paired 95 % interval, by dataset and encoder, and the sign counts.

    A query is drawn with all its encoders, seeds and widths, as one.
    """
    gaps = {(pair, m): found.values(pair, ours, m) - found.values(pair, other, m) for pair in found.pairs for m in found.widths(pair)}
    by_pair = {pair: np.mean([gaps[pair, m] for m in found.widths(pair)], axis=0) for pair in found.pairs}
    clusters = found.clusters()
    groups = [np.mean([by_pair[pair] for pair in cluster], axis=0) for cluster in clusters]
    mean, low, high = mean_interval(groups, weights=[len(cluster) for cluster in clusters])
    single = {key: float(gap.mean()) for key, gap in gaps.items()}
    narrow = [gap for (pair, m), gap in single.items() if m < found.of_pair(pair, "encoder_width")]

    def by(part: int) -> dict[str, float]:
        names = dict.fromkeys(pair[part] for pair in found.pairs)
        return {name: _mean([gap for (pair, _), gap in single.items() if pair[part] == name]) for name in names}

    return {
        "method": ours,
        "against": other,
        "mean": mean,
        "low": low,
        "high": high,
        "by_dataset": by(0),
        "by_encoder": by(1),
        "ahead": sum(gap > 0 for gap in single.values()),
        "of": len(single),
        "ahead_below_full_width": sum(gap > 0 for gap in narrow),
        "of_below_full_width": len(narrow),
        "worst": min(single.values()),
    }


def across(found: Measured, ours: tuple[str, int], other: tuple[str, int]) -> dict[str, Any]:
    """One method at one width less another at another, mean over the pairs, with its paired 95 % interval."""
    clusters = found.clusters()
    groups = [np.mean([found.values(pair, *ours) - found.values(pair, *other) for pair in cluster], axis=0) for cluster in clusters]
    mean, low, high = mean_interval(groups, weights=[len(cluster) for cluster in clusters])
    return {"mean": mean, "low": low, "high": high}


def needed(widths: Sequence[int], means: Sequence[float], wanted: float) -> float:
    """The smallest width at which a curve, drawn through ln width, has reached `wanted`; infinite where it never does."""
    before: tuple[int, float] | None = None
    for m, value in zip(widths, means, strict=True):
        if value >= wanted:
            if before is None or value == before[1]:
                return float(m)
            share = (wanted - before[1]) / (value - before[1])
            return float(math.exp(math.log(before[0]) + share * (math.log(m) - math.log(before[0]))))
        before = (m, value)
    return math.inf


def ratios(found: Measured, ours: str, other: str) -> list[dict[str, Any]]:
    """At each anchor: how many times our width the other method reads to reach our nDCG@10, geometric mean over the pairs, as bounds.

    Where it never gets there it reads more than its widest point; where its narrowest is already as good, at most that. Neither is left
    out: a pair of the first kind leaves the mean open above, one of the second leaves it open below. `low` and `high` are the bounds when
    queries are drawn again (95 %).
    """
    curves = {pair: (found.curve(pair, ours), found.curve(pair, other)) for pair in found.pairs}
    entries = []
    for anchor in (m for m in ANCHORS if m in found.widths()):

        def bounds(means: Means, anchor: int = anchor) -> tuple[float, float]:
            low, high = 0.0, 0.0
            for pair, ((widths, _), (rival, _)) in curves.items():
                wanted, there = means[pair, ours][widths.index(anchor)], means[pair, other]
                width = needed(rival, there, wanted)
                low += math.log(min(width, rival[-1]) / anchor) if there[0] < wanted else -math.inf
                high += math.log(width / anchor) if math.isfinite(width) else math.inf
            return low / len(curves), high / len(curves)

        low, high = bounds(_means(found, ours, other))
        drawn = np.array([bounds(draw) for draw in found.draws((ours, other))])
        never = [pair for pair, (mine, its) in curves.items() if max(its[1]) < mine[1][mine[0].index(anchor)]]
        before = [pair for pair, (mine, its) in curves.items() if its[1][0] >= mine[1][mine[0].index(anchor)]]
        entries.append(
            {
                "width": anchor,
                "at_least": _bound(low),
                "at_most": _bound(high),
                "low": _bound(float(np.quantile(drawn[:, 0], 0.025, method="lower"))),
                "high": _bound(float(np.quantile(drawn[:, 1], 0.975, method="higher"))),
                "pairs": len(curves),
                "never": [" ".join(pair) for pair in never],
                "at_its_narrowest": [" ".join(pair) for pair in before],
            }
        )
    return entries


def _means(found: Measured, *methods: str) -> Means:
    return {(pair, method): found.curve(pair, method)[1] for pair in found.pairs for method in methods}


def _bound(logarithm: float) -> float | None:
    """A ratio from its logarithm; None where it is open."""
    return math.exp(logarithm) if math.isfinite(logarithm) else None


def saved(found: Measured, ours: str, other: str) -> dict[str, Any]:
    """The share of its coordinates that we do without at the other's own nDCG@10, mean over pairs and widths, with its 95 % interval.

    Where we never get there we are charged the full width. Our narrowest measured width is the least that counts, so this is rather too
    small than too large.
    """

    def share(means: Means) -> tuple[float, int]:
        shares, never = [], 0
        for pair in found.pairs:
            mine, its = found.curve(pair, ours)[0], found.curve(pair, other)[0]
            for m in found.widths(pair):
                width = needed(mine, means[pair, ours], means[pair, other][its.index(m)])
                never += not math.isfinite(width)
                shares.append(1 - min(width, found.of_pair(pair, "encoder_width")) / m)
        return _mean(shares), never

    mean, never = share(_means(found, ours, other))
    drawn = [share(draw)[0] for draw in found.draws((ours, other))]
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    of = sum(len(found.widths(pair)) for pair in found.pairs)
    return {"mean": mean, "low": low, "high": high, "never": never, "of": of}


def strongest(found: Measured, rivals: Sequence[str], widths: Sequence[int]) -> str:
    """The rival with the best mean over pairs and widths."""
    return max(rivals, key=lambda method: _mean([found.overall(method, m) for m in widths]))


def losses(found: Measured, ours: Sequence[str], rivals: Sequence[str]) -> list[dict[str, Any]]:
    """Pairs and widths where a rival is ahead of the better of our rows there by more than CLOSE, with its name."""
    entries = []
    for pair in found.pairs:
        for m in found.widths(pair):
            means = {method: found.mean(pair, method, m) for method in (*ours, *rivals)}
            rival = max(rivals, key=means.__getitem__)
            gap = max(means[method] for method in ours) - means[rival]
            if gap < -CLOSE:
                entries.append({"dataset": pair[0], "encoder": pair[1], "width": m, "method": rival, "gap": gap})
    return entries


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
