"""How far one method is ahead of another: in nDCG@10 at equal mean width, and in width at equal nDCG@10 as the paper counts it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np

from ..evaluation.significance import mean_interval
from .methods import Measured

ANCHORS = (32, 48, 64, 128)  # widths at which the paper asks how much wider a rival must read
CLOSE = 0.01  # nDCG@10 that is not called a loss


def margin(found: Measured, ours: str, other: str) -> dict[str, Any]:
    """Mean of ours less the other's over pairs and widths, its paired 95 % interval, by dataset and encoder, and the sign counts."""
    gaps = {(pair, m): found.values(pair, ours, m) - found.values(pair, other, m) for pair in found.pairs for m in found.widths(pair)}
    by_pair = [np.mean([gaps[pair, m] for m in found.widths(pair)], axis=0) for pair in found.pairs]
    mean, low, high = mean_interval(by_pair)
    single = {key: float(gap.mean()) for key, gap in gaps.items()}

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
        "worst": min(single.values()),
    }


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
    """At each anchor: how many times our width the other method reads to reach our nDCG@10, geometric mean over the pairs.

    A pair where it never does is censored: it has no ratio, so it is counted and not averaged.
    """
    entries = []
    for anchor in (m for m in ANCHORS if m in found.widths()):
        all_ratios = {pair: needed(*found.curve(pair, other), found.mean(pair, ours, anchor)) / anchor for pair in found.pairs}
        reached = [ratio for ratio in all_ratios.values() if math.isfinite(ratio)]
        entries.append(
            {
                "width": anchor,
                "ratio": geometric_mean(reached) if reached else None,
                "pairs": len(reached),
                "censored": [" ".join(pair) for pair, ratio in all_ratios.items() if not math.isfinite(ratio)],
            }
        )
    return entries


def saved(found: Measured, ours: str, other: str) -> float | None:
    """The share of its coordinates that we do without at the other's own nDCG@10, mean over pairs and widths.

    Operating points that we never reach are left out; None where we reach none. Our narrowest measured width is
    the least that counts, so this is rather too small than too large.
    """
    shares = []
    for pair in found.pairs:
        widths, means = found.curve(pair, ours)
        for m in found.widths(pair):
            width = needed(widths, means, found.mean(pair, other, m))
            if math.isfinite(width):
                shares.append(1 - max(width, widths[0]) / m)
    return _mean(shares) if shares else None


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
