"""The paper's router beside what it should be measured against: other predictors, untrained rules, chance and oracles.

Everything works on Examples: features and the worth of every width, so that no ranking is made twice. Thresholds come from
dev; only oracles and the envelope look at the test queries, and say so in their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import OptionalDependencyError
from ..evaluation.significance import paired_bootstrap
from ..policies.budget import allot, price_for, top_share
from ..policies.features import EXTENDED, columns
from ..policies.router import RouterModel
from ..training.examples import Examples
from ..training.router import Settings, fit_router, grow
from ..types import F64, Widths

Fit = Callable[[F64, F64, Sequence[F64], int], list[F64]]  # train features and gains, features to predict for, seed

SHARES = tuple(i / 10 for i in range(11))  # escalated, along a curve
PENALTIES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)  # ridge
RULES: Mapping[str, tuple[str, int]] = {  # untrained: the feature, and whether large (1) or small (-1) values escalate
    "gap": ("gap_10_11", -1),
    "nqc": ("nqc", -1),
    "wig": ("wig", -1),
    "smv": ("smv", -1),
    "churn": ("intruders", 1),
}


@dataclass(frozen=True, eq=False)
class RoutedCurve:
    """What a policy is worth along its mean widths."""

    name: str
    widths: F64  # (P,) realised mean width
    values: F64  # (P, Q) worth of every test query

    @property
    def means(self) -> F64:
        """(P,)"""
        return np.asarray(self.values.mean(axis=1))


@dataclass(frozen=True)
class Credit:
    """Routed worth less the fixed width's at the same mean width, with its paired 95 % interval."""

    mean_width: float
    routed: float
    fixed_width: int
    fixed: float
    credit: float
    low: float
    high: float


def credit(test: Examples, chosen: Widths, fixed_at: Callable[[int], F64]) -> Credit:
    """A width for each test query against the fixed width of the same mean, rounded up; `fixed_at` gives any width's worth. (Q,)"""
    mean = float(chosen.mean())
    width = int(np.ceil(mean - 1e-9))
    routed, fixed = worth(test, chosen), fixed_at(width)
    return Credit(mean, float(routed.mean()), width, float(fixed.mean()), *paired_bootstrap(routed, fixed))


def worth(examples: Examples, chosen: Widths) -> F64:
    """What each query's own width is worth. (Q,)"""
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
    """The widths of an oracle that knows the true gains and spends no coordinate that gains nothing. (Q,)

    It profits from noise in the gains; with `only_changed` it may move only the queries whose top 10 at the narrowest
    width is not the set of the full width's.
    """
    values = test.values[:, [test.place(width) for width in widths]]
    gains = values - values[:, :1]
    if only_changed:
        gains = np.where(test.changed(widths[0], test.widths[-1])[:, None] > 0, gains, 0.0)
    return allot(gains, widths, max(1e-12, price_for(gains, widths, min(budget, widths[-1]))))


def pair_curves(train: Examples, dev: Examples, test: Examples, pair: tuple[int, int], seed: int = 0) -> list[RoutedCurve]:
    """Every predictor and rule over one action pair, the oracles, chance and the optimistic envelope of the predictors."""
    gain = train.at(pair[1]) - train.at(pair[0])
    x, *others = (part.features[:, columns("paper", train.start)] for part in (train, dev, test))
    fits: dict[str, Fit] = {"trees": trees, "mlp": mlp, "linear": linear}
    predicted = {name: fit(x, gain, others, seed) for name, fit in fits.items()}
    curves = [_by_threshold(name, test, pair, *scores) for name, scores in predicted.items()]
    together = envelope(curves)
    for name, (feature, sign) in RULES.items():
        place = EXTENDED.index(feature)
        curves.append(_by_threshold(name, test, pair, sign * dev.features[:, place], sign * test.features[:, place]))
    budgets = [(1 - share) * pair[0] + share * pair[1] for share in SHARES]
    for name, only_changed in (("oracle", False), ("oracle (changed top 10 only)", True)):
        picks = [oracle_widths(test, pair, budget, only_changed=only_changed) for budget in budgets]
        curves.append(_curve(name, test, picks))
    low, high = test.at(pair[0]), test.at(pair[1])
    chance = np.stack([(1 - share) * low + share * high for share in SHARES])  # the exact expectation
    return [*curves, RoutedCurve("random", np.array(budgets), chance), together]


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


