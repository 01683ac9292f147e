"""The taper: the candidate set thins out as the width grows.

Within one query's shortlist the score at the target width is, but for noise, linear in the prefix score s: slope β, and noise
of σ t(q) t(d), where t is the share of a vector's length that lies between the two widths. Both are fitted once for each width
(training/taper.py). With c = z σ t(q) t(d) / (√2 β), a candidate survives width m if its s + c is at least the k-th largest
s - c. z is the one knob; a budget or a quality becomes a z by curves measured on dev.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import OptionError
from ..stages import Decision, Stage
from ..types import F32, F64, Array
from .base import DEFAULT_QUALITY, finish
from .stored import LARGEST, array, ascending, check, entry, flag, listed, number, refuse, whole, within

log = logging.getLogger("adawidth")

FLAT = 1e-12  # a slope that is a smaller part of the noise predicts nothing
LARGEST_K = 2**31
NEARLY = 1e-3  # of the best quality, where the one asked for is out of reach: the last of it costs far more than it is worth


@dataclass(frozen=True, eq=False)
class Calibration:
    """How prefix scores predict the score at the target width, from one start width on."""

    ladder: tuple[int, ...]  # from the start width to the target width
    beta: F64  # slope, one for each ladder width but the last
    sigma: F64  # noise per unit of t(q) t(d), likewise

    def __post_init__(self) -> None:
        """Compiled code reads coordinates by the ladder: it must rise."""
        if not self.ladder or self.ladder[0] < 1 or any(low >= high for low, high in pairwise(self.ladder)):
            refuse("ladder", "widths that rise from at least 1", self.ladder)
        for name, values in (("beta", self.beta), ("sigma", self.sigma)):
            check(values, name, np.float64, len(self.ladder) - 1)
        if (self.sigma < 0).any():
            refuse("sigma", "no noise below 0", self.sigma.min())

    def cut(self, keep: int) -> Calibration:
        """The ladder up to `keep`."""
        ladder = (*(width for width in self.ladder if width < keep), keep)
        return Calibration(ladder, self.beta[: len(ladder) - 1], self.sigma[: len(ladder) - 1])

    def only(self, widths: Sequence[int]) -> Calibration:
        """The ladder without the widths that are not among these; its target is the widest of them that it has."""
        first, target = self.ladder[0], max((width for width in widths if width <= self.ladder[-1]), default=0)
        if first not in widths:
            raise OptionError(f"start width {first} is not kept in the engine; there are {', '.join(map(str, widths))}")
        places = [i for i, width in enumerate(self.ladder[:-1]) if width in widths and width < target]
        return Calibration((*(self.ladder[i] for i in places), target), self.beta[places], self.sigma[places])

    @cached_property
    def bands(self) -> F64:
        """σ / (√2 β): half the width of the interval at z = 1 and t = 1; infinite where the slope is not positive."""
        bands = np.full(len(self.beta), np.inf)
        np.divide(self.sigma, np.sqrt(2) * self.beta, out=bands, where=self.beta > FLAT * self.sigma)
        return bands


@dataclass(frozen=True, eq=False)
class Taper:
    """At each ladder width those that may still be among the k best go on; z = inf keeps all, a ladder of one width reads nothing more."""

    calibration: Calibration
    z: float
    k: int = 10
    name = "taper"

    def __post_init__(self) -> None:
        if not self.z >= 0:
            raise OptionError(f"z = {self.z} is below 0")
        if self.k < 1:
            raise OptionError(f"k = {self.k} is below 1")

    @property
    def start(self) -> int:
        """The width at which every document is scanned."""
        return self.calibration.ladder[0]

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return self.calibration.ladder[-1]

    def at(self, widths: Sequence[int]) -> Taper:
        """The same with fewer steps, which each width's own thresholds allow: candidates are dropped later."""
        return Taper(self.calibration.only(widths), self.z, self.k)

    def decide(self, stage: Stage) -> Decision:
        """Survivors go on to the next ladder width; at the target width every query stops. All queries go the same way."""
        ladder = self.calibration.ladder
        place = ladder.index(int(stage.widths[0]))
        if place == len(ladder) - 1:
            return finish(stage)
        following = np.full_like(stage.widths, ladder[place + 1])
        band = self.calibration.bands[place]
        if np.isinf(band) or np.isinf(self.z):
            return Decision(stage.alive, following)
        reach = self.z * band * tails(stage, ladder[-1])
        k = min(self.k, stage.scores.shape[1])
        lower = np.where(stage.alive, stage.scores - reach, -np.inf)
        kth = -np.partition(-lower, k - 1, axis=1)[:, k - 1, None]
        return Decision(stage.alive & (stage.scores + reach >= kth), following)


