"""Routers: from the stage-1 scores, one width for each query's whole shortlist.

Trees give each query a score, curves say what a query of that score gains at each width, and the query goes to the width
with the largest gain less its price. With two widths (l, h) this is the paper's rule: the score is the predicted gain, and
the query escalates to h iff it is above a threshold. `paper-router` has the paper's pairs and features alone, `router` more of both.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ..errors import OptionError
from ..kernels.trees import batch_features, predict
from ..stages import Decision, Stage
from ..types import F64, I32, I64, Array, Mask
from .base import DEFAULT_QUALITY, Policy, finish
from .budget import Gains, allot, check_budget, price_for, top_share
from .features import columns, extended
from .fixed import Fixed
from .stored import array, ascending, check, entry, flag, listed, number, refuse, whole, within

log = logging.getLogger("adawidth")

FEATURE_SETS = ("paper", "extended", "scale-free", "query")  # by which names `columns` knows them
DEEPEST = 64  # steps from a root to a leaf

Scores = F64  # (Q,)


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble as flat arrays. A row at most threshold[n] goes from node n to children[n, 0], above it to children[n, 1]."""

    feature: I32  # (nodes,)
    threshold: F64  # (nodes,)
    children: I32  # (nodes, 2), further back than their parent; a leaf has itself
    value: F64  # (nodes,); 0 but at leaves
    roots: I32  # (trees,) ascending
    depths: I32  # (trees,)

    def __post_init__(self) -> None:
        """Compiled code follows these numbers unchecked: each must lead to a node, and every walk must end at a leaf."""
        nodes, trees = len(self.feature), len(self.roots)
        for name, dtype, shape in (("feature", np.int32, (nodes,)), ("children", np.int32, (nodes, 2)), ("value", np.float64, (nodes,))):
            check(getattr(self, name), name, dtype, *shape)
        check(self.threshold, "threshold", np.float64, nodes, largest=np.inf)
        check(self.roots, "roots", np.int32, trees)
        check(self.depths, "depths", np.int32, trees)
        if nodes and self.feature.min() < 0:
            refuse("feature", "numbers from 0", self.feature.min())
        if trees and (self.roots[0] < 0 or self.roots[-1] >= nodes or (self.roots[1:] <= self.roots[:-1]).any()):
            refuse("roots", f"numbers that rise within 0 to {nodes - 1}", self.roots)
        place = np.arange(nodes)[:, None]
        leaf = (self.children == place).all(axis=1)
        wrong = ~leaf & ((self.children <= place) | (self.children >= nodes)).any(axis=1)
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            refuse("children", f"of node {node} two nodes behind it, at most {nodes - 1}, or the leaf itself", self.children[node])
        heights = self._heights(leaf)
        if (heights[self.roots] != self.depths).any():
            tree = int(np.flatnonzero(heights[self.roots] != self.depths)[0])
            refuse("depths", f"{heights[self.roots[tree]]} for tree {tree}", self.depths[tree])

    def _heights(self, leaf: Mask) -> I64:
        """Steps from each node to the furthest leaf below it. (nodes,)"""
        heights = np.zeros(len(leaf), np.int64)
        for _ in range(DEEPEST + 1):
            below = np.where(leaf, 0, 1 + heights[self.children].max(axis=1))
            if (below == heights).all():
                return heights
            heights = below
        refuse("children", f"leaves at most {DEEPEST} steps from a root", "more steps")

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

    def __post_init__(self) -> None:
        if not self.widths or self.widths[0] < 1 or any(low >= high for low, high in pairwise(self.widths)):
            refuse("widths", "widths that rise from at least 1", self.widths)
        if self.features not in FEATURE_SETS:
            refuse("features", f"one of {', '.join(FEATURE_SETS)}", self.features)
        check(self.knots, "knots", np.float64, None)
        if not len(self.knots) or (np.diff(self.knots) <= 0).any():
            refuse("knots", "scores that rise, at least one", self.knots)
        check(self.curves, "curves", np.float64, len(self.knots), len(self.widths))

    def check_start(self, start: int) -> None:
        """Refuses a start width beyond the widest, and trees that look at a feature that there is not from it."""
        if not 1 <= start <= self.widths[-1]:
            refuse("start", f"a width from 1 to {self.widths[-1]}", start)
        count, feature = len(columns(self.features, start)), self.trees.feature
        if feature.max(initial=0) >= count:
            refuse("feature", f"numbers below {count}, the {self.features} features", feature.max())

    def gains(self, scores: Scores) -> Gains:
        """Predicted gain of each width over the narrowest. (Q,) -> (Q, W)"""
        return np.stack([np.interp(scores, self.knots, curve) for curve in self.curves.T], axis=1)

    def scores(self, stage: Stage, noise: float, start: int) -> Scores:
        """The trees' score of every query of a stage at the start width. (Q,)"""
        if self.features == "paper":
            return self.trees.predict(batch_features(stage.scores))
        return self.trees.predict(all_features(stage, noise, start)[:, columns(self.features, start)])


