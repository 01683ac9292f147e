"""Routers beside what they should be measured against: other predictors, untrained rules, chance and oracles.

Everything works on Examples: features and the nDCG@10 of every width, so that no ranking is made twice. Only oracles look at
the labels of test queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..evaluation.significance import paired_bootstrap
from ..policies.budget import allot, price_for, top_share
from ..policies.features import EXTENDED, columns
from ..policies.router import RouterModel
from ..training.examples import Examples
from ..training.router import fit_router
from ..types import F64, Widths
from .predictors import PREDICTORS

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # escalated, along a curve: mean widths are whole numbers
ORACLE, CHANCE = "oracle", "random"
RULES: Mapping[str, tuple[str, int]] = {  # untrained: the feature, and whether large (1) or small (-1) values escalate
    "gap": ("gap_10_11", -1),
    "nqc": ("nqc", -1),
    "wig": ("wig", -1),
    "smv": ("smv", -1),
    "churn": ("intruders", 1),
}


@dataclass(frozen=True, eq=False)
class RoutedCurve:
    """The nDCG@10 of a policy along its mean widths."""

    name: str
    widths: F64  # (P,) realised mean width
    values: F64  # (P, Q) of every test query

    @property
    def means(self) -> F64:
        """(P,)"""
        return np.asarray(self.values.mean(axis=1))


@dataclass(frozen=True)
class Credit:
    """Routed nDCG@10 less the fixed width's at the same mean width, with its paired 95 % interval."""

    mean_width: float
    routed: float
    fixed_width: int
    fixed: float
    credit: float
    low: float
    high: float


def credit(test: Examples, chosen: Widths, fixed_at: Callable[[int], F64]) -> Credit:
    """A width for each test query against the fixed width of the same mean, rounded up; `fixed_at` gives any width's values. (Q,)"""
    mean = float(chosen.mean())
    width = int(np.ceil(mean - 1e-9))
    routed, fixed = values_at(test, chosen), fixed_at(width)
    return Credit(mean, float(routed.mean()), width, float(fixed.mean()), *paired_bootstrap(routed, fixed))


def values_at(examples: Examples, chosen: Widths) -> F64:
    """The nDCG@10 of each query at the width chosen for it. (Q,)"""
    return np.asarray(examples.values[np.arange(len(examples)), np.searchsorted(examples.widths, chosen)])


def routed_widths(model: RouterModel, test: Examples, budget: float, *, transductive: bool = False) -> Widths:
    """The widths that the model's policy for a budget gives to test queries. (Q,)"""
    policy = model.policy(budget=budget)
    head, price = getattr(policy, "head", None), getattr(policy, "price", np.inf)
    if head is None:
        return np.full(len(test), model.start)
    gains = head.gains(head.trees.predict(test.features[:, columns(head.features, model.start)]))
    return top_share(gains, head.widths, min(budget, head.widths[-1])) if transductive else allot(gains, head.widths, price)


def oracle_widths(test: Examples, widths: tuple[int, ...], budget: float, *, only_changed: bool = False) -> Widths:
    """The widths of an oracle over any widths that knows the true gains and spends no coordinate that gains nothing. (Q,)

    It is stronger than the paper's, which has one pair (see `pair_curves`), and profits from noise in the gains; with `only_changed` it may
    move only the queries whose top 10 at the narrowest width is not the set of the full width's.
    """
    values = test.values[:, [test.place(width) for width in widths]]
    gains = values - values[:, :1]
    if only_changed:
        gains = np.where(test.changed(widths[0], test.widths[-1])[:, None] > 0, gains, 0.0)
    return allot(gains, widths, max(1e-12, price_for(gains, widths, min(budget, widths[-1]))))


def pair_curves(train: Examples, test: Examples, pair: tuple[int, int], seed: int = 0) -> list[RoutedCurve]:
    """Every predictor and rule over one action pair, by the paper's rule: a share of the test queries goes up, largest prediction first.

    Beside them the oracle, which has the true gains for predictions and spends its share whatever they are, and chance. All spend the
    same at each share.
    """
    gain = train.at(pair[1]) - train.at(pair[0])
    x, asked = (part.features[:, columns("paper", train.start)] for part in (train, test))
    predicted = {name: fit(x, gain, [asked], seed)[0] for name, fit in PREDICTORS.items()}
    predicted |= {name: sign * test.features[:, EXTENDED.index(feature)] for name, (feature, sign) in RULES.items()}
    predicted[ORACLE] = test.at(pair[1]) - test.at(pair[0])
    curves = [_by_share(name, test, pair, gains) for name, gains in predicted.items()]
    low, high = test.at(pair[0]), test.at(pair[1])
    shares = (curves[0].widths - pair[0]) / (pair[1] - pair[0])
    chance = np.stack([(1 - share) * low + share * high for share in shares])  # the exact expectation
    return [*curves, RoutedCurve(CHANCE, curves[0].widths, chance)]


def patience(test: Examples, rounds: int) -> Widths:
    """Label-free: the first width at which the top 10 had stood unchanged for `rounds` steps; the widest where there is none. (Q,)"""
    same = (test.tops[:, 1:] == test.tops[:, :-1]).all(axis=2)  # (Q, W - 1)
    run = np.zeros(len(test), np.int64)
    chosen = np.full(len(test), test.widths[-1])
    stopped = np.zeros(len(test), np.bool_)
    for place, width in enumerate(test.widths[1:]):
        run = np.where(same[:, place], run + 1, 0)
        stops = (run >= rounds) & ~stopped
        chosen[stops] = width
        stopped |= stops
    return chosen


def leave_one_out(
    collections: Mapping[str, tuple[Examples, Examples]], held: str, sets: Sequence[str] = ("scale-free", "extended"), seed: int = 0
) -> dict[str, RouterModel]:
    """For each feature set, the multi-width router trained on all collections but one, its prices set on that one's dev queries.

    Collections are (train, dev) of one encoder. The held-out dev queries set prices, for which no label is needed.
    """
    train, choose = (join([parts[place] for name, parts in collections.items() if name != held]) for place in (0, 1))
    dev, models = collections[held][1], {}
    for features in sets:
        model = fit_router(train, choose, pairs=(), sets=(features,), seed=seed)
        scores = tuple(head.trees.predict(dev.features[:, columns(head.features, dev.start)]) for head in model.heads)
        values = np.stack([dev.at(width) for width in model.widths], axis=1)
        models[features] = replace(model, dev=len(dev), values=values, noise=dev.noise, scores=scores)
    return models


def join(parts: Sequence[Examples]) -> Examples:
    """Examples of several collections as one, over the widths that all of them have."""
    widths = tuple(m for m in parts[0].widths if all(m in part.widths for part in parts))

    def all_of(name: str) -> F64:
        return np.concatenate([getattr(part, name)[:, [part.place(m) for m in widths]] for part in parts])

    return replace(
        parts[0],
        features=np.concatenate([part.features for part in parts]),
        values=all_of("values"),
        tops=all_of("tops").astype(np.int64),
        widths=widths,
        noise=float(np.mean([part.noise for part in parts])),
    )


def _by_share(name: str, test: Examples, pair: tuple[int, int], predicted: F64) -> RoutedCurve:
    """None goes up at 0 and all at 1."""
    gains = np.stack([np.zeros(len(predicted)), predicted], axis=1)
    picks = [top_share(gains, pair, (1 - share) * pair[0] + share * pair[1]) for share in SHARES]
    return RoutedCurve(name, np.array([chosen.mean() for chosen in picks]), np.stack([values_at(test, chosen) for chosen in picks]))
