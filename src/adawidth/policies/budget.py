"""Budgets: the price per coordinate that spends one, and the controller that keeps to one on a stream of queries.

A budget is an upper bound on the mean width of a workload, in coordinates per shortlist candidate.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Protocol, runtime_checkable

import numpy as np

from ..errors import OptionError
from ..stages import Decision, Stage
from ..types import F64, Mask, Widths
from .base import Policy

log = logging.getLogger("adawidth")

Gains = F64  # (Q, W): gain of each width over the narrowest, whose column is 0

WINDOW = 5_000  # any so many consecutive queries keep to the budget …
TOLERANCE = 0.02  # … but for this share
SIGNIFICANT = 1.63  # Kolmogorov and Smirnov's critical value at 1 %, times sqrt(1/n + 1/m)
NOTABLE = 0.1  # a smaller difference is none to act on, however sure
RECENT = 2_000  # queries that are compared with dev for drift
REVIEW = 250  # queries, at least, between two looks at the share and at drift
EAGERNESS = 0.3  # part of the overspending since the last look by which the share is cut


def check_budget(budget: float, narrowest: float, widest: float) -> None:
    """Refuses a budget that no choice of widths can meet or use."""
    if not narrowest <= budget <= widest:
        raise OptionError(f"budget {budget:g} is not between {narrowest:g} and {widest:g}, the narrowest and the widest mean width")


def allot(gains: Gains, widths: tuple[int, ...], price: float) -> Widths:
    """The width with the largest gain less `price` per coordinate, the narrowest among equals. (Q, W) -> (Q,)"""
    ladder = np.array(widths, np.int64)
    if np.isinf(price):
        return np.full(len(gains), ladder[0 if price > 0 else -1])
    return np.asarray(ladder[np.argmax(gains - price * (ladder - ladder[0]), axis=1)])


def price_for(gains: Gains, widths: tuple[int, ...], budget: float) -> float:
    """The lowest price at which these queries stay within a mean width of `budget`; -inf: all may have the widest, inf: none moves."""
    check_budget(budget, widths[0], widths[-1])
    if budget == widths[-1]:
        return -np.inf
    if budget == widths[0]:
        return np.inf
    steps = np.diff(np.array(widths, np.float64))
    slopes = np.abs(np.diff(gains, axis=1) / steps).max(initial=0.0) + 1.0
    low, high = -slopes, slopes  # at `low` all take the widest, at `high` none moves
    for _ in range(80):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if allot(gains, widths, middle).mean() <= budget else (middle, high)
    return float(high)


def top_share(gains: Gains, widths: tuple[int, ...], budget: float) -> Widths:
    """The paper's rule over a whole workload: as many queries as the budget allows go up, largest predicted gain first.

    For more than two widths the price is set on the workload itself.
    """
    if len(widths) > 2:
        return allot(gains, widths, price_for(gains, widths, budget))
    check_budget(budget, *widths)
    count = int((budget - widths[0]) / (widths[1] - widths[0]) * len(gains) + 1e-9)
    chosen = np.full(len(gains), widths[0], np.int64)
    chosen[np.argsort(-gains[:, 1], kind="stable")[:count]] = widths[1]
    return chosen


class Dial(Protocol):
    """A family of policies with one knob whose cost curve is known: what the controller turns. RouterModel and TaperModel are two."""

    def policy(self, *, budget: float) -> Policy:
        """The policy that spent at most this mean width on dev."""
        ...


@runtime_checkable
class Signalling(Protocol):
    """A family that can tell drift."""

    @property
    def reference(self) -> F64:
        """The signals of the dev queries."""
        ...

    def signal(self, stage: Stage) -> F64:
        """One number per query, from stage 1, whose distribution changes where queries drift. (Q,)"""
        ...


class Online:
    """A policy over a stream of queries in order: at most 2 % above the budget over any 5,000 of them, whatever they are.

    What the family would spend is cut in two ways. The share it may plan with follows what it did spend, never above
    the budget, so that easier queries spend less; and a purse that fills by (budget - start) a query and holds no more than
    the tolerance allows pays for every coordinate beyond the start width: where it is empty a query ends where it stands.
    One stream, one controller: it remembers, and is not safe for concurrent searches.
    """

    def __init__(self, dial: Dial, budget: float, window: int = WINDOW, tolerance: float = TOLERANCE) -> None:
        if window < 1 or not tolerance >= 0:
            raise OptionError(f"a window of {window} queries with a tolerance of {tolerance:g}: give at least 1 and at least 0")
        self._dial = dial
        self._signalling = dial if isinstance(dial, Signalling) else None
        self._policy = dial.policy(budget=budget)
        self._budget = budget
        self._share = budget  # what the family may plan with
        self._rate = budget - self.start  # what a query adds to the purse
        self._size = tolerance * window * budget  # of the purse
        self._purse = self._size
        self._spent: F64 = np.empty(0)  # by each query of the batch at hand, beyond the start width
        self._wanted: F64 = np.empty(0)  # the same, had nothing been refused
        self._since: list[float] = []  # what each query has wanted since the last look
        self._signals: deque[float] = deque(maxlen=RECENT)
        self._warned = False
        self.refused = 0  # readings that the purse could not pay

    @property
    def name(self) -> str:
        """The family's name."""
        return self._policy.name

    @property
    def start(self) -> int:
        """The width at which every document is scanned."""
        return self._policy.start

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return self._policy.reach

    def decide(self, stage: Stage) -> Decision:
        """The family's decision, as far as the purse pays for it; a query that can't pay goes along without candidates."""
        if (stage.widths == self.start).all():
            self._settle()
            if self._signalling is not None:
                self._signals.extend(self._signalling.signal(stage).tolist())
            if len(self._since) >= REVIEW:
                self._review()
            self._spent, self._wanted = np.zeros(len(stage)), np.zeros(len(stage))
        decision = self._policy.decide(stage)
        cost = _cost(stage, decision)
        granted = self._grant(cost)
        self._wanted = np.maximum(self._wanted, self._spent + cost)
        self._spent = self._spent + np.where(granted, cost, 0.0)
        self.refused += int((~granted).sum())
        return Decision(decision.keep & granted[:, None], decision.widths)

    @property
    def drift(self) -> float:
        """Largest difference between the distributions of recent and of dev signals: 0 same, 1 disjoint (Kolmogorov, Smirnov)."""
        recent, reference = np.sort(np.array(self._signals)), np.sort(self._reference)
        if not len(recent) or not len(reference):
            return 0.0
        at = np.concatenate([recent, reference])
        below = [np.searchsorted(values, at, side="right") / len(values) for values in (recent, reference)]
        return float(np.abs(below[0] - below[1]).max())

    @property
    def drifted(self) -> bool:
        """Whether recent queries differ from dev notably and by more than chance would (1 %)."""
        n, m = len(self._signals), len(self._reference)
        return n > 0 and m > 0 and self.drift > max(NOTABLE, SIGNIFICANT * float(np.sqrt(1 / n + 1 / m)))

    @property
    def _reference(self) -> F64:
        return np.empty(0) if self._signalling is None else self._signalling.reference

    def _settle(self) -> None:
        """Closes the batch that is done."""
        for spent in self._spent.tolist():
            self._purse = min(self._size, self._purse + self._rate) - spent
        self._since += self._wanted.tolist()

    def _review(self) -> None:
        """Sets the share for what comes by what was wanted, and says where queries drift."""
        over = float(np.mean(self._since)) - self._rate
        self._since.clear()
        self._share = min(self._budget, max(float(self.start), self._share - EAGERNESS * over))
        planned = self._dial.policy(budget=self._share)
        if planned.start == self.start:  # a family may have several start widths; a stream has one
            self._policy = planned
        if self.drifted and not self._warned:
            self._warned = True
            log.warning("the queries drift: recent signals differ from dev's by %.2f (Kolmogorov-Smirnov); fit again", self.drift)

    def _grant(self, cost: F64) -> Mask:
        """Which queries may spend `cost` more, first come first served, so that the purse is never overdrawn at any query."""
        rate, size, spent = self._rate, self._size, self._spent.tolist()
        needed, later = [0.0] * len(spent), 0.0  # what the purse must hold after each query for the spending of later ones
        for i in range(len(spent) - 1, -1, -1):
            needed[i] = later
            later = max(0.0, later + spent[i] - rate)
        granted = np.zeros(len(spent), np.bool_)
        purse = self._purse
        for i, extra in enumerate(cost.tolist()):
            purse = min(size, purse + rate) - spent[i]
            if extra <= 0 or purse - extra >= needed[i]:
                granted[i] = True
                purse -= extra
        return granted


def _cost(stage: Stage, decision: Decision) -> F64:
    """Coordinates per shortlist candidate that a decision reads. (Q,)"""
    size = np.maximum((stage.candidates >= 0).sum(axis=1), 1)
    moving = (decision.keep & stage.alive).sum(axis=1)
    return np.asarray(moving * np.maximum(decision.widths - stage.widths, 0) / size, np.float64)
