"""How fast overtakers vanish with the width, pair by pair, and how heavy the tail of the required widths is."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from ..types import F64
from .overtakers import RequiredWidths

FEWEST = 20  # overtakers at a width that takes part
POINTS = 3  # widths that make a line


@dataclass(frozen=True)
class Tail:
    """The required widths above their median: a power law with the Hill index, or an exponential with a rate? Censored ones count."""

    depth: int
    beyond: float  # the median
    hill: float
    exponential_rate: float
    log_likelihood_ratio: float  # of the power law against the exponential, per pair in the tail; above 0: heavy

    def to_json(self) -> dict[str, float]:
        """The fields, by name."""
        return asdict(self)


def information_rates(required: RequiredWidths) -> tuple[F64, F64]:
    """(γ, ln A) of each pair: the line through ln(overtakers / N) over widths with at least 20; NaN with fewer than 3. (P,), (P,)"""
    counts = required.overtakers.astype(np.float64)
    weight = (counts >= FEWEST).astype(np.float64)
    x = np.broadcast_to(required.widths.astype(np.float64), counts.shape)
    y = np.log(np.maximum(counts, 1) / required.sizes[-1])
    points = weight.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y = (weight * x).sum(axis=1) / points, (weight * y).sum(axis=1) / points
        dx = weight * (x - mean_x[:, None])
        slope = (dx * (y - mean_y[:, None])).sum(axis=1) / np.square(dx).sum(axis=1)
    enough = points >= POINTS
    return np.where(enough, -slope, np.nan), np.where(enough, mean_y - slope * mean_x, np.nan)


def rates_summary(required: RequiredWidths) -> dict[str, float | int | None]:
    """Quartiles of the rate γ over the pairs that have one."""
    rate = information_rates(required)[0]
    known = rate[np.isfinite(rate)]
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75]).tolist() if len(known) else (None, None, None)
    return {"pairs": len(known), "lower_quartile": low, "median": middle, "upper_quartile": high}


def compare_rates(before: RequiredWidths, after: RequiredWidths, samples: int = 1_000, seed: int = 0) -> dict[str, float | int | None]:
    """Whether the second raises the rate γ of the same pairs: the median difference, its 95 % interval over pairs, the share raised."""
    first, second = information_rates(before)[0], information_rates(after)[0]
    both = np.isfinite(first) & np.isfinite(second)
    if not both.any():
        return {"pairs": 0, "before": None, "after": None, "difference": None, "low": None, "high": None, "raised": None}
    difference = (second - first)[both]
    rng = np.random.default_rng(seed)
    medians = [np.median(difference[rng.integers(len(difference), size=len(difference))]) for _ in range(samples)]
    low, high = np.quantile(medians, [0.025, 0.975]).tolist()
    return {
        "pairs": len(difference),
        "before": float(np.median(first[both])),
        "after": float(np.median(second[both])),
        "difference": float(np.median(difference)),
        "low": low,
        "high": high,
        "raised": float((difference > 0).mean()),
    }


def tail(required: RequiredWidths, k: int = 10) -> Tail | None:
    """The upper half of the required widths in the whole corpus, at the depth nearest to k. None where it has nothing finite."""
    place = int(np.argmin(np.abs(required.depths - k)))
    values = required.values[0, -1, place].astype(np.float64)
    beyond = float(np.median(values))
    above = values[values > beyond]
    reached = np.isfinite(above)
    if not reached.any():
        return None
    capped = np.where(reached, above, required.encoder_width)  # a censored width is known to be larger
    logs, excess, events = np.log(capped / beyond), capped - beyond, int(reached.sum())
    hill, rate = events / logs.sum(), events / excess.sum()
    power = events * np.log(hill) - hill * logs.sum() - np.log(capped[reached]).sum()
    exponential = events * np.log(rate) - rate * excess.sum()
    return Tail(int(required.depths[place]), beyond, float(hill), float(rate), float((power - exponential) / len(above)))