@dataclass(frozen=True, eq=False)
class Bounded(Taper):
    """A taper whose z is that of a budget. With fewer steps candidates are dropped later, so that z alone would read more."""

    budget: float = np.inf

    def at(self, widths: Sequence[int]) -> Taper:
        """With fewer steps, each query within the budget."""
        return Capped(self.calibration.only(widths), self.z, self.k, self.budget)


class Capped(Bounded):
    """Of those that would go on, the best that the budget allows."""

    def decide(self, stage: Stage) -> Decision:
        """As a taper, and no more than the budget."""
        found = super().decide(stage)
        size = (stage.candidates >= 0).sum(axis=1)
        most = (self.budget - stage.mean_widths) * size / np.maximum(found.widths - stage.widths, 1)
        best = np.argsort(np.argsort(np.where(found.keep, -stage.scores, np.inf), axis=1, kind="stable"), axis=1)
        stops = (found.widths == stage.widths)[:, None]
        return Decision(found.keep & (stops | (best + 1 <= most[:, None])), found.widths)


def tails(stage: Stage, target: int) -> F32:
    """t(q) t(d) of every candidate: the shares of their lengths up to the target width that lie beyond the stage's width. (Q, C)"""
    width = int(stage.widths[0])
    norms = stage.backend.norms
    of_queries = _tail(np.linalg.norm(stage.queries[:, :width], axis=1), np.linalg.norm(stage.queries[:, :target], axis=1))
    return np.asarray(of_queries[:, None] * _tail(norms(width), norms(target))[stage.candidates], np.float32)


def _tail(prefix: Array, whole: Array) -> Array:
    return np.asarray(np.sqrt(np.maximum(0.0, 1.0 - (prefix / np.maximum(whole, 1e-12)) ** 2)))


@dataclass(frozen=True, eq=False)
class Curve:
    """What the taper cost and kept on dev at a grid of z, from one start width and for one k."""

    VALUES: ClassVar = ("z", "widths", "errors", "quality")

    k: int
    z: F64  # (Z,) ascending, the last one infinite
    widths: F64  # (Z,) mean width
    errors: F64  # (Z,) standard error of the mean width
    quality: F64  # (Z,) share kept of the target width's nDCG@k, or of its top k

    def __post_init__(self) -> None:
        for name in self.VALUES:
            check(getattr(self, name), name, np.float64, len(self.z), largest=np.inf if name == "z" else LARGEST)
        if len(self.z) < 2 or not np.isinf(self.z[-1]) or (np.diff(self.z) <= 0).any() or not np.abs(self.z[:-1]).max() <= LARGEST:
            refuse("z", "numbers that rise and end with an infinite one", self.z)

    def within(self, budget: float) -> tuple[float, float] | None:
        """The largest z whose mean width plus its standard error is at most the budget, and its quality; none if z = 0 costs more."""
        spent = np.maximum.accumulate(self.widths + self.errors)
        if spent[0] > budget:
            return None
        if budget >= spent[-1]:
            return np.inf, float(self.quality[-1])
        z = float(np.interp(budget, spent[:-1], self.z[:-1]))
        return z, float(np.interp(z, self.z[:-1], self.quality[:-1]))

    def keeping(self, quality: float) -> tuple[float, float] | None:
        """The smallest z from which on the quality is kept, read off between the grid's, and its mean width; none if it is nowhere."""
        held = np.minimum.accumulate(self.quality[::-1])[::-1]
        if held[-1] < quality:
            return None
        first = int(np.argmax(held >= quality))
        if first == 0 or np.isinf(self.z[first]):
            return float(self.z[first]), float(self.widths[first])
        share = (quality - held[first - 1]) / (held[first] - held[first - 1])
        z, width = (float(x[first - 1] + share * (x[first] - x[first - 1])) for x in (self.z, self.widths))
        return z, width

    @property
    def best(self) -> float:
        """The highest quality that some z and all above it keep."""
        return float(np.minimum.accumulate(self.quality[::-1]).max())


