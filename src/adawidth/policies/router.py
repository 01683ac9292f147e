"""The paper's router: from the stage-1 scores, one width for each query's whole shortlist.

Trees give each query a score, curves say what a query of that score gains at each width, and the query goes to the width
with the largest gain less its price. With two widths (l, h) this is the paper's rule: the score is the predicted gain, and
the query escalates to h iff it is above a threshold.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..errors import OptionError
from ..kernels.trees import batch_features, predict
from ..stages import Decision, Stage
from ..types import F64, I32, I64, Array
from .base import DEFAULT_QUALITY, Policy, finish
from .budget import Gains, allot, check_budget, price_for, top_share
from .features import columns, extended
from .fixed import Fixed

log = logging.getLogger("adawidth")

Scores = F64  # (Q,)


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble as flat arrays. A row at most threshold[n] goes from node n to children[n, 0], above it to children[n, 1]."""

    feature: I32  # (nodes,)
    threshold: F64  # (nodes,)
    children: I32  # (nodes, 2); a leaf has itself
    value: F64  # (nodes,); 0 but at leaves
    roots: I32  # (trees,)
    depths: I32  # (trees,)

    def predict(self, x: F64) -> Scores:
        """The sum of the trees' leaf values for every row. (Q, F) -> (Q,)"""
        return np.asarray(predict(np.ascontiguousarray(x, np.float64), *self.tensors().values()))

    def tensors(self) -> dict[str, Array]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class Head:
    """One set of widths to choose from, and how their gains are predicted."""

    widths: tuple[int, ...]  # ascending
    features: str  # the feature set's name
    trees: Trees
    knots: F64  # (B,) ascending scores
    curves: F64  # (B, W) gain of each width over the narrowest at these scores; linear in between

    def gains(self, scores: Scores) -> Gains:
        """Predicted gain of each width over the narrowest. (Q,) -> (Q, W)"""
        return np.stack([np.interp(scores, self.knots, curve) for curve in self.curves.T], axis=1)

    def scores(self, stage: Stage, noise: float, start: int) -> Scores:
        """The trees' score of every query of a stage at the start width. (Q,)"""
        if self.features == "paper":
            return self.trees.predict(batch_features(stage.scores))
        return self.trees.predict(all_features(stage, noise, start)[:, columns(self.features, start)])


@dataclass(frozen=True, eq=False)
class Router:
    """Each query to the width with the largest predicted gain less `price` per coordinate; inf: none moves, -inf: all to the widest."""

    head: Head
    start: int
    noise: float
    price: float
    name = "router"

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return max(self.start, self.head.widths[-1])

    def decide(self, stage: Stage) -> Decision:
        """One step, from the start width to the width chosen."""
        if (stage.widths > self.start).any():
            return finish(stage)
        gains = self.head.gains(self.head.scores(stage, self.noise, self.start))
        return Decision(stage.alive, allot(gains, self.head.widths, self.price))


@dataclass(frozen=True, eq=False)
class Transductive:
    """The paper's rule: the stage's queries are the whole workload, and those with the largest predicted gains share its budget."""

    head: Head
    start: int
    noise: float
    budget: float
    name = "router"

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return max(self.start, self.head.widths[-1])

    def decide(self, stage: Stage) -> Decision:
        """One step, from the start width to the width chosen."""
        if (stage.widths > self.start).any():
            return finish(stage)
        gains = self.head.gains(self.head.scores(stage, self.noise, self.start))
        return Decision(stage.alive, top_share(gains, self.head.widths, self.budget))