@dataclass(frozen=True, eq=False)
class _Routed(ABC):
    """One step for every query, from the start width to the width that its predicted gains choose."""

    head: Head
    start: int
    noise: float

    def __post_init__(self) -> None:
        self.head.check_start(self.start)

    @property
    def reach(self) -> int:
        """The widest that it may read."""
        return max(self.start, self.head.widths[-1])

    def at(self, widths: Sequence[int]) -> Self:
        """The same, if its widths are among these and its features are the paper's, which need the scores alone."""
        if self.head.features != "paper" or not {self.start, *self.head.widths} <= set(widths):
            raise OptionError("this router reads more than an engine gives, scores at a few widths: use the taper")
        return self

    def decide(self, stage: Stage) -> Decision:
        """One step, from the start width to the width chosen."""
        if (stage.widths > self.start).any():
            return finish(stage)
        return Decision(stage.alive, self._chosen(self.head.gains(self.head.scores(stage, self.noise, self.start))))

    @abstractmethod
    def _chosen(self, gains: Gains) -> I64:
        """A width for each query. (Q, W) -> (Q,)"""


@dataclass(frozen=True, eq=False)
class Router(_Routed):
    """Each query to the width with the largest predicted gain less `price` per coordinate; inf: none moves, -inf: all to the widest."""

    price: float
    name: str = "router"

    def _chosen(self, gains: Gains) -> I64:
        return allot(gains, self.head.widths, self.price)


@dataclass(frozen=True, eq=False)
class Transductive(_Routed):
    """The paper's rule: the stage's queries are the whole workload, and those with the largest predicted gains share its budget."""

    budget: float
    name: str = "router"

    def _chosen(self, gains: Gains) -> I64:
        return top_share(gains, self.head.widths, self.budget)


@dataclass(frozen=True, eq=False)
class RouterModel:
    """What fitting found: heads, and the scores of known queries with their values at each width, which make a budget or a
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
    name: str = "router"  # or "paper-router"

    def policy(self, *, budget: float | None = None, quality: float | None = None, transductive: bool = False) -> Policy:
        """The policy that kept to the mean width `budget`, or kept the share `quality` (.99 unless told), on the known queries.

        `transductive`: the paper's rule, which ranks the whole workload, given as one batch, instead of using a known price.
        """
        if budget is not None and quality is not None:
            raise OptionError("give a budget or a quality, not both")
        if budget is not None:
            check_budget(budget, self.start, self.widths[-1])
        if not self.heads:
            log.warning("the %s had nothing to learn from: every query ends at the start width, %d", self.name, self.start)
            return Fixed(self.start, self.start)
        if budget is None:
            budget = self.budget_for(DEFAULT_QUALITY if quality is None else quality)
        head, price, _ = max((self._tried(place, budget) for place in self._usable(budget)), key=lambda found: found[2])
        if transductive:
            return Transductive(head, self.start, self.noise, min(budget, head.widths[-1]), self.name)
        return Router(head, self.start, self.noise, price, self.name)

    def budget_for(self, quality: float) -> float:
        """The smallest mean width that kept this share of the target width's value."""
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
    def of(cls, config: Any, tensors: Mapping[str, Array], width: int, name: str = "router") -> Self:
        """The model that `config` and `tensors` describe, for encoders of this width; what can't be is refused by name."""
        with within(name.replace("-", "_")):
            start, widths = whole(config, "start", 1, width), ascending(entry(config, "widths"), "widths", width)
            if widths[0] != start:
                refuse("widths", f"the start width {start} first", widths[0])
            values = array(tensors, "values")
            check(values, "values", np.float64, None, len(widths))
            given = listed(config, "heads")
            heads = tuple(_head(place, head, tensors, start, widths) for place, head in enumerate(given))
            if heads and (not len(values) or all(head.widths[0] != start for head in heads)):
                refuse("heads", f"known queries and one from the start width {start}", f"{len(values)} queries, {given}")
            scores = tuple(array(tensors, f"{place}.scores") for place in range(len(heads)))
            for place, known in enumerate(scores):
                check(known, f"{place}.scores", np.float64, len(values))
            return cls(
                start=start,
                widths=widths,
                noise=number(entry(config, "noise"), "noise"),
                labelled=flag(config, "labelled"),
                dev=whole(config, "dev", 0, len(values)),
                values=values,
                heads=heads,
                scores=scores,
                name=name,
            )

    def _usable(self, budget: float) -> list[int]:
        return [place for place, head in enumerate(self.heads) if head.widths[0] <= budget]

    def _tried(self, place: int, budget: float) -> tuple[Head, float, float]:
        """A head, its price for the budget, and the mean value of what it chose."""
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


def _head(place: int, config: Any, tensors: Mapping[str, Array], start: int, known: tuple[int, ...]) -> Head:
    """A stored head, its widths among those known."""
    with within(f"heads.{place}"):
        widths = ascending(entry(config, "widths"), "widths", known[-1])
        if len(widths) < 2 or not set(widths) <= set(known):
            refuse("widths", f"at least two of {known}", widths)
        features = entry(config, "features")
    *trees, knots, curves = (array(tensors, f"{place}.{name}") for name in (*(one.name for one in fields(Trees)), "knots", "curves"))
    with within(str(place)):
        head = Head(widths, features, Trees(*trees), knots, curves)
        head.check_start(start)
    return head


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