def envelope(curves: Sequence[RoutedCurve]) -> RoutedCurve:
    """At each point the curve that did best on these very queries: what the paper plots, and an optimistic choice."""
    best = np.stack([curve.means for curve in curves]).argmax(axis=0)
    points = [(curves[c].widths[p], curves[c].values[p]) for p, c in enumerate(best.tolist())]
    return RoutedCurve("envelope (optimistic)", np.array([width for width, _ in points]), np.stack([values for _, values in points]))


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


def trees(x: F64, y: F64, others: Sequence[F64], seed: int) -> list[F64]:
    """The paper's predictor."""
    grown = grow(x, y, Settings(), seed)
    return [grown.predict(other) for other in others]


def linear(x: F64, y: F64, others: Sequence[F64], seed: int) -> list[F64]:
    """Ridge on standardised features, its penalty by 5-fold cross-validation: in the place of the paper's unnamed third router."""
    fold = np.random.default_rng(seed).permutation(len(x)) % 5

    def error(penalty: float) -> float:
        missed = [_ridge(x[fold != k], y[fold != k], [x[fold == k]], penalty)[0] - y[fold == k] for k in range(5)]
        return float(np.square(np.concatenate(missed)).mean())

    return _ridge(x, y, others, min(PENALTIES, key=error))


def mlp(x: F64, y: F64, others: Sequence[F64], seed: int, members: int = 5, epochs: int = 200, patience: int = 20) -> list[F64]:
    """64-32 ReLU on standardised features, dropout .1, AdamW 1e-3, stopped early on 15 %; the mean of several seeds."""
    try:
        import torch
    except ImportError:
        raise OptionalDependencyError("torch", "train") from None
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    given, *asked = (torch.tensor(np.clip((z - mean) / scale, -8, 8), dtype=torch.float32) for z in (x, *others))
    wanted = torch.tensor((y - y.mean()) / max(float(y.std()), 1e-9), dtype=torch.float32)[:, None]
    totals = [np.zeros(len(z)) for z in others]
    for member in range(members):
        generator = torch.Generator().manual_seed(seed + member)
        torch.manual_seed(seed + member)
        order = torch.randperm(len(x), generator=generator)
        held, rest = order[: round(0.15 * len(x))], order[round(0.15 * len(x)) :]
        net = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Dropout(0.1),
            torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1),
        )  # fmt: skip
        optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)
        best, since, state = np.inf, 0, {name: value.clone() for name, value in net.state_dict().items()}
        for _ in range(epochs):
            net.train()
            for batch in rest[torch.randperm(len(rest), generator=generator)].split(256):  # type: ignore[no-untyped-call]
                optimiser.zero_grad()
                torch.nn.functional.mse_loss(net(given[batch]), wanted[batch]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            net.eval()
            with torch.no_grad():
                missed = float(torch.nn.functional.mse_loss(net(given[held]), wanted[held]))
            if missed < best:
                best, since, state = missed, 0, {name: value.clone() for name, value in net.state_dict().items()}
            elif (since := since + 1) >= patience:
                break
        net.load_state_dict(state)
        net.eval()
        with torch.no_grad():
            for total, z in zip(totals, asked, strict=True):
                total += net(z)[:, 0].numpy() / members
    return totals


def _ridge(x: F64, y: F64, others: Sequence[F64], penalty: float) -> list[F64]:
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    z = (x - mean) / scale
    weights = np.linalg.solve(z.T @ z + penalty * np.eye(z.shape[1]), z.T @ (y - y.mean()))
    return [(other - mean) / scale @ weights + y.mean() for other in others]


def _by_threshold(name: str, test: Examples, pair: tuple[int, int], on_dev: F64, on_test: F64) -> RoutedCurve:
    """Escalates the test queries above the dev quantile of each share; none at 0 and all at 1."""
    picks = []
    for share in SHARES:
        threshold = np.inf if share == 0 else -np.inf if share == 1 else float(np.quantile(on_dev, 1 - share))
        picks.append(np.where(on_test > threshold, pair[1], pair[0]))
    return _curve(name, test, picks)


def _curve(name: str, test: Examples, picks: Sequence[Widths]) -> RoutedCurve:
    return RoutedCurve(name, np.array([chosen.mean() for chosen in picks]), np.stack([worth(test, chosen) for chosen in picks]))