@dataclass(frozen=True, eq=False)
class TaperModel:
    """What a fit stores of the taper: calibrations and dev curves from each start width to one target width."""

    labelled: bool  # whether quality is a share of nDCG (else of the target width's top k)
    calibrations: tuple[Calibration, ...]  # by start width, ascending
    curves: tuple[tuple[Curve, ...], ...]  # of each calibration, by k, ascending
    fixed: Mapping[int, float]  # quality of each fixed width, every document ranked

    @property
    def target(self) -> int:
        """The target width h*."""
        return self.calibrations[0].ladder[-1]

    @property
    def starts(self) -> tuple[int, ...]:
        """The start widths."""
        return tuple(calibration.ladder[0] for calibration in self.calibrations)

    def policy(
        self,
        budget: float | None = None,
        quality: float | None = None,
        start: int | None = None,
        k: int = 10,
        z: float | None = None,
    ) -> Taper:
        """The taper with one knob set: a budget (mean width, an upper bound on dev), a quality (.99 without any) or z itself.

        Without a start width the better one on dev is taken: higher quality within the budget, lower mean width for the quality.
        """
        if sum(value is not None for value in (budget, quality, z)) > 1:
            raise OptionError("give one of budget, quality and z")
        if start is not None and start not in self.starts:
            raise OptionError(f"start width {start} was not calibrated; there are {', '.join(map(str, self.starts))}")
        choices = [i for i in range(len(self.starts)) if start is None or self.starts[i] == start]
        if z is not None:
            return Taper(self.calibrations[choices[-1]], z, k)
        if budget is not None:
            return self._within(budget, choices, k)
        return self._keeping(DEFAULT_QUALITY if quality is None else quality, choices, k)

    def cut(self, keep: int) -> TaperModel:
        """The same with a target width of at most `keep`: what was measured for the wider one stands in."""
        if keep >= self.target:
            return self
        places = [i for i, start in enumerate(self.starts) if start <= keep]
        if not places:
            raise OptionError(f"keep {keep} is below the start width {self.starts[0]}: keep at least that")
        fixed = {width: value for width, value in self.fixed.items() if width <= keep}
        calibrations = tuple(self.calibrations[i].cut(keep) for i in places)
        return TaperModel(self.labelled, calibrations, tuple(self.curves[i] for i in places), fixed)

    def fixed_width(self, quality: float) -> int:
        """The smallest width up to the target that keeps the quality on dev without a policy."""
        check_quality(quality)
        widths = sorted(self.fixed)
        held = np.minimum.accumulate([self.fixed[width] for width in reversed(widths)])[::-1] >= quality
        return widths[int(np.argmax(held))] if held.any() else self.target

    def _within(self, budget: float, choices: list[int], k: int) -> Taper:
        least = self.starts[choices[0]]
        if budget < least:
            raise OptionError(f"budget {budget:g} is below the start width {least}: no query reads less")
        if budget > self.target:
            log.info("budget %g is above the target width %d, which is the most that a query reads", budget, self.target)
        found = {i: point for i in choices if (point := self._curve(i, k).within(budget)) is not None}
        if not found:
            cheapest = min(float(self._curve(i, k).widths[0]) for i in choices)
            log.warning("budget %g is below %.1f, the least that a taper to %d costs: fixed width %d", budget, cheapest, self.target, least)
            return Taper(Calibration((least,), np.empty(0), np.empty(0)), 0.0, k)
        best = max(found, key=lambda i: found[i][1])
        return Taper(self.calibrations[best], found[best][0], k)

    def _keeping(self, quality: float, choices: list[int], k: int) -> Taper:
        check_quality(quality)
        found = {i: point for i in choices if (point := self._curve(i, k).keeping(quality)) is not None}
        if not found:
            best = max(choices, key=lambda i: self._curve(i, k).best)
            reachable = self._curve(best, k).best
            log.warning("quality %g is not reached on dev; %.4f is, from width %d: taken", quality, reachable, self.starts[best])
            found = {best: self._curve(best, k).keeping(reachable - NEARLY) or (np.inf, 0.0)}
        best = min(found, key=lambda i: found[i][1])
        return Taper(self.calibrations[best], found[best][0], k)

    def _curve(self, i: int, k: int) -> Curve:
        """The curve measured for the smallest k that is at least this one: a smaller k never costs more."""
        fitting = [curve for curve in self.curves[i] if curve.k >= k]
        if fitting:
            return fitting[0]
        log.warning("k = %d is above %d, the largest that budget and quality were measured for", k, self.curves[i][-1].k)
        return self.curves[i][-1]

    def config(self) -> dict[str, Any]:
        """What goes into config.json."""
        return {
            "target": self.target,
            "labelled": self.labelled,
            "ladders": [list(calibration.ladder) for calibration in self.calibrations],
            "ks": [curve.k for curve in self.curves[0]],
            "fixed": {str(width): value for width, value in self.fixed.items()},
        }

    def tensors(self) -> dict[str, Array]:
        """What goes into model.safetensors: per start width β, σ and the curves (K, Z)."""
        tensors: dict[str, Array] = {}
        for calibration, curves in zip(self.calibrations, self.curves, strict=True):
            part = {"beta": calibration.beta, "sigma": calibration.sigma}
            part |= {name: np.stack([getattr(curve, name) for curve in curves]) for name in Curve.VALUES}
            tensors |= {f"{calibration.ladder[0]}.{name}": values for name, values in part.items()}
        return tensors

    @classmethod
    def of(cls, config: Any, tensors: Mapping[str, Array], width: int) -> Self:
        """The model that `config` and `tensors` came from, for encoders of this width; what can't be is refused by name."""
        with within("taper"):
            ladders = [ascending(ladder, f"ladders.{place}", width) for place, ladder in enumerate(listed(config, "ladders"))]
            ascending([ladder[0] for ladder in ladders], "ladders, their first widths", width)
            target = whole(config, "target", 1, width)
            if any(ladder[-1] != target for ladder in ladders):
                refuse("ladders", f"the target width {target} last", ladders)
            ks = ascending(entry(config, "ks"), "ks", LARGEST_K)
            stored = [_calibrated(ladder, ks, tensors) for ladder in ladders]
            fixed = entry(config, "fixed")
            widths = [int(name) for name in fixed if name.isdecimal()] if isinstance(fixed, dict) else []
            if not widths or len(widths) != len(fixed) or not 1 <= min(widths) <= max(widths) <= width:
                refuse("fixed", f"a quality for each of some widths within 1 to {width}", fixed)
            kept = {int(name): number(value, f"fixed.{name}") for name, value in fixed.items()}
            return cls(flag(config, "labelled"), tuple(found for found, _ in stored), tuple(found for _, found in stored), kept)


def _calibrated(ladder: tuple[int, ...], ks: tuple[int, ...], tensors: Mapping[str, Array]) -> tuple[Calibration, tuple[Curve, ...]]:
    """What is stored for one ladder: its calibration and a curve for each k."""
    beta, sigma, *values = (array(tensors, f"{ladder[0]}.{name}") for name in ("beta", "sigma", *Curve.VALUES))
    with within(str(ladder[0])):
        for name, found in zip(Curve.VALUES, values, strict=True):
            check(found, name, np.float64, len(ks), None, largest=np.inf)
            if (found < 0).any():
                refuse(name, "no number below 0", found.min())
        return Calibration(ladder, beta, sigma), tuple(Curve(k, *(found[i] for found in values)) for i, k in enumerate(ks))


def check_quality(quality: float) -> None:
    """Refuses a quality outside (0, 1]."""
    if not 0 < quality <= 1:
        raise OptionError(f"quality {quality:g} is not above 0 and at most 1")