@dataclass(frozen=True, eq=False)
class RouterModel:
    """What fitting found: heads, and the scores of known queries with their worth at each width, which make a budget or a
    quality a price. Known are the dev queries, and train queries where neither rotation nor trees had seen them.

    Without heads (there was nothing to learn from) every query ends at the start width.
    """

    start: int
    widths: tuple[int, ...]  # of `values`
    noise: float
    labelled: bool  # whether `values` are nDCG@10, or the share of the widest's top 10
    dev: int  # so many of the known queries, the last ones, are dev's
    values: F64  # (known queries, W)
    heads: tuple[Head, ...]
    scores: tuple[Scores, ...]  # of the known queries, by each head

    def policy(self, *, budget: float | None = None, quality: float | None = None, transductive: bool = False) -> Policy:
        """The policy that kept to the mean width `budget`, or kept the share `quality` (.99 unless told), on the known queries.

        `transductive`: the paper's rule, which ranks the whole workload, given as one batch, instead of using a known price.
        """
        if budget is not None and quality is not None:
            raise OptionError("give a budget or a quality, not both")
        if budget is not None:
            check_budget(budget, self.start, self.widths[-1])
        if not self.heads:
            log.warning("the router had nothing to learn from: every query ends at the start width, %d", self.start)
            return Fixed(self.start, self.start)
        if budget is None:
            budget = self.budget_for(DEFAULT_QUALITY if quality is None else quality)
        head, price, _ = max((self._tried(place, budget) for place in self._usable(budget)), key=lambda found: found[2])
        if transductive:
            return Transductive(head, self.start, self.noise, min(budget, head.widths[-1]))
        return Router(head, self.start, self.noise, price)

    def budget_for(self, quality: float) -> float:
        """The smallest mean width that kept this share of the target width's worth."""
        if not 0 < quality <= 1:
            raise OptionError(f"quality {quality:g} is not between 0 and 1")
        wanted = quality * float(self.values[:, self.widths.index(self.target)].mean())
        for budget in np.linspace(self.start, self.target, 65)[:-1].tolist():
            if any(self._tried(place, budget)[2] >= wanted for place in self._usable(budget)):
                return float(budget)
        return float(self.target)

    @cached_property
    def target(self) -> int:
        """The width with the best nDCG@10; without labels the widest."""
        return self.widths[int(self.values.mean(axis=0).argmax())] if self.labelled else self.widths[-1]

    def credit(self, budget: float) -> float:
        """What routing added on the known queries over the fixed width of the same mean, at its best head."""
        if not self.heads:
            return 0.0
        return max(self._credit(place, budget) for place in self._usable(budget))

    @property
    def reference(self) -> Scores:
        """The dev queries' scores by the head that `signal` uses: by the very trees, which out-of-fold scores are not."""
        return self.scores[-1][len(self.values) - self.dev :] if self.heads else np.empty(0)

    def signal(self, stage: Stage) -> Scores:
        """The last head's scores, whose distribution tells drift. (Q,)"""
        return self.heads[-1].scores(stage, self.noise, self.start) if self.heads else np.zeros(len(stage))

    def config(self) -> dict[str, Any]:
        """All but the arrays, JSON-able."""
        heads = [{"widths": list(head.widths), "features": head.features} for head in self.heads]
        return {
            "start": self.start,
            "widths": list(self.widths),
            "noise": self.noise,
            "labelled": self.labelled,
            "dev": self.dev,
            "heads": heads,
        }

    def tensors(self) -> dict[str, Array]:
        """The arrays by name."""
        found: dict[str, Array] = {"values": self.values}
        for place, (head, scores) in enumerate(zip(self.heads, self.scores, strict=True)):
            arrays = {**head.trees.tensors(), "knots": head.knots, "curves": head.curves, "scores": scores}
            found |= {f"{place}.{name}": array for name, array in arrays.items()}
        return found

    @classmethod
    def of(cls, config: Mapping[str, Any], tensors: Mapping[str, Array]) -> Self:
        """The model that `config` and `tensors` describe."""
        heads = []
        for place, head in enumerate(config["heads"]):
            trees = Trees(**{field.name: tensors[f"{place}.{field.name}"] for field in fields(Trees)})
            heads.append(Head(tuple(head["widths"]), head["features"], trees, tensors[f"{place}.knots"], tensors[f"{place}.curves"]))
        return cls(
            start=config["start"],
            widths=tuple(config["widths"]),
            noise=config["noise"],
            labelled=config["labelled"],
            dev=config["dev"],
            values=tensors["values"],
            heads=tuple(heads),
            scores=tuple(tensors[f"{place}.scores"] for place in range(len(heads))),
        )

    def _usable(self, budget: float) -> list[int]:
        return [place for place, head in enumerate(self.heads) if head.widths[0] <= budget]

    def _tried(self, place: int, budget: float) -> tuple[Head, float, float]:
        """A head, its price for the budget, and the mean worth of what it chose."""
        head, gains = self.heads[place], self.heads[place].gains(self.scores[place])
        price = price_for(gains, head.widths, min(budget, head.widths[-1]))
        return head, price, float(self._worth(allot(gains, head.widths, price)).mean())

    def _worth(self, chosen: I64) -> F64:
        return np.asarray(self.values[np.arange(len(chosen)), np.searchsorted(self.widths, chosen)])

    def _credit(self, place: int, budget: float) -> float:
        head, gains = self.heads[place], self.heads[place].gains(self.scores[place])
        chosen = allot(gains, head.widths, price_for(gains, head.widths, min(budget, head.widths[-1])))
        fixed = np.interp(chosen.mean(), self.widths, self.values.mean(axis=0))
        return float(self._worth(chosen).mean() - fixed)


def all_features(stage: Stage, noise: float, start: int) -> F64:
    """The extended features of a stage at the start width and the queries' prefixes, renormalised. (Q, len(EXTENDED) + start)

    The half-width scores are those that stage 1 passed on its way: in a fused loop they cost nothing.
    """
    prefix = stage.queries[:, :start].astype(np.float64)
    lengths = np.maximum(np.linalg.norm(prefix, axis=1), 1e-12)
    half = stage.backend.open(stage.queries, stage.candidates, max(1, start // 2)).scores
    reference = prefix @ stage.backend.centre[:start] / lengths
    tails = np.sqrt(np.maximum(0.0, np.einsum("ij,ij->i", stage.queries, stage.queries) - lengths**2))
    return np.concatenate([extended(stage.scores, half, noise, reference, tails), prefix / lengths[:, None]], axis=1)
