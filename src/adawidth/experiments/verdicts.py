"""The rules by which a claim of the paper holds, holds in part, does not hold, or is not shown.

Every rule asks what the data allow at the ends of a 95 % interval: a claim that both ends confirm holds, one that both deny does not,
and one that they disagree about is not shown. A rule that reads queries is given those whose documents no label named.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..types import F64
from .base import OPENINGS, Claim, Outcome, Verdict
from .margins import margin
from .methods import Measured

HOLDS: Outcome = "holds"
IN_PART: Outcome = "holds in part"
FAILS: Outcome = "does not hold"
OPEN: Outcome = "not shown"
TAIL = 20  # widths above the median that a tail can be told from
Z = 1.96


def judged(claims: Sequence[Claim], *sentences: str) -> Verdict:
    """The claims together: the paragraph opens with the verdict, goes through them and ends with what else is to be said."""
    whole = together([claim.verdict for claim in claims])
    told = [f"{claim.says} (the paper: {claim.paper}): {claim.here}; {claim.data}: {claim.verdict}." for claim in claims]
    return Verdict(whole == HOLDS, " ".join([OPENINGS[whole], *told, *sentences]), tuple(claims))


def above(low: float | None, high: float | None, bar: float = 0.0) -> Outcome:
    """A quantity is said to be above a bar; it lies between `low` and `high`, where None is open."""
    if low is not None and low > bar:
        return HOLDS
    return FAILS if high is not None and high <= bar else OPEN


def within(entries: Sequence[tuple[float, float]], most: float) -> Outcome:
    """Differences are said to be at most so large, either way: intervals inside confirm it, one that is wholly outside denies it."""
    if any(low > most or high < -most for low, high in entries):
        return FAILS
    return HOLDS if entries and all(-most <= low and high <= most for low, high in entries) else OPEN


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """A claim that is made of several: it holds if all do, in part if some do, and fails if none does and one fails.

    If more than half of them are not shown, neither is the claim.
    """
    if 2 * outcomes.count(OPEN) > len(outcomes) or not outcomes:
        return OPEN
    if set(outcomes) == {HOLDS}:
        return HOLDS
    return IN_PART if HOLDS in outcomes or IN_PART in outcomes else FAILS


def ahead(found: Measured, ours: str, rivals: Sequence[str]) -> tuple[Outcome, list[dict[str, Any]]]:
    """One method is ahead of each of the others, on average over pairs and widths."""
    entries = [margin(found, ours, rival) for rival in rivals]
    return together([above(entry["low"], entry["high"]) for entry in entries]), entries


def nearly_everywhere(entries: Sequence[dict[str, Any]], share: float = 0.9) -> Outcome:
    """It is ahead at nearly every operating point below full width, at nine of ten, against each rival; counts have no interval."""
    counts = [(entry["ahead_below_full_width"], entry["of_below_full_width"]) for entry in entries]
    return together([HOLDS if count >= share * of else FAILS for count, of in counts])


def flat(found: Measured, methods: Sequence[str], most: float) -> tuple[Outcome, tuple[float, str, str]]:
    """No two of the methods differ by more than so much; with the largest difference and the two that have it."""
    entries = {pair: margin(found, *pair) for pair in combinations(methods, 2)}
    (best, worst), largest = max(entries.items(), key=lambda item: abs(item[1]["mean"]))
    if largest["mean"] < 0:
        best, worst = worst, best
    outcome = within([(entry["low"], entry["high"]) for entry in entries.values()], most)
    return outcome, (abs(largest["mean"]), best, worst)


def ratio(entry: dict[str, Any], paper: float) -> Outcome:
    """A rival reads at least so many times our width, as the paper says, by the bounds on it."""
    return above(entry["low"], entry["high"], paper * (1 - 1e-9))


def law(r2: float | None, missed: float | None, known: float, good: float = 0.9, most: float = 0.1) -> Outcome:
    """Required widths follow the law: R² of a fit that takes censored cells as bounds, the error on the largest corpus when it is
    left out, and the share of finite cells. Too few finite cells show nothing, whatever the R².
    """
    if r2 is None or known < 0.5:
        return OPEN
    if r2 <= good:
        return FAILS
    if missed is None:
        return OPEN
    return HOLDS if missed <= most else IN_PART


def spread(widths: F64, most: float = 2.0, samples: int = 1_000, seed: int = 0) -> tuple[Outcome, tuple[float, float, float]]:
    """Queries differ: among those with a stable hit the .9 quantile is at least so many times the median. With the ratio's interval."""
    known = widths[np.isfinite(widths)]
    if len(known) < TAIL:
        return OPEN, (float("nan"), float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    drawn = known[rng.integers(len(known), size=(samples, len(known)))]
    middle, high = np.quantile(drawn, [0.5, 0.9], axis=1)
    low_end, high_end = np.quantile(high / middle, [0.025, 0.975]).tolist()
    middle, high = np.quantile(known, [0.5, 0.9])
    return above(low_end, high_end, most * (1 - 1e-9)), (float(high / middle), low_end, high_end)


def heavy(widths: F64, encoder_width: int) -> tuple[Outcome, float]:
    """The widths above their median have a heavier tail than an exponential: Vuong's test of a power law against it.

    Both end at the encoder width, as widths do; queries without a stable hit say nothing of a tail and are left out. With z.
    """
    known = widths[np.isfinite(widths)]
    if not len(known):
        return OPEN, 0.0
    start = float(np.median(known))
    over = known[known > start]
    if len(over) < TAIL:
        return OPEN, 0.0
    power, exponential = (_best(over, start, encoder_width, kind) for kind in ("power", "exponential"))
    gap = power - exponential
    z = float(gap.mean() / max(gap.std(ddof=1), 1e-12) * np.sqrt(len(gap)))
    return above(z - Z, z + Z), z


def _best(values: F64, start: float, end: float, kind: str) -> F64:
    """The log-likelihood of each value under the best of a family that is bounded at both ends."""
    grid = np.linspace(start, end, 2_001)
    x = np.log if kind == "power" else np.asarray
    rates = np.linspace(-10, 30, 1_601) if kind == "power" else np.linspace(-10, 30, 1_601) / end
    shape = -rates[:, None] * x(grid)
    top = shape.max(axis=1, keepdims=True)
    weights = np.exp(shape - top)
    mass = np.log(((weights[:, 1:] + weights[:, :-1]) / 2).sum(axis=1) * (grid[1] - grid[0])) + top[:, 0]
    totals = -rates * x(values).sum() - len(values) * mass
    best = int(totals.argmax())
    return np.asarray(-rates[best] * x(values) - mass[best])
